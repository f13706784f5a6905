"""Tables that were summed exactly and then made noisy, as the moments of the additive model.

All tables are of the same n people, and n is public. So a table's cells are corrected to sum up to n. The moments of
all tables deviate together from those of the population, by who happened to take part. That part of the noise has the
covariance of the categories themselves. The parties' noise is independent in every cell.

A declared guess of a share never enters a contrast: a wrong guess would look like an effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import prod

import numpy as np
from attrs import field, frozen

from aggregator.protocols.additive.learner import indicator_covariance
from aggregator.protocols.additive.moments import GUESS_ERROR, RAREST, UNKNOWN_ERROR, Coordinates, NoisyMoments
from aggregator.protocols.additive.reconstruct import Floats
from aggregator.protocols.sum.published import NoisySum
from anon.errors import Malformed
from anon.protocols.vectors.tables import Block, TableSums


@frozen(eq=False)
class SummedMoments(NoisyMoments):
    """Moments of one sum. `contrast_variance` is that of the parties' noise alone; `known`: see `_noise`."""

    known: Floats = field(kw_only=True)

    def noise(self, effects: Floats) -> Floats:
        """The covariance of the measured contrasts. `effects` (D,) do not matter: no category's rate is noisier."""
        return self.known


def _noise(moments: NoisyMoments, units: int) -> Floats:
    """The covariance of the measured contrasts of `units` contributions, whatever the contrasts are.

    Where no table says how two features go together, chance in who took part is taken to move each by itself.

    A feature's contrasts sum to 0. Its block has a positive number in that direction, so that it can be inverted.
    """
    coordinates, rate, measured = moments.coordinates, moments.rate, moments.measured
    covariance, _ = indicator_covariance(moments)
    whole = rate * (1 - rate) / units * covariance
    alike = np.zeros(coordinates.size)
    for place in coordinates.places.values():
        card = place.stop - place.start
        centre = np.eye(card) - 1 / card
        own = np.where(measured[place], moments.contrast_variance[place], 0.0)
        whole[place, place] += centre @ np.diag(own) @ centre
        alike[place] = centre @ moments.shares[place]
    whole += moments.rate_error**2 * np.outer(alike, alike)
    for place in coordinates.places.values():
        whole[place, place] += max(float(np.trace(whole[place, place])), 1e-18) / (place.stop - place.start) ** 2
    found: Floats = whole[np.ix_(measured, measured)]
    return found


@frozen(eq=False)
class _Table:
    """A block's shares, shaped (card, ..., 2 or 1), summing to 1, and the variance of each by the parties' noise."""

    block: Block
    shares: Floats
    variance: float

    def marginal(self, name: str) -> tuple[Floats, float]:
        """Shares by category of one feature and label, (card, 2) or (card, 1), and the variance of each."""
        kept = (self.block.features.index(name), self.shares.ndim - 1)
        others = tuple(axis for axis in range(self.shares.ndim) if axis not in kept)
        merged = prod(self.shares.shape[axis] for axis in others)
        return self.shares.sum(axis=others), self.variance * merged


def gather_sums(
    coordinates: Coordinates,
    design: TableSums,
    published: NoisySum,
    guessed_shares: Mapping[str, Sequence[float]],
    guessed_rate: float,
) -> SummedMoments:
    """The moments of a published sum. `guessed_shares`: by feature, where declared. A rate of 1/2 is no guess.

    Raises `Malformed` for a sum of another length, and for categories that the study does not have.
    """
    tables = _tables(coordinates, design, published)
    size, n = coordinates.size, published.units
    rate, rate_error = _rate([table for table in tables if table.block.labelled], guessed_rate, n)
    shares, contrast, contrast_variance = np.zeros(size), np.zeros(size), np.full(size, np.inf)
    for name, card in zip(coordinates.names, coordinates.cards, strict=True):
        place = coordinates.places[name]
        found = [table.marginal(name) for table in tables if name in table.block.features]
        shares[place] = _shares(found, guessed_shares.get(name), card)
        labelled = [marginal for marginal in found if marginal[0].shape[1] == 2]
        if labelled:
            precision = np.array([1 / variance for _, variance in labelled])
            each = np.array([cells @ np.array([-rate, 1 - rate]) for cells, _ in labelled])
            pooled = precision @ each / precision.sum()
            contrast[place] = pooled - pooled.mean()
            contrast_variance[place] = (rate**2 + (1 - rate) ** 2) / precision.sum()
    second, second_variance = _second(coordinates, tables)
    nothing = np.zeros(0)
    told = (
        coordinates, rate, rate_error, shares, contrast, contrast_variance, second, second_variance,
        np.zeros((0, size)), nothing, nothing, dict.fromkeys(coordinates.names, n),
    )  # fmt: skip
    return SummedMoments(*told, known=_noise(NoisyMoments(*told), n))


