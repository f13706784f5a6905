"""The change of an exact sum by one unit, as squares of L2 norms: integers, rounded to the side that promises less.

A unit is one person with all of their records, or one record: all rows of one key. Its vector is replaced by another
one, or left out (`anon.noise.scaling.Neighbours`). The proofs are on the page docs/explanation/exact-sums.md.
"""

from __future__ import annotations

from math import isqrt
from typing import Literal, Protocol

from anon.noise.scaling import Neighbours

Unit = Literal["person", "record"]
"""The thing that is hidden: a person with all of their records, or a single record."""


class SummedVector(Protocol):
    """A vector that peers contribute. `length`: its entries."""

    @property
    def length(self) -> int: ...

    @property
    def norm_squared(self) -> int:
        """The largest sum of squares of one unit's vector."""

    def sensitivity_squared(self, neighbours: Neighbours) -> int:
        """The largest sum of squares by which one unit changes the sum."""

    def changed(self, neighbours: Neighbours) -> int:
        """How many entries one unit changes at most."""


def rounded(squared: int, length: int, halves: int) -> int:
    """Return the square of a norm after rounding: (sqrt(squared) + halves sqrt(length) / 2)^2, rounded down.

    Rounding to the nearest integer moves an entry by at most 1/2, a vector by at most sqrt(length) / 2. A difference of
    two rounded vectors has two `halves`.
    """
    twice = 4 * squared + halves * halves * length + isqrt(16 * halves * halves * squared * length)
    return twice // 4


def ball_of(squared: int) -> tuple[int, int]:
    """Return bits and radius of the smallest ball of signed integers that holds every vector of this sum of squares."""
    radius = isqrt(squared - 1) + 1
    return radius.bit_length() + 1, radius
