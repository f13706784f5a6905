"""Shared noise: the bound of Kairouz, Liu and Steinke against exact divergences of sums of discrete Gaussians."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from anon.accounting.shared_noise import shared_rho, shared_sigma_squared
from anon.accounting.zcdp import epsilon_of_rho, gaussian_rho
from anon.ldp import NANO, NanoEpsilon


@pytest.mark.parametrize("honest", [1, 2, 10, 200])
@pytest.mark.parametrize("sigma_squared", [Fraction(1, 4), Fraction(1), Fraction(50)])
def test_the_bound_is_at_least_that_of_one_gaussian_of_all_honest_noise(honest: int, sigma_squared: Fraction) -> None:
    """The distance from it is the price, and nothing from a standard deviation of 2 on."""
    shared = shared_rho(4, 10, sigma_squared, honest)
    alone = gaussian_rho(4, sigma_squared * honest)
    assert shared >= alone
    assert sigma_squared < 4 or shared <= alone * (1 + 1e-9) + 1


@pytest.mark.parametrize(("sigma_squared", "honest", "step"), [(0.25, 2, 1), (0.25, 5, 1), (0.5, 3, 2), (1.0, 4, 3)])
def test_no_renyi_divergence_passes_the_bound(sigma_squared: float, honest: int, step: int) -> None:
    """Exact sums by convolution, one entry, of every order up to 40: at most alpha rho."""
    reach = 400
    at = np.arange(-reach, reach + 1, dtype=np.float64)
    one = np.exp(-(at**2) / (2 * sigma_squared))
    one /= one.sum()
    total = one
    for _ in range(honest - 1):
        total = np.convolve(total, one)
    middle = len(total) // 2
    held = slice(middle - 30, middle + 31)
    p, q = total[held], np.roll(total, step)[held]
    there = (p > 0) & (q > 0)
    rho = shared_rho(step**2, 1, Fraction(sigma_squared), honest) / NANO
    for alpha in (2, 4, 8, 16, 40):
        logs = alpha * np.log(p[there]) - (alpha - 1) * np.log(q[there])
        divergence = np.logaddexp.reduce(logs) / (alpha - 1)
        assert divergence <= alpha * rho * (1 + 1e-9)


def test_the_noise_sought_keeps_to_epsilon_and_less_does_not() -> None:
    epsilon, delta = NanoEpsilon(NANO), Decimal("1e-6")
    noise = shared_sigma_squared(1000, 12, epsilon, delta, 7)
    assert epsilon_of_rho(shared_rho(1000, 12, noise, 7), delta) <= epsilon
    assert epsilon_of_rho(shared_rho(1000, 12, noise - Fraction(1, 512), 7), delta) > epsilon
    with pytest.raises(ValueError, match="1/2"):
        shared_rho(1, 1, Fraction(1, 5), 1)
    with pytest.raises(ValueError, match="a delta lies from"):
        shared_sigma_squared(1, 1, epsilon, Decimal(0), 1)
