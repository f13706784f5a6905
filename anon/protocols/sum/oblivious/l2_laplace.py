"""Noise for pure epsilon by the L2 norm: the density proportional to exp(-|y| / scale) over real vectors, rounded.

Chaudhuri and Monteleoni 2008. A draw has a length of Gamma(d, scale) and a uniform direction. Integer vectors are added
to it, so that rounding the noise and rounding the sum are the same.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction

from attrs import field

from anon.noise.bernoulli import RandomBytes
from anon.values import frozen

_DIGITS = 60
_WORD = 32


@frozen
class L2Laplace:
    """Integer vectors near a real one with density proportional to exp(-|y| / scale), for a scale above 0 (else
    `ValueError`).

    Added to an integer sum of L2 sensitivity s it gives pure epsilon s / scale. Uniform numbers have 256 bits, and
    logarithms and roots 60 digits. So a vector differs from the exact one's rounding with a chance below 1e-40 for
    scales below 1e15: by that much epsilon is not pure.
    """

    scale: Fraction = field()

    def __attrs_post_init__(self) -> None:
        if self.scale <= 0:
            raise ValueError(f"the scale of L2 Laplace noise lies above 0, got {self.scale}")

    def vector(self, length: int, random_bytes: RandomBytes) -> list[int]:
        """Return one vector."""
        with localcontext(Context(prec=_DIGITS, rounding=ROUND_HALF_EVEN)):
            radius = -sum((_uniform(random_bytes).ln() for _ in range(length)), Decimal(0))
            normals = [one for _ in range(0, length, 2) for one in _normals(random_bytes)][:length]
            scaled = radius * self.scale.numerator / self.scale.denominator
            stretch = scaled / sum((one * one for one in normals), Decimal(0)).sqrt()
            return [int((stretch * one).to_integral_value()) for one in normals]


def _uniform(random_bytes: RandomBytes) -> Decimal:
    """In (0, 1)."""
    return Decimal(2 * int.from_bytes(random_bytes(_WORD), "big") + 1) / (1 << 8 * _WORD + 1)


def _normals(random_bytes: RandomBytes) -> tuple[Decimal, Decimal]:
    """Two standard normal values (Marsaglia and Bray 1964)."""
    while True:
        x, y = (2 * _uniform(random_bytes) - 1 for _ in range(2))
        square = x * x + y * y
        if square < 1:
            stretch = (-2 * square.ln() / square).sqrt()
            return x * stretch, y * stretch
