"""Many histograms at once: unbiased shares, their noise, and balanced logistic regression by Newton's method.

The same estimators as `aggregator.protocols.histogram` (reconstruct, classifiers, scoring), for arrays of shape
(trials, surveys, m); tests compare the two.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from anon.ldp import NANO, SCALE, Mechanism, NanoEpsilon, build

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

PAPERS = ("krr", "rappor", "pq")
FLOOR = 0.01
_NEWTON = 40


@frozen
class Noise:
    """A mechanism's effect on counts, as numbers; `categorical` for k-RR, whose counts sum to n. None: nothing."""

    p: float
    q: float
    categorical: bool

    @staticmethod
    def of(mechanism: Mechanism | None) -> Noise:
        """Of k-RR, RAPPOR or (p, q)-perturbation."""
        if mechanism is None:
            return Noise(1.0, 0.0, True)
        if mechanism.name not in PAPERS:
            raise ValueError(f"not one of the paper's mechanisms: {mechanism.name}")
        return Noise(mechanism.p / SCALE, mechanism.q / SCALE, mechanism.name == "krr")

    @property
    def gap(self) -> float:
        """p - q."""
        return self.p - self.q


def whole_nano(epsilon: float) -> NanoEpsilon:
    """Epsilon in whole billionths, rounded down: shares of a budget must not exceed it together."""
    return NanoEpsilon(int(epsilon * NANO + 1e-6))


def papers_choice(m: int, epsilon: float) -> Mechanism:
    """The mechanism of least expected error by eq. 4 among the paper's three (section VII-D3)."""
    return min((build(name, m, whole_nano(epsilon)) for name in PAPERS), key=lambda one: one.squared_error())


def perturbed(noise: Noise, truth: Ints, generator: np.random.Generator) -> Ints:
    """Exact draws of the tallies for true counts of shape (..., m), as `draws.perturbed_counts` of the lab."""
    m = truth.shape[-1]
    if noise.gap == 1:
        return truth
    if noise.categorical:
        chances = np.full((m, m), noise.q)
        np.fill_diagonal(chances, 1 - (m - 1) * noise.q)
        moved: Ints = generator.multinomial(truth, chances).sum(axis=-2)
        return moved
    n = truth.sum(axis=-1, keepdims=True)
    drawn: Ints = generator.binomial(truth, noise.p) + generator.binomial(n - truth, noise.q)
    return drawn


@frozen(eq=False)
class Estimates:
    """Unbiased shares (..., m), the peers behind each (...), and what is needed of the noise.

    `diagonal` (..., m): variances; `between` (..., m/2): covariance of a cell's two labels; `positive` (...): variance
    of the share of positive labels. All zero where there are no peers, and `known` is then False.
    """

    shares: Floats
    n: Ints
    known: NDArray[np.bool_]
    diagonal: Floats
    between: Floats
    positive: Floats


def estimate(noise: Noise, counts: Ints, n: Ints) -> Estimates:
    """As `reconstruct`: shares (counts / n - q) / (p - q) with covariances from the counts themselves."""
    m = counts.shape[-1]
    size = np.maximum(n, 1)[..., None].astype(float)
    known = n > 0
    shares = np.where(known[..., None], (counts / size - noise.q) / noise.gap, 1 / m)
    rates = np.clip(counts / size, noise.q / 2, 1 - noise.q / 2)
    scale = 1 / (size * noise.gap**2)
    diagonal = rates * (1 - rates) * scale
    if noise.categorical:
        between = -rates[..., ::2] * rates[..., 1::2] * scale
        plus = rates[..., 1::2].sum(axis=-1)
        positive = (plus - plus**2) * scale[..., 0]
    else:
        plausible = project(shares)
        between = -plausible[..., ::2] * plausible[..., 1::2] / size
        plus = plausible[..., 1::2]
        cross = plus.sum(axis=-1) ** 2 - (plus**2).sum(axis=-1)
        positive = diagonal[..., 1::2].sum(axis=-1) - cross / size[..., 0]
    return Estimates(shares, n, known, diagonal, between, np.maximum(positive, 1e-12))


def base_rates(estimates: Estimates) -> Floats:
    """The share of positive labels of each trial, pooled over its surveys by precision, in [0.01, 0.99]. (trials,)"""
    precision = np.where(estimates.known, 1 / estimates.positive, 0.0)
    found = estimates.shares[..., 1::2].sum(axis=-1)
    total = precision.sum(axis=-1)
    rate = np.where(total > 0, (precision * found).sum(axis=-1) / np.maximum(total, 1e-300), 0.5)
    return np.clip(rate, FLOOR, 1 - FLOOR)


