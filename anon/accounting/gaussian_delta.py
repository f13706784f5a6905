"""Delta by epsilon of integer vectors with discrete Gaussian noise: exact for one entry, an upper bound for many.

One entry. With sensitivity d the least delta is P[Y > t] - e^epsilon P[Y > t + d] (Canonne, Kamath, Steinke 2020,
theorem 7). Here Y is the noise and t = epsilon sigma^2 / d - d / 2. A smaller change loses less, because the density is
log-concave.

Many entries. The discrete Gaussian has no rotations, so each direction of a change has a delta of its own. One bound
covers them all, by smoothing. Take normal noise of variance sigma^2 - r^2. Round each entry x at random to an integer
y, with probability proportional to exp(-(y - x)^2 / (2 r^2)). At integer means the result is the discrete Gaussian of
sigma^2, up to a factor that differs between points by at most 1 + kappa an entry. There

    1 + kappa = sum exp(-k^2 / (2 r^2)) / sum exp(-(k + 1/2)^2 / (2 r^2)),  about 1 + 4 exp(-2 pi^2 r^2),

since the sum of the kernel over the integers lies between these two. Rounding is post-processing. So for a change of n
entries delta(epsilon) is at most (1 + kappa)^n times the normal delta at epsilon - n ln(1 + kappa). Any r below sigma
gives a bound. Several rounds, also adaptive ones, add up (d / sigma)^2 and n. The proof is in docs/decisions/0029.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache, lru_cache
from itertools import count
from math import ceil, floor, isqrt
from typing import Final

from anon.accounting.zcdp import MARGIN
from anon.ldp.epsilon import NANO, PRECISION

SMOOTHING: Final = tuple(Fraction(eighths, 8) for eighths in (3, 4, 5, 6, 7, 8, 10, 12, 16, 24))
"""The r squared that are tried."""

LARGEST_EXACT: Final = 10**6
"""The sigma squared up to which one entry is summed. Beyond it smoothing loses less than a millionth."""

_FAR = 19
"""In standard deviations: exp(-19^2 / 2) is below 1e-78."""

_NOTHING = Decimal("1e-78")


def one_entry_delta(shift: int, sigma_squared: Fraction, epsilon: int) -> Decimal:
    """Return theorem 7's delta for a change of one entry by at most `shift`, at so many nano-epsilon."""
    threshold = Fraction(epsilon, NANO) * sigma_squared / shift - Fraction(shift, 2)
    # The noise is an integer: above the threshold means from here on.
    first = floor(threshold) + 1
    with localcontext(PRECISION):
        growth = (Decimal(epsilon) / NANO).exp()
        above = _tail(sigma_squared, first) - growth * _tail(sigma_squared, first + shift)
        return _outward(above, growth)


@lru_cache(maxsize=4)
def _tails(sigma_squared: Fraction) -> tuple[Decimal, ...]:
    """P[Y >= k] for k = 0, 1, ... until nothing is left. Each weight is the one before times a factor that falls."""
    with localcontext(PRECISION):
        factor = (-Decimal(sigma_squared.denominator) / (2 * sigma_squared.numerator)).exp()
        weight, ratio, weights = Decimal(1), factor, []
        for _ in range(_FAR * (isqrt(ceil(sigma_squared)) + 1) + 1):
            weights.append(weight)
            weight, ratio = weight * ratio, ratio * factor * factor
        total = 2 * sum(weights) - 1
        tails, left = [], Decimal(0)
        for weight in reversed(weights):
            left += weight
            tails.append(left / total)
        return tuple(reversed(tails))


def _tail(sigma_squared: Fraction, start: int) -> Decimal:
    tails = _tails(sigma_squared)
    if start <= 0:
        # By symmetry P[Y >= k] = 1 - P[Y >= 1 - k].
        return 1 - _tail(sigma_squared, 1 - start)
    return tails[start] if start < len(tails) else Decimal(0)


def smoothed_delta(parts: Sequence[tuple[int, Fraction]], entries: int, epsilon: int, r_squared: Fraction) -> Decimal:
    """Return the bound for many entries at so many nano-epsilon; 1 unless every sigma squared is above `r_squared`.

    `parts`: squared L2 sensitivity and sigma squared of each round. `entries`: how many change at most, in all rounds.
    """
    if any(sigma_squared <= r_squared for _, sigma_squared in parts):
        return Decimal(1)
    with localcontext(PRECISION):
        stretch = entries * _unevenness(r_squared).ln()
        squares = [Fraction(squared) / (sigma_squared - r_squared) for squared, sigma_squared in parts]
        distance = sum((_decimal(square) for square in squares), Decimal(0)).sqrt()
        left = Decimal(epsilon) / NANO - stretch
        first, second = (normal_below(side * distance / 2 - left / distance) for side in (1, -1))
        return _outward(stretch.exp() * (first - left.exp() * second), stretch.exp() + (Decimal(epsilon) / NANO).exp())


@lru_cache(maxsize=len(SMOOTHING))
def _unevenness(r_squared: Fraction) -> Decimal:
    """1 + kappa: how much larger the kernel's sum over the integers is than over the halves between them."""
    with localcontext(PRECISION):
        return _kernel_sum(r_squared, Fraction(0)) / _kernel_sum(r_squared, Fraction(1, 2))


def _kernel_sum(r_squared: Fraction, offset: Fraction) -> Decimal:
    """The sum of exp(-(k + offset)^2 / (2 r^2)) over all integers k."""
    reach = _FAR * (isqrt(ceil(r_squared)) + 1)
    points = (offset + k for k in range(-reach, reach + 1))
    return sum(((-_decimal(point * point / (2 * r_squared))).exp() for point in points), Decimal(0))


@cache
def _root_of_tau() -> Decimal:
    """The square root of 2 pi: a quarter of the kernel's sum at r = 4, to 137 digits by Poisson's formula."""
    return _kernel_sum(Fraction(16), Fraction(0)) / 4


def normal_below(point: Decimal) -> Decimal:
    """Return the chance that a standard normal value is below a point, to 70 digits after the point.

    1/2 + density times the sum of x^(2k+1) / (1 x 3 x ... x (2k+1)), whose terms have one sign.
    """
    # Less than 1e-78 is left out there, far below the margin.
    if abs(point) > _FAR:
        return Decimal(int(point > 0))
    with localcontext(PRECISION):
        square = point * point
        term = total = point
        for odd in count(3, 2):
            term = term * square / odd
            total += term
            if abs(term) < _NOTHING:
                break
        return Decimal("0.5") + total * (-square / 2).exp() / _root_of_tau()


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _outward(delta: Decimal, scale: Decimal) -> Decimal:
    return min(max(delta, Decimal(0)) + MARGIN * (1 + scale), Decimal(1))
