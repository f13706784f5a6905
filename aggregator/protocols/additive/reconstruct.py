"""From tallies of perturbed reports to unbiased histogram cells with their covariance, and what is made of them.

An estimate is of the shares in the population that the cohort was drawn from, so its covariance holds both the
mechanism's noise and the sampling of peers. Cells may be negative; only `projected` clips, and
says so. Cells are ordered as the survey's categories: mixed radix over its features, label last.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from anon.ldp import SCALE, Mechanism
from anon.ldp.simplex import nearest_shares

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


@frozen(eq=False)
class SurveyTally:
    """How many of `n` accepted reports of a histogram survey support each of its m categories."""

    survey: int
    features: tuple[str, ...]
    cards: tuple[int, ...]
    mechanism: Mechanism
    counts: Counts
    n: int

    def __attrs_post_init__(self) -> None:
        m = self.mechanism.m
        if len(self.features) != len(self.cards) or m != 2 * prod(self.cards):
            raise ValueError(f"survey {self.survey}: expected one cardinality per feature and m = 2 x their product")
        if self.counts.shape != (m,) or self.n < 0 or np.any(self.counts < 0) or np.any(self.counts > self.n):
            raise ValueError(f"survey {self.survey}: expected {m} counts between 0 and n")


@frozen(eq=False)
class Histogram:
    """Unbiased shares of the m cells, shape (m,), and their covariance, shape (m, m). With n = 0: no information."""

    features: tuple[str, ...]
    cards: tuple[int, ...]
    n: int
    shares: Floats
    covariance: Floats = field(repr=False)

    @property
    def standard_errors(self) -> Floats:
        """Of each cell, shape (m,)."""
        deviations: Floats = np.sqrt(np.maximum(np.diag(self.covariance), 0))
        return deviations

    @property
    def by_label(self) -> Floats:
        """The shares as (cells, 2): column 1 is the positive label."""
        return self.shares.reshape(-1, 2)


def reconstruct(tally: SurveyTally) -> Histogram:
    """The unbiased shares (counts/n - q)/(p - q) and their covariance.

    k-RR: the counts are multinomial(n, r) with r = q + (p - q) share, so Cov = (diag(r) - r r')/n/(p - q)^2. Others: a
    cell's count is Binomial(n, r_i) and two cells vary together as `Mechanism.joint` says. For unary encodings this is
    Cov = -share_i share_j / n, which is the sampling of peers alone. The r_i are taken from the counts themselves.

    >>> from anon.ldp import build, nano
    >>> answers = SurveyTally(0, ("cups",), (2,), build("krr", 4, nano(1)), np.array([400, 250, 200, 150]), 1000)
    >>> found = reconstruct(answers)
    >>> found.shares.round(2).tolist(), found.standard_errors.round(2).tolist()
    ([0.75, 0.25, 0.08, -0.08], [0.05, 0.05, 0.04, 0.04])
    """
    m, n = tally.mechanism.m, tally.n
    if n == 0:
        return Histogram(tally.features, tally.cards, 0, np.full(m, 1 / m), np.full((m, m), np.inf))
    gap = (tally.mechanism.p - tally.mechanism.q) / SCALE
    shares = np.array(tally.mechanism.unbias([int(count) for count in tally.counts], n)) / n
    floor = tally.mechanism.q / SCALE
    # A count of 0 or n would claim no variance, and all the weight where histograms are pooled.
    rates = np.clip(tally.counts / n, floor / 2, 1 - floor / 2)
    if tally.mechanism.name == "krr":
        covariance = (np.diag(rates) - np.outer(rates, rates)) / (n * gap**2)
    else:
        plausible = np.array(nearest_shares(shares.tolist()))
        first, second = (float(chance) for chance in tally.mechanism.joint())
        together = second + (first - second) * np.add.outer(plausible, plausible)
        supported = floor + gap * plausible
        covariance = (together - np.outer(supported, supported)) / (n * gap**2)
        np.fill_diagonal(covariance, rates * (1 - rates) / (n * gap**2))
    return Histogram(tally.features, tally.cards, n, shares, covariance)


def pool(histograms: Sequence[Histogram]) -> Histogram:
    """One histogram of several estimates of the same subset's shares, each weighted by its precision.

    Partitions and mechanisms may differ. The weight is a survey's n over its mean noise variance per report, one number
    for all of its cells. So weights do not depend on the cells that the noise favoured, and the pool stays unbiased.
    """
    known = [histogram for histogram in histograms if histogram.n > 0]
    if not known:
        return histograms[0]
    first = known[0]
    if any((histogram.features, histogram.cards) != (first.features, first.cards) for histogram in known):
        raise ValueError("pool: expected histograms of one feature subset in one order")
    precision = np.array([1 / float(np.mean(np.diag(histogram.covariance))) for histogram in known])
    weights = precision / precision.sum()
    shares = np.sum([weight * histogram.shares for weight, histogram in zip(weights, known, strict=True)], axis=0)
    spread = [weight**2 * histogram.covariance for weight, histogram in zip(weights, known, strict=True)]
    covariance = np.sum(spread, axis=0)
    return Histogram(first.features, first.cards, sum(histogram.n for histogram in known), shares, covariance)


def pool_by_subset(histograms: Sequence[Histogram]) -> dict[tuple[str, ...], Histogram]:
    """`pool` of the histograms of each feature subset, in order of first appearance."""
    groups: dict[tuple[str, ...], list[Histogram]] = {}
    for histogram in histograms:
        groups.setdefault(histogram.features, []).append(histogram)
    return {features: pool(group) for features, group in groups.items()}


def projected(histogram: Histogram) -> Floats:
    """The nearest shares that are >= 0 and sum to 1 (Euclidean). Biased: for showing, sampling, weighted rows."""
    return np.array(nearest_shares(histogram.shares.tolist()))


def base_rate(histograms: Sequence[Histogram], floor: float = 0.01) -> float:
    """The share of positive labels, pooled over surveys by precision, kept in [floor, 1 - floor]; 1/2 if unknown."""
    found = [_positive_share(histogram) for histogram in histograms if histogram.n > 0]
    if not found:
        return 0.5
    precision = np.array([1 / variance for _, variance in found])
    rate = float(np.sum(precision * np.array([share for share, _ in found])) / precision.sum())
    return min(max(rate, floor), 1 - floor)


def _positive_share(histogram: Histogram) -> tuple[float, float]:
    positive = np.arange(len(histogram.shares)) % 2 == 1
    variance = float(histogram.covariance[np.ix_(positive, positive)].sum())
    return float(histogram.shares[positive].sum()), max(variance, 1e-12)
