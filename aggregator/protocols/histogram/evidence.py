"""What all surveys of a study together say about one additive model, as linear measurements with known noise.

Every category of every feature is one coordinate. Three kinds of moments describe the people: how common each category
is (`shares`), how each goes with the label (`contrast`, the covariance of its indicator with the label), and how two
categories of different features go with each other (`second`). Tables of a subset measure all three of its features;
a one-bit packet measures one signed sum of contrasts. Estimates of one quantity from several surveys are pooled by
precision, one number per survey and feature, so that weights do not depend on which cells the noise favoured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from attrs import field, frozen

from aggregator.protocols.histogram.reconstruct import Counts, Floats, SurveyTally
from anon.ldp import SCALE, Mechanism

GUESS_ERROR = 0.1
"""What a declared guess of a share is taken to be off by; the study file says so."""

UNKNOWN_ERROR = 0.3
"""The same where nothing was declared."""

RAREST = 0.005
"""Shares are kept above this, and the base rate within [0.01, 0.99]."""


@frozen(eq=False)
class BitTally:
    """How many of `n` reports of a one-bit survey say -1 and +1; `centre` is a, `signs` one per category."""

    survey: int
    feature: str
    signs: tuple[int, ...]
    centre: float
    mechanism: Mechanism
    counts: Counts
    n: int

    @property
    def asks_label_alone(self) -> bool:
        """Whether the bit is the same for everybody, so that only the label is measured."""
        return len(set(self.signs)) == 1

    @property
    def mean(self) -> float:
        """The unbiased estimate of E[b (y - a)]."""
        gap = (self.mechanism.p - self.mechanism.q) / SCALE
        return float(2 * self.counts[1] / self.n - 1) / gap * self.scale

    @property
    def variance(self) -> float:
        """Of `mean`, at most: that of n signs, blown up by the mechanism."""
        gap = (self.mechanism.p - self.mechanism.q) / SCALE
        return self.scale**2 / (self.n * gap**2)

    @property
    def scale(self) -> float:
        """max(a, 1 - a)."""
        return max(self.centre, 1 - self.centre)


@frozen
class Coordinates:
    """Where each feature's categories lie among all D coordinates."""

    names: tuple[str, ...]
    cards: tuple[int, ...]
    numeric: tuple[bool, ...]
    own_missing: tuple[bool, ...]
    places: Mapping[str, slice] = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        ends = np.cumsum(self.cards).tolist()
        starts = [0, *ends[:-1]]
        places = {name: slice(a, b) for name, a, b in zip(self.names, starts, ends, strict=True)}
        object.__setattr__(self, "places", places)

    @property
    def size(self) -> int:
        """D."""
        return sum(self.cards)


@frozen(eq=False)
class Evidence:
    """The moments and their noise. A category nobody was asked about has infinite `contrast_variance`.

    `second`: E[x_j x_k] of two categories of different features, its variance in `second_variance`, infinite where
    never asked. `signs`, `bits`, `bit_variance`: measured sums signs . contrast. `reports`: by feature.
    """

    coordinates: Coordinates
    rate: float
    rate_error: float
    shares: Floats
    contrast: Floats
    contrast_variance: Floats
    second: Floats
    second_variance: Floats
    signs: Floats
    bits: Floats
    bit_variance: Floats
    reports: Mapping[str, int]


@frozen(eq=False)
class _Table:
    """One survey's unbiased shares and the variance of each cell, shaped (card, ..., 2)."""

    features: tuple[str, ...]
    n: int
    shares: Floats
    variance: Floats


def gather(
    coordinates: Coordinates,
    tables: Sequence[SurveyTally],
    bits: Sequence[BitTally],
    guessed_shares: Mapping[str, Sequence[float]],
    guessed_rate: float,
) -> Evidence:
    """All evidence. `guessed_shares`: by feature, declared or from binning. A rate of 1/2 counts as no guess."""
    read = [_read(tally) for tally in tables if tally.n > 0]
    asked = [tally for tally in bits if tally.n > 0]
    rate, rate_error = _rate(read, asked, guessed_rate)
    shares, share_error = _shares(coordinates, read, guessed_shares)
    contrast, contrast_variance = _contrast(coordinates, read, rate)
    second, second_variance = _second(coordinates, read)
    signs, values, noise = _bits(coordinates, asked, (rate, rate_error), shares, share_error)
    reports = {
        name: sum(one.n for one in read if name in one.features)
        + sum(one.n for one in asked if one.feature == name and not one.asks_label_alone)
        for name in coordinates.names
    }
    return Evidence(
        coordinates, rate, rate_error, shares, contrast, contrast_variance, second, second_variance, signs, values,
        noise, reports,
    )  # fmt: skip


def _read(tally: SurveyTally) -> _Table:
    """Cells of one survey as independent: the covariances between them are of the order 1/n and are left out."""
    keep, other = tally.mechanism.p / SCALE, tally.mechanism.q / SCALE
    rates = np.clip(tally.counts / tally.n, other / 2, 1 - other / 2)
    shape = (*tally.cards, 2)
    shares = (tally.counts / tally.n - other) / (keep - other)
    variance = rates * (1 - rates) / (tally.n * (keep - other) ** 2)
    return _Table(tally.features, tally.n, shares.reshape(shape), variance.reshape(shape))


