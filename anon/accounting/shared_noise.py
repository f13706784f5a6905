"""Noise that many members add a share of each: the zCDP of a sum of discrete Gaussians.

Kairouz, Liu, Steinke 2021 (The distributed discrete Gaussian mechanism), theorem 1: a sum of n discrete Gaussians of
variance s^2 each is close to one of n s^2. How close is tau, and it enters the bound.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, fsum, pi, sqrt
from typing import Final

from anon.accounting.zcdp import NanoRho, check_delta, delta_of_rho, smallest
from anon.ldp import NANO, NanoEpsilon

_STEP = Fraction(1, 1024)
LEAST_NOISE: Final = Fraction(1, 4)
"""Of a variance: the theorem asks for a standard deviation of at least 1/2."""
_UP = 1 + 1e-12
"""Of floating point: the few roundings of the bound are far below it."""


def shared_rho(sensitivity_squared: int, entries: int, sigma_squared: Fraction, honest: int) -> NanoRho:
    """Return the rho of an integer sum of so many entries, with noise of variance sigma_squared of each of `honest`
    members. Raises `ValueError` for a standard deviation below 1/2, and for other numbers below 1.

    >>> shared_rho(1, 10, Fraction(10), 10)  # as one discrete Gaussian of variance 100
    5000001
    """
    if sensitivity_squared < 1 or entries < 1 or honest < 1 or sigma_squared < LEAST_NOISE:
        raise ValueError("shared noise needs a sensitivity, entries and honest members of at least 1, and sigma of 1/2")
    one = float(sigma_squared)
    tau = 10 * fsum(exp(-2 * pi**2 * one * k / (k + 1)) for k in range(1, honest))
    alone = sensitivity_squared / (honest * one)
    # Two bounds of the squared epsilon of (1/2) epsilon^2 concentrated privacy; rho is half of the smaller.
    squared = min(alone + tau * entries / 2, (sqrt(alone) + tau * sqrt(entries)) ** 2)
    return NanoRho(ceil(squared / 2 * NANO * _UP))


@lru_cache(maxsize=64)
def shared_sigma_squared(
    sensitivity_squared: int, entries: int, epsilon: NanoEpsilon, delta: Decimal, honest: int
) -> Fraction:
    """Return the least variance of each member's noise, in steps of 1/1024, that keeps a sum to (epsilon, delta)."""

    def keeps(steps: int) -> bool:
        rho = shared_rho(sensitivity_squared, entries, LEAST_NOISE + steps * _STEP, honest)
        return delta_of_rho(rho, epsilon) <= delta

    check_delta(delta)
    top = 1
    while not keeps(top):
        top *= 2
    return LEAST_NOISE + smallest(keeps, top) * _STEP
