"""The noise of one survey's unbiased shares: a covariance matrix in few factors, and the sums that are read off it.

The mechanism correlates the cells of a survey; `TableNoise` keeps their covariance without its m x m entries.

1. `unrelated_cells`: the cells that a survey would have if nothing went with anything.
2. `steadied_noise`: the covariance at shares between these and the counted ones, as far as noise explains the distance.
3. `table_noise`: the covariance at given shares: a diagonal, and m x 1 factors (krr) or m x 3 (the others).
4. `rate_variance`, `mean_contrast_variance` and `cell_variances` read off what the learner and its test weigh by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod

import numpy as np
from attrs import field, frozen

from aggregator.protocols.additive.reconstruct import Floats, SurveyTally
from anon.ldp import SCALE
from anon.ldp.simplex import nearest_shares


@frozen(eq=False)
class TableNoise:
    """One survey's unbiased shares, shaped (card, ..., 2), and their covariance diag(`extra`) + F G F'.

    `factors` F: shape (m, r); `middle` G: shape (r, r). `weights`: its part in each feature's pooled
    contrast.
    """

    features: tuple[str, ...]
    n: int
    shares: Floats
    extra: Floats
    factors: Floats
    middle: Floats
    weights: Mapping[str, float] = field(factory=dict)

    def covariance(self, folding: Floats) -> Floats:
        """Of `folding` @ shares, for a folding of shape (k, m)."""
        low = folding @ self.factors
        found: Floats = (folding * self.extra) @ folding.T + low @ self.middle @ low.T
        return found

    def folding(self, name: str, weights: Floats) -> Floats:
        """The rows that sum a feature's categories out of all cells, with `weights` (card, 2) by label; (card, m)."""
        cards = self.shares.shape[:-1]
        member = _membership(cards, self.features.index(name))
        found: Floats = (member[:, :, None] * weights[:, None, :]).reshape(len(member), -1)
        return found


@lru_cache(maxsize=4096)
def _membership(cards: tuple[int, ...], place: int) -> Floats:
    """Which cells belong to each category of one feature, shape (card, cells)."""
    index = np.unravel_index(np.arange(prod(cards)), cards)[place]
    found: Floats = (index[None, :] == np.arange(cards[place])[:, None]).astype(np.float64)
    return found


def table_noise(tally: SurveyTally, plausible: Floats, weights: Mapping[str, float] | None = None) -> TableNoise:
    """Unbiased shares, and the covariance that `reconstruct` has at these plausible shares (m,), in few factors."""
    m, n = tally.mechanism.m, tally.n
    keep, other = tally.mechanism.p / SCALE, tally.mechanism.q / SCALE
    scale = n * (keep - other) ** 2
    shares = ((tally.counts / n - other) / (keep - other)).reshape((*tally.cards, 2))
    rates = other + (keep - other) * plausible
    if tally.mechanism.name == "krr":
        extra, factors, middle = rates / scale, rates[:, None], np.array([[-1 / scale]])
    else:
        first, second = (float(chance) for chance in tally.mechanism.joint())
        factors = np.column_stack([np.ones(m), plausible, rates])
        middle = np.array([[second, first - second, 0], [first - second, 0, 0], [0, 0, -1]]) / scale
        extra = (rates - second - 2 * (first - second) * plausible) / scale
    return TableNoise(tally.features, n, shares, extra, factors, middle, weights or {})


def unrelated_cells(shares: Sequence[Floats], rate: float) -> Floats:
    """The cells (m,) of features with these shares, none of which goes with another or with the label."""
    cells = np.array([1 - rate, rate])
    for share in reversed(shares):
        cells = np.multiply.outer(share, cells)
    found: Floats = cells.reshape(-1)
    return found


def steadied_noise(tally: SurveyTally, unrelated: Floats, weights: Mapping[str, float]) -> TableNoise:
    """A survey with its covariance at shares drawn towards unrelated ones, as far as its noise explains the distance.

    In a small survey a cell's own count says little about its variance. Where the two go together, estimates weighted
    by it are biased and a test takes chance for a signal. How far: as James and Stein.
    """
    found = table_noise(tally, unrelated, weights)
    apart = found.shares.reshape(-1) - unrelated
    distance = float(apart @ apart)
    kept = max(0.0, 1 - float(cell_variances(found).sum()) / distance) if distance > 0 else 0.0
    return table_noise(tally, np.array(nearest_shares((unrelated + kept * apart).tolist())), weights)


def rate_variance(table: TableNoise) -> float:
    """The variance of the base rate: of the positive cells' sum."""
    positive = np.tile([0.0, 1.0], table.shares.size // 2)
    return float(table.covariance(positive[None, :])[0, 0])


def contrast_weights(rates: Floats) -> Floats:
    """By category and label, what a share counts in the contrast against that category's rate: shape (card, 2)."""
    believed = np.clip(rates, 0.01, 0.99)
    return np.column_stack([-believed, 1 - believed])


def mean_contrast_variance(table: TableNoise, name: str, rate: float) -> float:
    """The mean variance of one feature's contrasts at this base rate, above zero."""
    card = table.shares.shape[table.features.index(name)]
    folding = table.folding(name, contrast_weights(np.full(card, rate)))
    return max(float(np.trace(table.covariance(folding))) / float(card), 1e-12)


def cell_variances(table: TableNoise) -> Floats:
    """The variance of each cell by itself, shaped as the shares; sums take cells as independent."""
    low = np.einsum("ir,rs,is->i", table.factors, table.middle, table.factors)
    found: Floats = (table.extra + low).reshape(table.shares.shape)
    return found
