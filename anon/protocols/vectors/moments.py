"""Second moments as a sum: the products of every two columns of a record, from which any column is regressed.

A record becomes integers z first: centred, clipped, rounded, and shrunk to an L2 norm of at most `radius`. The products
of integers are integers, so a record's vector needs no rounding of its own, and its bounds have no rounding term.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import accumulate

from attrs import field

from anon.errors import InvalidValue
from anon.noise.scaling import Neighbours, shrunk
from anon.protocols.vectors.columns import Column
from anon.protocols.vectors.sensitivity import Unit, rounded
from anon.values import frozen

Record = Mapping[str, object]
"""A row's values by the names of its queries."""


@frozen
class MomentSums:
    """The sums of z_i z_j over all rows, for i <= j: the upper triangle, row by row.

    `radius_squared`: the largest sum of squares of z. `rows`: the most rows that a peer may have. If the unit is a
    person, the peer's rows are averaged, so that everybody counts once. If it is a record, they are added up.
    Raises `InvalidValue` without a column, for a name twice, and for numbers below 1.
    """

    columns: tuple[Column, ...]
    radius_squared: int
    unit: Unit = "person"
    rows: int = 1
    squares: tuple[int, ...] = field(init=False, repr=False)
    """The largest z_i^2 of each column, the largest first."""

    def __attrs_post_init__(self) -> None:
        if not self.columns or len({column.name for column in self.columns}) != len(self.columns):
            raise InvalidValue("columns: expected at least one, and no name twice")
        if self.radius_squared < 1 or self.rows < 1:
            raise InvalidValue("radius, rows: expected at least 1")
        object.__setattr__(self, "squares", tuple(sorted((column.reach**2 for column in self.columns), reverse=True)))

    @property
    def length(self) -> int:
        """d (d + 1) / 2 for d columns."""
        return len(self.columns) * (len(self.columns) + 1) // 2

    @property
    def radius(self) -> int:
        """The largest sum of squares that a record has: the declared one, or that of all columns at their reach."""
        return min(self.radius_squared, sum(self.squares))

    @property
    def norm_squared(self) -> int:
        """Of one unit; a peer of several records counts for as many units."""
        squared = (self.radius**2 + self._fourth_powers(self.radius)) // 2
        return rounded(squared, self.length, 1) if self._averages else squared

    @property
    def contribution_norm_squared(self) -> int:
        """Of a whole peer's contribution: what its proof of validity states."""
        return self.norm_squared * (self.rows**2 if self.unit == "record" else 1)

    @property
    def largest(self) -> int:
        """The largest entry of a whole peer's contribution, or of its negative."""
        return self.squares[0] * (self.rows if self.unit == "record" else 1)

    def sensitivity_squared(self, neighbours: Neighbours) -> int:
        """Of one unit. Attained by records with no column in common, where there are columns enough."""
        if neighbours == "add-remove":
            return self.norm_squared
        total, radius = sum(self.squares), self.radius
        ends = {2 * total - used for used in accumulate(self.squares, initial=0)} | {radius, total, 2 * radius}
        inside = [end for end in ends if radius <= end <= 2 * radius]
        squared = int(max(self._apart(both) for both in inside))
        return rounded(squared, self.length, 2) if self._averages else squared

    def changed(self, neighbours: Neighbours) -> int:
        """How many entries one unit changes at most."""
        return min(self.length, self.sensitivity_squared(neighbours))

    def integers(self, record: Record) -> list[int]:
        """Return z of one row. Never raises for a value."""
        return shrunk([column.integer(record.get(column.name)) for column in self.columns], self.radius_squared)

    def vector(self, records: Sequence[Record]) -> list[int]:
        """Return a peer's contribution from its rows; without rows, zeros. Raises `InvalidValue` for too many."""
        if len(records) > self.rows:
            raise InvalidValue(f"rows: expected at most {self.rows}, got {len(records)}; draw so many first")
        size = len(self.columns)
        sums = [0] * self.length
        for record in records:
            z = self.integers(record)
            held = [place for place, value in enumerate(z) if value]
            for at, i in enumerate(held):
                start = i * size - i * (i + 1) // 2
                for j in held[at:]:
                    sums[start + j] += z[i] * z[j]
        return [round(Fraction(total, len(records))) for total in sums] if self._averages and records else sums

    @property
    def _averages(self) -> bool:
        return self.unit == "person" and self.rows > 1

    def _fourth_powers(self, budget: int) -> int:
        """An upper bound of the sum of z_i^4, where z_i^2 are within their limits and sum up to at most `budget`.

        z_i^4 <= limit z_i^2, so the columns with the largest limits are filled first.
        """
        total = 0
        for limit in self.squares:
            taken = min(limit, budget)
            total, budget = total + limit * taken, budget - taken
        return total

    def _apart(self, both: int) -> Fraction:
        """The largest squared distance of two records' products where their squared norms sum up to `both`."""
        radius, total = self.radius, sum(self.squares)
        return Fraction(radius**2 + (both - radius) ** 2 + self._fourth_powers(min(both, 2 * total - both)), 2)
