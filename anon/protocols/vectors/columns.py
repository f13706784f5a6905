"""A column of a linear model: a value, centred and clipped by public numbers, as an integer or a real from -1 to 1.

On a log scale ln(1 + value) is centred and clipped. Every value has a place: one that is missing, no number or not
finite counts as the centre.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import expm1, fsum, isfinite, log1p, sqrt
from typing import Final

from attrs import field

from anon.errors import InvalidValue
from anon.study.features import LARGEST_NUMBER, one_of
from anon.study.structuring import LEFT_OUT
from anon.values import frozen

CONSTANT: Final = "1"
"""The name of the column that is 1 in every record. No feature can have it."""
_ABOVE: Final = 1 + 2**-40
"""The rounding of some thousand squares stays below it."""


@frozen
class Column:
    """`(value - centre) / width`, clipped to [-1, 1]. As an integer: times `reach`, rounded.

    Centre and width are public: declared, never taken from the data. The name is that of the query. A larger `reach`
    gives a column more weight beside the others: its value is heard through less noise, and theirs through more. With
    the scale "log" both are of ln(1 + value), and a value below 0 counts as 0. Raises `InvalidValue` unless the width
    lies above 0 and `reach` is at least 1.

    >>> age = Column("age", centre=40, width=40, reach=100)
    >>> [age.integer(value) for value in (40, 60, 1000, None)]  # a missing value counts as the centre
    [0, 50, 100, 0]
    """

    name: str
    centre: float
    width: float
    reach: int = 1
    scale: str = field(default="linear", validator=one_of("linear", "log"), metadata=LEFT_OUT)

    def __attrs_post_init__(self) -> None:
        if not isfinite(self.centre) or not 0 < self.width < float("inf") or self.reach < 1:
            raise InvalidValue(f"column {self.name}: expected a finite centre, a width above 0, a reach of at least 1")

    def real(self, value: object) -> float:
        """Return the value from -1 to 1. Never raises."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return 0.0
        try:
            number = float(value)
        except OverflowError:
            return 0.0
        if self.scale == "log" and isfinite(number):
            number = log1p(max(number, 0.0))
        moved = (number - self.centre) / self.width
        return min(max(moved, -1.0), 1.0) if isfinite(moved) else 0.0

    def integer(self, value: object) -> int:
        """Return the value from -reach to reach. Never raises."""
        return round(self.real(value) * self.reach)

    def value(self, real: float) -> float:
        """Return the value in the column's own unit of a number that 1 stands for one width in. On a log scale it ends
        at 0 and at the largest number of a study."""
        moved = self.centre + real * self.width
        return expm1(min(max(moved, 0.0), log1p(LARGEST_NUMBER))) if self.scale == "log" else moved


@frozen
class Linear:
    """A linear model: a weight for each column's real value, in the unit of the target's real value or of log-odds.

    `target`: the column that is predicted. None: the log-odds of the positive label are.
    """

    columns: tuple[Column, ...]
    weights: tuple[float, ...]
    target: Column | None = None

    def __attrs_post_init__(self) -> None:
        if len(self.columns) != len(self.weights) or not all(map(isfinite, self.weights)):
            raise InvalidValue("linear model: expected a finite weight for each column")

    def score(self, values: Mapping[str, object]) -> float:
        """Return the prediction from raw values: in the target's own unit, or as log-odds. Never raises for a value."""
        reals = (column.real(values.get(column.name)) for column in self.columns)
        total = fsum(weight * real for weight, real in zip(self.weights, reals, strict=True))
        return total if self.target is None else self.target.value(total)


def reals_of(columns: Sequence[Column], values: Mapping[str, object]) -> list[float]:
    """Return the real values of one record, column by column."""
    return [column.real(values.get(column.name)) for column in columns]


def row_of(columns: Sequence[Column], values: Mapping[str, object], norm: Fraction) -> list[float]:
    """Return the columns of one record, of L2 norm at most 1: over the root of their number, and over `norm`.

    `norm`: the longest record, as a part of one with all columns at their ends. Longer ones are shrunk. Never raises
    for a value.
    """
    longest = float(norm) * sqrt(len(columns)) * _ABOVE
    row = [real / longest for real in reals_of(columns, values)]
    length = sqrt(fsum(real * real for real in row))
    return row if length <= 1 / _ABOVE else [real / (length * _ABOVE) for real in row]