def _rate(tables: Sequence[_Table], bits: Sequence[BitTally], guess: float) -> tuple[float, float]:
    error = UNKNOWN_ERROR if guess == 0.5 else GUESS_ERROR
    found = [(guess, error**2)]
    found += [(float(one.shares[..., 1].sum()), float(one.variance[..., 1].sum())) for one in tables]
    found += [(one.mean * one.signs[0] + one.centre, one.variance) for one in bits if one.asks_label_alone]
    precision = np.array([1 / max(variance, 1e-12) for _, variance in found])
    rate = float(np.sum(precision * np.array([value for value, _ in found])) / precision.sum())
    return min(max(rate, 0.01), 0.99), float(precision.sum() ** -0.5)


def _shares(
    coordinates: Coordinates, tables: Sequence[_Table], guessed: Mapping[str, Sequence[float]]
) -> tuple[Floats, Floats]:
    """How common each category is and the error of that, guesses and measurements pooled."""
    shares, errors = np.zeros(coordinates.size), np.zeros(coordinates.size)
    for name, card in zip(coordinates.names, coordinates.cards, strict=True):
        guess = guessed.get(name)
        total = np.full(card, 1 / card) if guess is None else np.array(guess, dtype=float)
        error = (UNKNOWN_ERROR if guess is None else GUESS_ERROR) * 2 / max(card, 2)
        precision = 1 / error**2
        total = total * precision
        for one in tables:
            if name in one.features:
                value, variance = _marginal(one.shares, one.variance, one.features, (name,))
                weight = 1 / max(float(variance.sum(axis=-1).mean()), 1e-12)
                total, precision = total + weight * value.sum(axis=-1), precision + weight
        found = np.maximum(total / precision, RAREST)
        shares[coordinates.places[name]] = found / found.sum()
        errors[coordinates.places[name]] = precision**-0.5
    return shares, errors


def _contrast(coordinates: Coordinates, tables: Sequence[_Table], rate: float) -> tuple[Floats, Floats]:
    """(1 - rate) t_b1 - rate t_b0 of each category, pooled; a feature's sum to 0, as covariances with a label do."""
    contrast, variance = np.zeros(coordinates.size), np.full(coordinates.size, np.inf)
    weights = np.array([-rate, 1 - rate])
    for name, card in zip(coordinates.names, coordinates.cards, strict=True):
        total, precision = np.zeros(card), 0.0
        for one in tables:
            if name in one.features:
                value, noise = _marginal(one.shares, one.variance, one.features, (name,))
                weight = 1 / max(float((noise @ weights**2).mean()), 1e-12)
                total, precision = total + weight * (value @ weights), precision + weight
        if precision > 0:
            found = total / precision
            contrast[coordinates.places[name]] = found - found.mean()
            variance[coordinates.places[name]] = (1 - 1 / max(card, 2)) / precision
    return contrast, variance


def _second(coordinates: Coordinates, tables: Sequence[_Table]) -> tuple[Floats, Floats]:
    total, precision = np.zeros((coordinates.size, coordinates.size)), np.zeros((coordinates.size, coordinates.size))
    for one in tables:
        for pair in combinations(one.features, 2):
            value, noise = _marginal(one.shares, one.variance, one.features, pair)
            weight = 1 / max(float(noise.sum(axis=-1).mean()), 1e-12)
            first, other = coordinates.places[pair[0]], coordinates.places[pair[1]]
            total[first, other] += weight * value.sum(axis=-1)
            precision[first, other] += weight
            total[other, first] += weight * value.sum(axis=-1).T
            precision[other, first] += weight
    with np.errstate(divide="ignore", invalid="ignore"):
        second = np.where(precision > 0, total / precision, 0.0)
        variance = np.where(precision > 0, 1 / precision, np.inf)
    return second, variance


def _bits(
    coordinates: Coordinates,
    bits: Sequence[BitTally],
    rate: tuple[float, float],
    shares: Floats,
    share_error: Floats,
) -> tuple[Floats, Floats, Floats]:
    """E[b (y - a)] = b . contrast + (rate - a) b . shares: the second part is taken off, its error added."""
    asked = [one for one in bits if not one.asks_label_alone]
    signs, values, noise = np.zeros((len(asked), coordinates.size)), np.zeros(len(asked)), np.zeros(len(asked))
    for row, one in enumerate(asked):
        place = coordinates.places[one.feature]
        signs[row, place] = one.signs
        mean_sign = float(signs[row, place] @ shares[place])
        off = rate[0] - one.centre
        values[row] = one.mean - off * mean_sign
        doubt = 2 * float(share_error[place].max())
        noise[row] = one.variance + (off * doubt) ** 2 + (rate[1] * mean_sign) ** 2
    return signs, values, noise


def _marginal(
    shares: Floats, variance: Floats, features: tuple[str, ...], kept: tuple[str, ...]
) -> tuple[Floats, Floats]:
    """Summed over all features but `kept`, the label still last; sums of independent cells add their variances."""
    others = tuple(place for place, name in enumerate(features) if name not in kept)
    return shares.sum(axis=others), variance.sum(axis=others)
