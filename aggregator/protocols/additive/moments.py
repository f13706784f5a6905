"""All surveys of a study as linear measurements of one additive model, with known noise.

Every category of every feature is one coordinate. Three kinds of moments describe the people. `shares` is how common
each category is. `contrast` is how each goes with the label: the covariance of its indicator with the label. `second`
is how two categories of different features go with each other. Tables of a subset measure all three of its features; a
one-bit packet measures one signed sum of contrasts. Estimates of one quantity from several surveys are pooled by
precision, one number per survey and feature, so that weights do not depend on which cells the noise favoured.

The noise of all measurements is one covariance matrix (`NoisyMoments.noise`). It has the mechanism's covariances
between cells. It has the one error of the base rate that all contrasts have in common. It is exact to order 1/n but for
the part that pairs of surveys share by asking the same population. A model that explains contrasts by effects knows the
categories' shares only from the same noisy cells. The two errors together are those of the contrast against the
category's own rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from aggregator.protocols.additive.noise import (
    TableNoise,
    cell_variances,
    contrast_weights,
    mean_contrast_variance,
    rate_variance,
    steadied_noise,
    table_noise,
    unrelated_cells,
)
from aggregator.protocols.additive.reconstruct import Counts, Floats, SurveyTally
from anon.ldp import SCALE, Mechanism

GUESS_ERROR = 0.1
"""The assumed error of a declared guess of a share; the study file says so."""

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
        """True if the bit is the same for everybody, so that only the label is measured."""
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
    """Where each feature's categories lie among all D coordinates.

    `expects`: for each feature the signs that staff declared (`Feature.expects`), or nothing for any.
    """

    names: tuple[str, ...]
    cards: tuple[int, ...]
    numeric: tuple[bool, ...]
    own_missing: tuple[bool, ...]
    expects: tuple[tuple[int, ...], ...] = ()
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
class NoisyMoments:
    """The moments and their noise. A category nobody was asked about has infinite `contrast_variance`.

    `second`: E[x_j x_k] of two categories of different features, its variance in `second_variance`, infinite where
    never asked. `signs`, `bits`, `bit_variance`: measured sums signs . contrast, without the base rate's error.
    `reports`: by feature. `tables`: what the contrasts were found from, each with its part in the base rate.
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
    tables: tuple[TableNoise, ...] = ()
    rate_parts: Floats = field(factory=lambda: np.zeros(0))

    @property
    def measured(self) -> NDArray[np.bool_]:
        """Which contrasts were asked about in a table, shape (D,)."""
        return np.isfinite(self.contrast_variance)

    def noise(self, effects: Floats) -> Floats:
        """The covariance of all measurements, the measured contrasts first and then the bits.

        `effects`: how far each category's rate is believed to be from the base rate, shape (D,). A feature's contrasts
        sum to 0; its block has a positive number in that one direction, so that it can be inverted and nothing else.
        """
        size, measured = self.coordinates.size, self.measured
        counted = np.zeros((size + 1, size + 1))  # pooled contrasts against the true rate, and the rate's own error
        counted[size, size] = self.rate_error**2
        for table, part in zip(self.tables, self.rate_parts, strict=True):
            folding, at = self._folding(table, part, self.rate + effects)
            covariance = table.covariance(folding)
            counted[np.ix_(at, at)] += covariance
            counted[size, size] -= covariance[-1, -1]
        turned = np.zeros((size + len(self.bits), size + 1))
        for place in self.coordinates.places.values():
            if measured[place.start]:
                card = place.stop - place.start
                turned[place, place] = np.eye(card) - 1 / card
                turned[place, size] = self.shares[place].mean() - self.shares[place]
        turned[size:, size] = -self.signs @ self.shares
        whole = turned @ counted @ turned.T
        whole[size:, size:] += np.diag(self.bit_variance)
        for place in self.coordinates.places.values():
            whole[place, place] += max(float(np.trace(whole[place, place])), 1e-18) / (place.stop - place.start) ** 2
        asked = np.concatenate([measured, np.ones(len(self.bits), dtype=bool)])
        found: Floats = whole[np.ix_(asked, asked)]
        return found

    def _folding(self, table: TableNoise, part: float, rates: Floats) -> tuple[Floats, Counts]:
        """A survey's terms in each pooled contrast of its features and, last, in the base rate; with their places."""
        places = [self.coordinates.places[name] for name in table.features]
        rows = [
            table.weights[name] * table.folding(name, contrast_weights(rates[place]))
            for name, place in zip(table.features, places, strict=True)
        ]
        positive = part * np.tile([0.0, 1.0], table.shares.size // 2)
        at = np.concatenate([*(np.arange(place.start, place.stop) for place in places), [self.coordinates.size]])
        return np.vstack([*rows, positive]), at


def gather(
    coordinates: Coordinates,
    tables: Sequence[SurveyTally],
    bits: Sequence[BitTally],
    guessed_shares: Mapping[str, Sequence[float]],
    guessed_rate: float,
) -> NoisyMoments:
    """The moments of everything counted. `guessed_shares`: by feature, declared or from binning. A rate of 1/2 is
    no guess."""
    told = [tally for tally in tables if tally.n > 0]
    asked = [tally for tally in bits if tally.n > 0]
    guessed = [table_noise(tally, unrelated_cells(_alike(tally), guessed_rate)) for tally in told]
    rough, _, _ = _rate(guessed, asked, guessed_rate)
    read = [table_noise(tally, unrelated_cells(_alike(tally), rough)) for tally in told]
    rate, rate_error, parts = _rate(read, asked, guessed_rate)
    shares, share_error = _shares(coordinates, read, guessed_shares)
    apart = [unrelated_cells([shares[coordinates.places[name]] for name in tally.features], rate) for tally in told]
    weights = _weights([table_noise(tally, plausible) for tally, plausible in zip(told, apart, strict=True)], rate)
    read = [steadied_noise(*evidence) for evidence in zip(told, apart, weights, strict=True)]
    contrast, contrast_variance = _contrast(coordinates, read, rate)
    second, second_variance = _second(coordinates, read)
    signs, values, noise = _bits(coordinates, asked, rate, shares, share_error)
    reports = {
        name: sum(table.n for table in read if name in table.features)
        + sum(tally.n for tally in asked if tally.feature == name and not tally.asks_label_alone)
        for name in coordinates.names
    }
    return NoisyMoments(
        coordinates, rate, rate_error, shares, contrast, contrast_variance, second, second_variance, signs, values,
        noise, reports, tuple(read), parts,
    )  # fmt: skip


def _alike(tally: SurveyTally) -> list[Floats]:
    return [np.full(card, 1 / card) for card in tally.cards]


def _rate(tables: Sequence[TableNoise], bits: Sequence[BitTally], guess: float) -> tuple[float, float, Floats]:
    """The base rate, its standard error, and how much each table counts in it."""
    error = UNKNOWN_ERROR if guess == 0.5 else GUESS_ERROR
    found = [(guess, error**2)]
    found += [(float(table.shares[..., 1].sum()), rate_variance(table)) for table in tables]
    # A bit b that is everybody's measures b (rate - a): times b, plus a, it is the rate.
    found += [(bit.mean * bit.signs[0] + bit.centre, bit.variance) for bit in bits if bit.asks_label_alone]
    precision = np.array([1 / max(variance, 1e-12) for _, variance in found])
    rate = float(np.sum(precision * np.array([value for value, _ in found])) / precision.sum())
    parts = precision[1 : 1 + len(tables)] / precision.sum()
    return min(max(rate, 0.01), 0.99), float(precision.sum() ** -0.5), parts


def _shares(
    coordinates: Coordinates, tables: Sequence[TableNoise], guessed: Mapping[str, Sequence[float]]
) -> tuple[Floats, Floats]:
    """How common each category is and the error of that, guesses and measurements pooled."""
    shares, errors = np.zeros(coordinates.size), np.zeros(coordinates.size)
    for name, card in zip(coordinates.names, coordinates.cards, strict=True):
        guess = guessed.get(name)
        total = np.full(card, 1 / card) if guess is None else np.array(guess, dtype=float)
        error = (UNKNOWN_ERROR if guess is None else GUESS_ERROR) * 2 / max(card, 2)
        precision = 1 / error**2
        total = total * precision
        for table in tables:
            if name in table.features:
                folding = table.folding(name, np.ones((card, 2)))
                weight = 1 / max(float(np.diag(table.covariance(folding)).mean()), 1e-12)
                total, precision = total + weight * (folding @ table.shares.reshape(-1)), precision + weight
        found = np.maximum(total / precision, RAREST)
        shares[coordinates.places[name]] = found / found.sum()
        errors[coordinates.places[name]] = precision**-0.5
    return shares, errors


def _contrast(coordinates: Coordinates, tables: Sequence[TableNoise], rate: float) -> tuple[Floats, Floats]:
    """(1 - rate) t_b1 - rate t_b0 of each category, pooled; a feature's sum to 0, as covariances with a label do.

    The variances are those of each contrast by itself, with the sum taken off and the base rate as if known.
    """
    contrast, variance = np.zeros(coordinates.size), np.full(coordinates.size, np.inf)
    for name, card in zip(coordinates.names, coordinates.cards, strict=True):
        asked = [table for table in tables if name in table.features]
        if not asked:
            continue
        pooled, noise = np.zeros(card), np.zeros((card, card))
        for table in asked:
            folding = table.weights[name] * table.folding(name, contrast_weights(np.full(card, rate)))
            pooled += folding @ table.shares.reshape(-1)
            noise += table.covariance(folding)
        centred = noise - noise.mean(axis=0) - noise.mean(axis=1)[:, None] + noise.mean()
        contrast[coordinates.places[name]] = pooled - pooled.mean()
        variance[coordinates.places[name]] = np.maximum(np.diag(centred), 1e-18)
    return contrast, variance


def _weights(tables: Sequence[TableNoise], rate: float) -> list[dict[str, float]]:
    """Each survey's part in the pooled contrasts of its features: by precision, summing to 1 over surveys."""
    precision = [{name: 1 / mean_contrast_variance(table, name, rate) for name in table.features} for table in tables]
    totals: dict[str, float] = {}
    for found in precision:
        for name, value in found.items():
            totals[name] = totals.get(name, 0.0) + value
    return [{name: value / totals[name] for name, value in found.items()} for found in precision]


def _second(coordinates: Coordinates, tables: Sequence[TableNoise]) -> tuple[Floats, Floats]:
    total, precision = np.zeros((coordinates.size, coordinates.size)), np.zeros((coordinates.size, coordinates.size))
    for table in tables:
        variance = cell_variances(table)
        for pair in combinations(table.features, 2):
            others = tuple(place for place, name in enumerate(table.features) if name not in pair)
            value = table.shares.sum(axis=(*others, table.shares.ndim - 1))
            weight = 1 / max(float(variance.sum(axis=(*others, table.shares.ndim - 1)).mean()), 1e-12)
            first, other = coordinates.places[pair[0]], coordinates.places[pair[1]]
            total[first, other] += weight * value
            precision[first, other] += weight
            total[other, first] += weight * value.T
            precision[other, first] += weight
    with np.errstate(divide="ignore", invalid="ignore"):
        second = np.where(precision > 0, total / precision, 0.0)
        variance = np.where(precision > 0, 1 / precision, np.inf)
    return second, variance


def _bits(
    coordinates: Coordinates,
    bits: Sequence[BitTally],
    rate: float,
    shares: Floats,
    share_error: Floats,
) -> tuple[Floats, Floats, Floats]:
    """E[b (y - a)] = b . contrast + (rate - a) b . shares: the second part is taken off, the error of shares added."""
    asked = [bit for bit in bits if not bit.asks_label_alone]
    signs, values, noise = np.zeros((len(asked), coordinates.size)), np.zeros(len(asked)), np.zeros(len(asked))
    for row, bit in enumerate(asked):
        place = coordinates.places[bit.feature]
        signs[row, place] = bit.signs
        mean_sign = float(signs[row, place] @ shares[place])
        off = rate - bit.centre
        values[row] = bit.mean - off * mean_sign
        doubt = 2 * float(share_error[place].max())
        noise[row] = bit.variance + (off * doubt) ** 2
    return signs, values, noise
