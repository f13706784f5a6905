"""Zero-concentrated differential privacy: rho as an integer count of 1e-9, rounded up, and (epsilon, delta) from it.

Releases compose by adding their rho, also when later ones were chosen after seeing earlier ones (Bun and Steinke 2016,
arXiv 1605.02065, lemma 2.3). Rho is never added to an epsilon.

Deltas are decimals, rounded up: never below the formula, and above it by less than can be told.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from typing import Final, NewType

from anon.ldp.epsilon import NANO, PRECISION, NanoEpsilon

NanoRho = NewType("NanoRho", int)
"""A zCDP parameter in units of 1e-9, rounded up."""

MARGIN: Final = Decimal("1e-60")
"""Added to a delta as often as it is scaled: far above the rounding of 80 digits, far below any stated delta."""

SMALLEST_DELTA: Final = Decimal("1e-30")
"""Below it a delta is not told apart from the margin."""

_HALVINGS = 100


def gaussian_rho(sensitivity_squared: int, sigma_squared: Fraction) -> NanoRho:
    """Return the rho of one integer vector with discrete Gaussian noise on each entry: sensitivity^2 / (2 sigma^2).

    Attained: the Renyi divergence equals this bound at every whole order (Canonne, Kamath, Steinke 2020, theorem 14).
    Raises `ValueError` unless the squared L2 sensitivity is at least 1 and sigma squared above 0.
    """
    if sensitivity_squared < 1 or sigma_squared <= 0:
        raise ValueError("a noisy sum needs a squared sensitivity of at least 1 and a sigma squared above 0")
    return NanoRho(math.ceil(Fraction(sensitivity_squared * NANO) / (2 * sigma_squared)))


def delta_of_rho(rho: int, epsilon: int) -> Decimal:
    """Return a delta that nano-rho implies at so many nano-epsilon, at most 1.

    With t = alpha - 1 it is exp(t (alpha rho - epsilon)) t^t / alpha^alpha for the best alpha (Canonne, Kamath, Steinke
    2020, corollary 13). Every alpha gives a bound, so doubles may choose it.
    """
    if rho == 0:
        return Decimal(0)
    above = Decimal(_best_order(rho / NANO, epsilon / NANO))
    with localcontext(PRECISION):
        alpha = above + 1
        lost = alpha * rho / NANO - Decimal(epsilon) / NANO
        logarithm = above * (lost + above.ln()) - alpha * alpha.ln()
        return Decimal(1) if logarithm >= 0 else min(logarithm.exp() + MARGIN, Decimal(1))


def _best_order(rho: float, epsilon: float) -> float:
    """The alpha - 1 at which the bound is least: where its logarithm's derivative, which only rises, is 0."""
    low, high = 1e-9, (epsilon + 1) / (2 * rho) + 2
    for _ in range(_HALVINGS):
        # The geometric middle: the best order lies anywhere from 1e-9 to many thousands.
        middle = math.sqrt(low * high)
        slope = (2 * middle + 1) * rho - epsilon + math.log(middle) - math.log1p(middle)
        low, high = (low, middle) if slope > 0 else (middle, high)
    return high


def epsilon_of_rho(rho: int, delta: Decimal) -> NanoEpsilon:
    """Return the smallest nano-epsilon at which `delta_of_rho` is at most delta, which lies in [1e-30, 1).

    >>> from anon.ldp import format_epsilon
    >>> str(format_epsilon(epsilon_of_rho(NANO // 10, Decimal("1e-6"))))  # rho = 0.1
    '2.141938929'
    """
    check_delta(delta)
    with localcontext(PRECISION):
        exact = Decimal(rho) / NANO
        highest = exact + 2 * (exact * -delta.ln()).sqrt()  # Bun and Steinke 2016, proposition 1.3
        top = int((highest * NANO).to_integral_value(rounding=ROUND_CEILING)) + 1
    return NanoEpsilon(smallest(lambda epsilon: delta_of_rho(rho, epsilon) <= delta, top))


def rho_within(epsilon: int, delta: Decimal) -> NanoRho:
    """Return the largest nano-rho that implies at most so many nano-epsilon, above 0, at delta.

    >>> rho_within(epsilon_of_rho(NANO // 10, Decimal("1e-6")), Decimal("1e-6"))
    100000000
    """
    check_delta(delta)
    return NanoRho(smallest(lambda rho: delta_of_rho(rho, epsilon) > delta, epsilon) - 1)


def check_delta(delta: Decimal) -> None:
    """Raise `ValueError` for a delta outside [1e-30, 1)."""
    if not SMALLEST_DELTA <= delta < 1:
        raise ValueError(f"a delta lies from {SMALLEST_DELTA} to below 1, got {delta}")


def smallest(holds: Callable[[int], bool], top: int) -> int:
    """Return, by halving, the smallest integer in 0..top at which a rising condition holds; it holds at the top.

    The condition was seen to hold at the returned integer, unless that is the top.
    """
    low, high = -1, top
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
