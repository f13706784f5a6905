"""Weights of members' own models as a sum, from which their mean follows: each fits its records alone, and sends once.

A record becomes a row of norm at most 1 (`anon.protocols.vectors.columns.row_of`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil, sqrt
from typing import Final

from attrs import field

from anon.errors import InvalidValue, Malformed
from anon.noise.scaling import Neighbours, Scaling
from anon.protocols.vectors.columns import Column, row_of
from anon.protocols.vectors.logistic import LARGEST, LEAST, fit, longest_weights, moved_by_one
from anon.protocols.vectors.sensitivity import Unit, rounded
from anon.values import frozen

FINEST: Final = 2**40
"""The largest scale: weights in smaller units say no more."""
_HALVES: Final = 8
"""Of two vectors' roundings: an entry is rounded once, by 1/2, and once towards 0 where the vector is shrunk."""

Record = Mapping[str, object]
"""A row's values by the names of its queries."""


@frozen
class AveragedWeights:
    """The sum over members of the weights of regularised logistic regression on their own records, times `scale`.

    `strength`: lambda. `fewest`: a member with fewer records is averaged over so many, so that a record moves its
    weights by at most 2 / (lambda fewest), however many there are (`anon.protocols.vectors.logistic`). `clip`: longer
    weights are shrunk; none of more than `longest_weights` is. `rows`: the most records of a member. `norm`: the
    longest record, as a part of one with all columns at their ends; longer ones are shrunk. If the unit is a person, a
    member's weights are replaced as a whole. Raises `InvalidValue` for other numbers.
    """

    columns: tuple[Column, ...]
    scale: int
    strength: Fraction
    clip: Fraction
    fewest: int = 1
    unit: Unit = "person"
    rows: int = 1
    norm: Fraction = Fraction(1)
    scaling: Scaling = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if not self.columns or not 1 <= self.scale <= FINEST or self.clip <= 0:
            raise InvalidValue(f"averaging: expected a column, a scale from 1 to {FINEST}, and a clip above 0")
        if not LEAST <= self.strength <= LARGEST:
            raise InvalidValue(f"averaging: expected a lambda from {LEAST} to {LARGEST}")
        if not 0 < self.norm <= 1:
            raise InvalidValue("averaging: expected a norm above 0, and at most 1")
        if not 1 <= self.fewest <= self.rows:
            raise InvalidValue(f"averaging: expected 1 to {self.rows} records as the fewest, got {self.fewest}")
        longest = min(self.clip, longest_weights(self.strength))
        object.__setattr__(self, "scaling", Scaling(len(self.columns), self.scale, longest))

    @property
    def length(self) -> int:
        """One entry for each column."""
        return len(self.columns)

    @property
    def norm_squared(self) -> int:
        """Of one unit, its rounding included: of a record, as far as it can move its member's weights."""
        return self.scaling.norm_squared if self.unit == "person" else self._moved_squared()

    @property
    def contribution_norm_squared(self) -> int:
        """Of a whole member's contribution: what its proof of validity states."""
        return self.scaling.norm_squared

    def sensitivity_squared(self, neighbours: Neighbours) -> int:
        """Of one unit, its rounding included. Shrinking to a ball moves no two weights apart. A record that is left out
        counts as one replaced: either may take its member's weights from one end of the ball to the other."""
        if self.unit == "person":
            return self.scaling.sensitivity_squared(neighbours)
        return min(self.scaling.sensitivity_squared("replace-one"), self._moved_squared())

    def changed(self, neighbours: Neighbours) -> int:
        """How many entries one unit changes at most."""
        return min(self.length, self.sensitivity_squared(neighbours))

    def vector(self, records: Sequence[tuple[Record, int]]) -> list[int]:
        """Return a member's contribution from its rows with their labels, 0 or 1; zeros without rows. Raises
        `InvalidValue` for too many rows."""
        if len(records) > self.rows:
            raise InvalidValue(f"rows: expected at most {self.rows}, got {len(records)}; draw so many first")
        if not records:
            return [0] * self.length
        rows = [self.row(record) for record, _label in records]
        return self.scaling.integers(fit(rows, [label for _record, label in records], self.strength, self.fewest))

    def row(self, record: Record) -> list[float]:
        """The columns of a record, of norm at most 1. Never raises for a value."""
        return row_of(self.columns, record, self.norm)

    def mean(self, values: Sequence[int], members: int) -> list[float]:
        """Return the mean weights of a noisy sum over so many members, of the columns' own real values. Raises
        `Malformed` for another length."""
        if len(values) != self.length or members < 1:
            raise Malformed(f"sums: expected {self.length}, of at least one member")
        unit = members * self.scale * float(self.norm) * sqrt(self.length)
        return [value / unit for value in values]

    def _moved_squared(self) -> int:
        moved = self.scale * moved_by_one(self.strength, self.fewest)
        return rounded(ceil(moved**2), self.length, _HALVES)


def scale_for(length: int, moved: Fraction) -> int:
    """The power of two at which rounding two vectors of this length is a hundredth of the distance `moved`, or less."""
    wanted = 50 * _HALVES * sqrt(length) / float(moved)
    scale = 1
    while scale < min(wanted, FINEST):
        scale *= 2
    return scale
