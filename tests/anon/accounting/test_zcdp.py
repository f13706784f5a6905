"""zCDP of integer noise: the stated rho is attained, and (epsilon, delta) from it is that of OpenDP."""

from __future__ import annotations

import json
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

from anon.accounting.zcdp import delta_of_rho, epsilon_of_rho, gaussian_rho, smallest
from anon.ldp.epsilon import NANO
from tests.support.tries import every

REFERENCE = json.loads((Path(__file__).parent / "noisy_sum_reference.json").read_text("utf-8"))


def renyi(shift: tuple[int, ...], sigma_squared: Fraction, order: Decimal) -> Decimal:
    """The Renyi divergence of discrete Gaussians at 0 and at a shift, entry by entry, by direct summation."""
    with localcontext(prec=60):
        rate = Decimal(sigma_squared.denominator) / (2 * sigma_squared.numerator)
        reach = 20 * (math.isqrt(math.ceil(sigma_squared)) + 1) + int(order) * max(map(abs, shift))
        points = range(-reach, reach + 1)
        total = sum((-rate * x * x).exp() for x in points)
        divergence = Decimal(0)
        for one in shift:
            powers = sum((-rate * (order * x * x + (1 - order) * (x - one) ** 2)).exp() for x in points)
            divergence += (powers / total).ln() / (order - 1)
        return divergence


@pytest.mark.parametrize("sigma_squared", every(3, [Fraction(1, 3), Fraction(1), Fraction(9, 2)]))
@pytest.mark.slow
def test_rho_is_attained_at_whole_orders_and_never_passed(sigma_squared: Fraction) -> None:
    """By every change of up to two entries whose squares sum up to at most 5."""
    stated = Decimal(gaussian_rho(5, sigma_squared)) / NANO
    found = Decimal(0)
    for shift in product(range(3), repeat=2):
        if 0 < sum(one * one for one in shift) <= 5:
            for order in map(Decimal, ("1.1", "1.5", "2", "2.7", "4")):
                per_order = renyi(shift, sigma_squared, order) / order
                assert per_order <= stated
                found = max(found, per_order)
    assert stated - Decimal("1e-9") < found


def test_rho_is_rounded_up() -> None:
    assert gaussian_rho(1, Fraction(1)) == NANO // 2
    assert gaussian_rho(1, Fraction(3)) == 166_666_667
    assert gaussian_rho(1, Fraction(10**30)) == 1


@pytest.mark.parametrize("case", REFERENCE["zcdp"], ids=str)
def test_the_same_as_opendp(case: dict[str, object]) -> None:
    rho = gaussian_rho(int(str(case["sensitivity"])) ** 2, Fraction(str(case["sigma"])) ** 2)
    assert rho / NANO == pytest.approx(case["rho"], abs=1.1e-9)
    for epsilon, delta in case["deltas"]:  # type: ignore[attr-defined]
        assert float(delta_of_rho(rho, round(epsilon * NANO))) == pytest.approx(delta, rel=1e-6)
    for delta, epsilon in case["epsilons"]:  # type: ignore[attr-defined]
        assert epsilon_of_rho(rho, Decimal(str(delta))) / NANO == pytest.approx(epsilon, rel=2e-5)  # rho is rounded up


@pytest.mark.parametrize(("rho", "epsilon"), [(0.02, 1.0), (0.5, 0.2), (0.5, 4.0), (3.0, 12.0), (1e-6, 0.01)])
def test_no_order_gives_a_smaller_delta(rho: float, epsilon: float) -> None:
    def at(above: float) -> float:
        alpha = above + 1
        logarithm = above * (alpha * rho - epsilon + math.log(above)) - alpha * math.log(alpha)
        return math.exp(min(logarithm, 0.0))

    best = min(at(10 ** (step / 200)) for step in range(-1600, 1600))
    stated = float(delta_of_rho(round(rho * NANO), round(epsilon * NANO)))
    assert best * (1 - 1e-3) <= stated <= best * (1 + 1e-9)


def test_epsilon_and_delta_undo_each_other() -> None:
    for rho, delta in product((1000, 20_000_000, 2 * NANO), ("1e-3", "1e-6", "1e-12")):
        epsilon = epsilon_of_rho(rho, Decimal(delta))
        assert delta_of_rho(rho, epsilon) <= Decimal(delta)
        assert epsilon == 0 or delta_of_rho(rho, epsilon - 1) > Decimal(delta)


def test_no_loss_has_no_delta_and_a_large_one_all() -> None:
    assert delta_of_rho(0, 0) == 0
    assert delta_of_rho(100 * NANO, 0) == 1
    assert epsilon_of_rho(0, Decimal("1e-6")) == 0


@pytest.mark.parametrize("delta", ["0", "1", "-1", "1e-31"])
def test_a_delta_is_a_small_chance(delta: str) -> None:
    with pytest.raises(ValueError, match="a delta lies from"):
        epsilon_of_rho(1, Decimal(delta))


@pytest.mark.parametrize(("squared", "sigma_squared"), [(0, Fraction(1)), (1, Fraction(0))])
def test_rho_needs_a_sensitivity_and_noise(squared: int, sigma_squared: Fraction) -> None:
    with pytest.raises(ValueError, match="squared sensitivity"):
        gaussian_rho(squared, sigma_squared)


def test_halving_finds_the_first() -> None:
    for first, top in ((0, 0), (0, 9), (4, 9), (9, 9)):
        assert smallest(lambda number, first=first: number >= first, top) == first  # type: ignore[misc]
