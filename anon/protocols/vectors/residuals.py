"""The two vectors of a calibrated rule: a mark in the table of score by label, and a residual by codes of categories.

Both have one length, one bound and one proof, so that no packet tells by its size which of them it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt
from typing import Final

from attrs import field

from anon.errors import InvalidValue, Malformed
from anon.noise.scaling import Neighbours, Scaling
from anon.protocols.vectors.rule import (
    BINS,
    Calibration,
    DeclaredRule,
    MeanResidual,
    RuleModel,
    calibrated,
    codes,
    corrected,
)
from anon.values import frozen

CELLS: Final = 2 * BINS
_FINE: Final = 2**20
Summed = tuple[Sequence[int], int, Fraction]
"""A noisy sum: its values, over how many people it is, and the variance of the noise on each value."""


@frozen
class ResidualSums:
    """The sum of u phi over all people, times `scale`, rounded. The unit is a person, who has one record.

    u is the label less its probability, cut at `clip`. phi has for each feature a code of length 1, so that its own
    length is the root of the number of features. Raises `InvalidValue` for cards, a scale or a clip below any use.
    """

    cards: tuple[int, ...]
    scale: int
    clip: Fraction
    scaling: Scaling = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if min(self.cards, default=0) < 1 or self.scale < 1 or not 0 < self.clip <= 1:
            raise InvalidValue("residuals: expected features, a scale, and a clip from above 0 to 1")
        root = Fraction(isqrt(len(self.cards) * _FINE**2) + 1, _FINE)
        object.__setattr__(self, "scaling", Scaling(max(1, self.told), self.scale, self.clip * root))

    @property
    def told(self) -> int:
        """The entries that are not always 0: one less for each feature than it has categories."""
        return sum(card - 1 for card in self.cards)

    @property
    def length(self) -> int:
        """All entries: room for the table, too."""
        return max(CELLS, self.told)

    @property
    def contribution_norm_squared(self) -> int:
        """The largest sum of squares of one person's vector, its rounding included. The proof of validity states it."""
        return self.scaling.norm_squared

    def sensitivity_squared(self, neighbours: Neighbours) -> int:
        """Of one person in one round: reached by the same categories with the opposite label, but for rounding."""
        return self.scaling.sensitivity_squared(neighbours)

    def changed(self, neighbours: Neighbours) -> int:
        """How many entries one person changes at most."""
        return min(self.told, self.sensitivity_squared(neighbours))

    def vector(self, categories: Sequence[int], label: int, model: RuleModel) -> list[int]:
        """Return a person's contribution at this model."""
        residual = min(max(label - model.chance(categories), -float(self.clip)), float(self.clip))
        coded = [entry for card, at in zip(self.cards, categories, strict=True) for entry in codes(card)[at]]
        told = self.scaling.integers([residual * entry for entry in coded]) if coded else []
        return told + [0] * (self.length - len(told))

    def mean(self, summed: Summed) -> MeanResidual:
        """Return a noisy sum as a mean. Raises `Malformed` for another length."""
        values, people, noise = summed
        _demand(values, self.length)
        whole = self.scale * people
        return MeanResidual(tuple(value / whole for value in values[: self.told]), float(noise) / whole**2)


@frozen
class ScoreSums:
    """The table of score by label: a mark in one cell a person, as large as a vector of `residuals` may be."""

    residuals: ResidualSums

    @property
    def mark(self) -> int:
        """The integer that stands for a person in a cell."""
        return isqrt(self.residuals.contribution_norm_squared)

    @property
    def length(self) -> int:
        """All entries; those beyond the cells are 0."""
        return self.residuals.length

    @property
    def contribution_norm_squared(self) -> int:
        """That of the residuals, whose proof it is."""
        return self.residuals.contribution_norm_squared

    def sensitivity_squared(self, neighbours: Neighbours) -> int:
        """One mark goes, and where a person is replaced another comes. Reached; there is no rounding."""
        return self.mark**2 * (2 if neighbours == "replace-one" else 1)

    def changed(self, neighbours: Neighbours) -> int:
        """One cell, or two."""
        return 2 if neighbours == "replace-one" else 1

    def vector(self, score_bin: int, label: int) -> list[int]:
        """Return a person's contribution."""
        return [self.mark * (place == 2 * score_bin + label) for place in range(self.length)]

    def cells(self, summed: Summed) -> tuple[list[float], int, float]:
        """Return the counts of a noisy sum, over how many people, and the variance of each. Raises `Malformed` for
        another length."""
        values, people, noise = summed
        _demand(values, self.length)
        return [value / self.mark for value in values[:CELLS]], people, float(noise) / self.mark**2


def _demand(values: Sequence[int], length: int) -> None:
    if len(values) != length:
        raise Malformed(f"sums: expected {length} entries, got {len(values)}")


def ruled(rule: DeclaredRule, residuals: ResidualSums, sums: Sequence[Summed]) -> tuple[Calibration, RuleModel]:
    """Return what follows from the first rounds: the table of score by label, then residuals. Raises `Malformed` for
    none, and for one of another length."""
    if not sums:
        raise Malformed("sums: expected the table of score by label")
    first, *rounds = sums
    cells, people, noise = ScoreSums(residuals).cells(first)
    found = calibrated(cells, people, noise, rule.guess)
    return found, rule.model(found, corrected(rule.cards, found, people, [residuals.mean(summed) for summed in rounds]))