def equivalent(estimates: Estimates, rates: Floats) -> Floats:
    """How many noiseless reports would tell as much (`equivalent_reports`), at most n. (trials, surveys)"""
    rate = rates[:, None, None]
    noise = (
        rate**2 * estimates.diagonal[..., ::2]
        + (1 - rate) ** 2 * estimates.diagonal[..., 1::2]
        - 2 * rate * (1 - rate) * estimates.between
    ).sum(axis=-1)
    top = (rates * (1 - rates))[:, None]
    told = np.where(noise > 0, np.minimum(estimates.n, top / np.maximum(noise, 1e-300)), estimates.n)
    found: Floats = np.where(estimates.known, told, 0.0)
    return found


def project(shares: Floats) -> Floats:
    """The nearest shares that are >= 0 and sum to 1, along the last axis (`nearest_shares`)."""
    ordered = -np.sort(-shares, axis=-1)
    ranks = np.arange(1, shares.shape[-1] + 1)
    shifts = (np.cumsum(ordered, axis=-1) - 1) / ranks
    last = (ordered > shifts).sum(axis=-1, keepdims=True) - 1
    found: Floats = np.maximum(shares - np.take_along_axis(shifts, last, axis=-1), 0)
    return found


def signs_of_cells(bits: int) -> Floats:
    """-1 or +1 for each feature of each cell, first feature slowest, shape (2**bits, bits)."""
    cells = np.arange(2**bits)
    return np.stack([2.0 * (cells >> (bits - 1 - place) & 1) - 1 for place in range(bits)], axis=1)


def logistic(shares: Floats, weight: Floats) -> Floats:
    """Balanced logistic regressions, the decision function of each cell: (problems, m) -> (problems, m / 2).

    `shares` are projected; `weight` is the total weight of the rows, each label's together half of it. The penalty is
    that of one-hot columns at C = 1, which is gamma**2 for a feature coded -1, +1. Problems that know one label only,
    or nothing, get 0.
    """
    cells = shares.reshape(len(shares), -1, 2)
    totals = cells.sum(axis=1)
    good = np.all(totals > 0, axis=1) & (weight > 0)
    halves = cells / np.maximum(totals, 1e-300)[:, None, :] / 2
    rows = np.where(good[:, None, None], halves * weight[:, None, None], 0.0)
    bits = int(np.log2(cells.shape[1]))
    design = np.hstack([np.ones((2**bits, 1)), signs_of_cells(bits)])
    penalty = np.diag([1e-12] + [2.0] * bits)
    beta = np.zeros((len(shares), bits + 1))
    heavy, plus = rows.sum(axis=2), rows[:, :, 1]
    floor = np.where(good, 0.0, 1.0)[:, None, None] * np.eye(bits + 1)
    for _ in range(_NEWTON):
        chance = 1 / (1 + np.exp(-np.clip(beta @ design.T, -30, 30)))
        slope = (heavy * chance - plus) @ design + beta @ penalty
        curve = np.einsum("bc,ci,cj->bij", heavy * chance * (1 - chance), design, design) + penalty + floor
        step = np.linalg.solve(curve, slope[:, :, None])[:, :, 0]
        step *= np.minimum(1.0, 2.0 / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1e-300))
        beta -= step
        if np.abs(step).max() < 1e-9:
            break
    return np.where(good[:, None], beta @ design.T, 0.0)


def f1_of(votes: NDArray[np.bool_], cells: Floats, rate: Floats) -> Floats:
    """F1 of votes (..., cells) on shares (..., cells, 2), kept in [0, 1] (`scoring.f1_score`)."""
    hits = (votes * cells[..., 1]).sum(axis=-1)
    called = np.maximum((votes * cells.sum(axis=-1)).sum(axis=-1), 0)
    found: Floats = np.clip(2 * hits / (called + rate), 0, 1)
    return found


def auc_of(contrast: Floats, cells: Floats, rate: Floats) -> Floats:
    """ROC AUC of cell contrasts on shares, kept in [0, 1] (`scoring.auc_score`)."""
    ahead = np.sign(contrast[..., :, None] - contrast[..., None, :])
    won = np.einsum("...i,...ij,...j->...", cells[..., 1], ahead, cells[..., 0])
    found: Floats = np.clip(0.5 + won / (2 * rate * (1 - rate)), 0, 1)
    return found


def accuracy_of(votes: NDArray[np.bool_], cells: Floats) -> Floats:
    """The share of right votes, kept in [0, 1]."""
    found: Floats = np.clip((np.where(votes, cells[..., 1], cells[..., 0])).sum(axis=-1), 0, 1)
    return found


def mean_and_error(values: Sequence[float] | Floats) -> tuple[float, float]:
    """The mean of independent trials and its standard error."""
    found = np.asarray(values, dtype=float)
    error = float(found.std(ddof=1) / np.sqrt(len(found))) if len(found) > 1 else 0.0
    return float(found.mean()), error
