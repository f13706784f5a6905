"""Real vectors as integer vectors by a public scale, within a norm that holds after rounding."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isfinite, isqrt
from typing import Literal

from attrs import field, frozen

Neighbours = Literal["add-remove", "replace-one"]
"""The change that is hidden: one person's vector is left out or put in, or is replaced by another person's."""


@frozen
class Scaling:
    """Vectors of so many real values with L2 norm at most `norm`, as integers: each value times `scale`, rounded.

    Promise: the integer vector's sum of squares is at most `norm_squared`, whatever values come in. So the sum over
    persons has the L2 sensitivity that `sensitivity_squared` states. Raises `ValueError` unless length and scale are at
    least 1 and the norm lies above 0.

    >>> scaling = Scaling(length=2, scale=1000, norm=Fraction(1))
    >>> scaling.integers([0.6, -0.8]), scaling.integers([300.0, -400.0]), scaling.integers([float("nan"), 1.0])
    ([600, -800], [600, -800], [0, 1000])
    """

    length: int
    scale: int
    norm: Fraction
    norm_squared: int = field(init=False)
    """The largest sum of squares of an integer vector: (scale x norm + sqrt(length) / 2)^2, rounded down.

    Rounding moves each entry by at most 1/2, and a vector by at most sqrt(length) / 2.
    """

    def __attrs_post_init__(self) -> None:
        if self.length < 1 or self.scale < 1 or self.norm <= 0:
            raise ValueError("a scaling needs a length and a scale of at least 1 and a norm above 0")
        reach = self.scale * self.norm
        p, q = reach.numerator, reach.denominator
        # A floor within a floor is the exact square rounded down: isqrt loses nothing.
        squares = 4 * p * p + self.length * q * q + isqrt(16 * p * p * q * q * self.length)
        object.__setattr__(self, "norm_squared", squares // (4 * q * q))

    def sensitivity_squared(self, neighbours: Neighbours) -> int:
        """Return the square of the integer sum's L2 sensitivity, rounding included."""
        # Two vectors at opposite ends of the ball are two norms apart.
        return self.norm_squared * (4 if neighbours == "replace-one" else 1)

    def integers(self, values: Sequence[float | Fraction]) -> list[int]:
        """Return the integer vector of these values; a value that is not finite counts as 0.

        A vector beyond `norm_squared` is shrunk in its own direction. A vector within `norm` is only rounded. Raises
        `ValueError` for another length.
        """
        if len(values) != self.length:
            raise ValueError(f"expected a vector of {self.length} values, got {len(values)}")
        # A double is a fraction exactly, so this rounding is the only one, by at most 1/2.
        rounded = [round(Fraction(value) * self.scale) if value and _is_finite(value) else 0 for value in values]
        return shrunk(rounded, self.norm_squared)

    def reals(self, integers: Sequence[int]) -> list[Fraction]:
        """Return integers, such as those of a sum, in the unit of the values."""
        return [Fraction(value, self.scale) for value in integers]


def shrunk(integers: Sequence[int], norm_squared: int) -> list[int]:
    """Return the vector, drawn towards 0 in its own direction where its sum of squares is beyond `norm_squared`.

    No entry becomes larger, and none changes its sign.
    """
    squares = sum(value * value for value in integers)
    if squares <= norm_squared:
        return list(integers)
    digits = squares.bit_length()
    factor = isqrt((norm_squared << 2 * digits) // squares)
    # Every rounding is towards 0, so the sum of squares stays within the bound.
    return [(abs(value) * factor >> digits) * (1 if value > 0 else -1) for value in integers]


def _is_finite(value: float | Fraction) -> bool:
    return not isinstance(value, float) or isfinite(value)