def _tables(coordinates: Coordinates, design: TableSums, published: NoisySum) -> list[_Table]:
    cards = dict(zip(coordinates.names, coordinates.cards, strict=True))
    variance = float(published.variance) / published.units**2
    tables = []
    for block, cells in zip(design.blocks, design.split(published.values), strict=True):
        if any(cards.get(name) != card for name, card in zip(block.features, block.cards, strict=True)):
            raise Malformed(f"block of {', '.join(block.features)}: other features or categories than the study's")
        shares = np.array([float(cell) for cell in cells]) / published.units
        shares += (1 - shares.sum()) / len(shares)
        tables.append(_Table(block, shares.reshape((*block.cards, 2 if block.labelled else 1)), variance))
    return tables


def _rate(tables: Sequence[_Table], guess: float, units: int) -> tuple[float, float]:
    """The base rate and its standard error: the tables' by precision, then with the guess.

    All tables have the same people, so that the error of who takes part is not averaged over them.
    """
    error = UNKNOWN_ERROR if guess == 0.5 else GUESS_ERROR
    rates, precision = [guess], [1 / error**2]
    if tables:
        each = np.array([4 / (table.variance * table.shares.size) for table in tables])
        found = np.array([float(table.shares[..., 1].sum()) for table in tables])
        precision.append(1 / (1 / float(each.sum()) + guess * (1 - guess) / units))
        rates.append(float(each @ found / each.sum()))
    rate = sum(estimate * weight for estimate, weight in zip(rates, precision, strict=True)) / sum(precision)
    return min(max(rate, 0.01), 0.99), sum(precision) ** -0.5


def _shares(found: Sequence[tuple[Floats, float]], guess: Sequence[float] | None, card: int) -> Floats:
    """How common each category of a feature is: a guess and all tables by precision."""
    error = (UNKNOWN_ERROR if guess is None else GUESS_ERROR) * 2 / max(card, 2)
    precision = 1 / error**2
    total = precision * (np.full(card, 1 / card) if guess is None else np.array(guess, dtype=float))
    for cells, variance in found:
        weight = 1 / (variance * cells.shape[1])
        total, precision = total + weight * cells.sum(axis=1), precision + weight
    shares = np.maximum(total / precision, RAREST)
    found_shares: Floats = shares / shares.sum()
    return found_shares


def _second(coordinates: Coordinates, tables: Sequence[_Table]) -> tuple[Floats, Floats]:
    """How often two categories of different features go together, and the variance; infinite where not asked."""
    total, precision = np.zeros((coordinates.size, coordinates.size)), np.zeros((coordinates.size, coordinates.size))
    for table in tables:
        for pair in combinations(table.block.features, 2):
            kept = [table.block.features.index(name) for name in pair]
            others = tuple(axis for axis in range(table.shares.ndim) if axis not in kept)
            value = table.shares.sum(axis=others)
            weight = 1 / (table.variance * prod(table.shares.shape[axis] for axis in others))
            first, other = coordinates.places[pair[0]], coordinates.places[pair[1]]
            total[first, other] += weight * value
            precision[first, other] += weight
            total[other, first] += weight * value.T
            precision[other, first] += weight
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(precision > 0, total / precision, 0.0), np.where(precision > 0, 1 / precision, np.inf)
