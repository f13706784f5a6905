"""(epsilon, delta) of integer sums with noise: exact sums, bounds that no change passes, and figures of other
libraries."""

from __future__ import annotations

import json
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr

from anon.accounting.gaussian_delta import SMOOTHING, normal_below, one_entry_delta, smoothed_delta
from anon.accounting.noisy_sums import (
    STEP,
    GaussianSum,
    delta_of,
    epsilon_of,
    laplace_epsilon,
    rho_of,
    sigma_squared_for,
)
from anon.accounting.zcdp import delta_of_rho, epsilon_of_rho
from anon.ldp.epsilon import NANO, nano

pytestmark = pytest.mark.slow

REFERENCE = json.loads((Path(__file__).parent / "noisy_sum_reference.json").read_text("utf-8"))
MILLIONTH = Decimal("1e-6")
EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.5)


@cache
def law(sigma_squared: Fraction) -> np.ndarray:
    """The discrete Gaussian from -reach to reach, in doubles."""
    reach = math.ceil(14 * math.sqrt(sigma_squared))
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * float(sigma_squared)))
    return np.asarray(weights / weights.sum())


def losses(change: tuple[int, ...], sigma_squared: Fraction) -> tuple[np.ndarray, np.ndarray]:
    """The privacy loss of a change of several entries: values and probabilities. It is a function of the inner product
    of noise and change, which is convolved entry by entry."""
    chances = np.ones(1)
    for entry in change:
        spread = np.zeros((len(law(sigma_squared)) - 1) * entry + 1)
        spread[::entry] = law(sigma_squared)
        chances = np.convolve(chances, spread)
    products = np.arange(len(chances)) - len(chances) // 2
    squared = sum(entry * entry for entry in change)
    return (2 * products + squared) / (2 * float(sigma_squared)), chances


def losses_by_fourier(change: tuple[int, ...], sigma_squared: Fraction) -> tuple[np.ndarray, np.ndarray]:
    """The same for changes of many entries, up to 1e-12: the inner product on a circle of 28 standard deviations."""
    squared = sum(entry * entry for entry in change)
    half = math.ceil(14 * math.sqrt(sigma_squared * squared))
    points, spectrum = (
        np.arange(len(law(sigma_squared))) - len(law(sigma_squared)) // 2,
        np.ones(half + 1, dtype=complex),
    )
    for entry in set(change):
        circle = np.bincount(points * entry % (2 * half), weights=law(sigma_squared), minlength=2 * half)
        spectrum *= np.fft.rfft(circle) ** change.count(entry)
    chances = np.roll(np.fft.irfft(spectrum, 2 * half), half)
    return (2 * (np.arange(2 * half) - half) + squared) / (2 * float(sigma_squared)), chances


def exact(values: np.ndarray, chances: np.ndarray, epsilon: float) -> float:
    return float((chances * np.maximum(-np.expm1(epsilon - values), 0)).sum())


def changes(squared: int, entries: int) -> list[tuple[int, ...]]:
    """Every way to change so many entries by a sum of squares of at most `squared`, up to order and signs."""
    return [
        tuple(entry for entry in change if entry)
        for change in combinations_with_replacement(range(math.isqrt(squared) + 1), entries)
        if 0 < sum(entry * entry for entry in change) <= squared
    ]


CASES = [
    (squared, entries, Fraction(sigma_squared))
    for squared, entries in ((1, 1), (2, 2), (4, 1), (4, 4), (9, 3), (25, 2))
    for sigma_squared in ("0.5", "1", "2.25", "6", "18", "100")
]


@pytest.mark.parametrize(("squared", "entries", "sigma_squared"), CASES)
def test_no_change_passes_the_stated_delta(squared: int, entries: int, sigma_squared: Fraction) -> None:
    one = GaussianSum(squared, entries, sigma_squared)
    for epsilon in EPSILONS:
        stated = float(delta_of([one], round(epsilon * NANO)))
        worst = max(exact(*losses(change, sigma_squared), epsilon) for change in changes(squared, entries))
        assert worst <= stated * (1 + 1e-9) + 1e-15, epsilon


@pytest.mark.parametrize(("squared", "entries", "sigma_squared"), CASES)
def test_each_smoothing_is_a_bound_of_its_own(squared: int, entries: int, sigma_squared: Fraction) -> None:
    worst = [
        max(exact(*losses(change, sigma_squared), epsilon) for change in changes(squared, entries))
        for epsilon in EPSILONS
    ]
    for r_squared in SMOOTHING:
        for epsilon, true in zip(EPSILONS, worst, strict=True):
            bound = smoothed_delta([(squared, sigma_squared)], min(entries, squared), round(epsilon * NANO), r_squared)
            assert true <= float(bound) * (1 + 1e-9) + 1e-15, (r_squared, epsilon)


@pytest.mark.parametrize(("squared", "change"), [
    (22, (1,) * 22), (22, (2, 2, 2, 2, 2, 1, 1)), (132, (1,) * 132), (468, (16, 12, 8, 2)), (51, (4,) * 3 + (1,) * 3)
])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
def test_changes_of_the_size_of_a_studys_tables(squared: int, change: tuple[int, ...], epsilon: str) -> None:
    """With the noise that is found for them: convolved entry by entry, below the statement and within 5 % of
    epsilon."""
    assert sum(entry * entry for entry in change) == squared
    one = GaussianSum(squared, squared, sigma_squared_for(squared, squared, nano(epsilon), MILLIONTH))
    values, chances = losses_by_fourier(change, one.sigma_squared)
    assert exact(values, chances, float(epsilon)) <= float(delta_of([one], nano(epsilon))) <= 1e-6
    assert exact(values, chances, 0.95 * float(epsilon)) > 1e-6


def test_both_convolutions_agree() -> None:
    for change in ((1, 1, 1), (3, 2, 1)):
        values, chances = losses_by_fourier(change, Fraction(18))
        for epsilon in EPSILONS:
            assert exact(values, chances, epsilon) == pytest.approx(
                exact(*losses(change, Fraction(18)), epsilon), rel=1e-6, abs=1e-12
            )


def test_the_kernels_sum_is_between_those_at_whole_and_at_half_places() -> None:
    """It falls all the way between them: the proof of smoothing rests on it."""
    for r_squared in (0.375, 1.0, 3.0):
        sums = [
            sum(math.exp(-((k + step / 200) ** 2) / (2 * r_squared)) for k in range(-30, 31)) for step in range(101)
        ]
        assert all(after <= before * (1 + 1e-14) for before, after in zip(sums, sums[1:], strict=False))


@pytest.mark.parametrize("r_squared", [Fraction(1, 16), Fraction(1, 4), Fraction(3, 8)])
def test_smoothing_is_its_formula_and_needs_its_factor(r_squared: Fraction) -> None:
    """The kernel's sums by Poisson's formula, the normal delta by another library. Without (1 + kappa)^n a change
    passes it."""
    tau_squared = 2 * math.pi**2 * float(r_squared)
    even, odd = (1 + 2 * sum(sign**m * math.exp(-tau_squared * m * m) for m in range(1, 40)) for sign in (1, -1))

    def normal(epsilon: float, distance: float) -> float:
        return float(
            ndtr(distance / 2 - epsilon / distance) - math.exp(epsilon) * ndtr(-distance / 2 - epsilon / distance)
        )

    parts, distance = (
        [(25, Fraction(6)), (2, Fraction(9))],
        math.sqrt(25 / (6 - float(r_squared)) + 2 / (9 - float(r_squared))),
    )
    for entries in (1, 3):
        stretch = entries * math.log(even / odd)
        for epsilon in (1.0, 3.0, 9.0):
            expected = min(math.exp(stretch) * normal(epsilon - stretch, distance), 1)
            assert float(smoothed_delta(parts, entries, round(epsilon * NANO), r_squared)) == pytest.approx(
                expected, rel=1e-6
            )
    if r_squared == Fraction(1, 16):
        alone = 5 / math.sqrt(6 - float(r_squared))
        grid = [step / 8 for step in range(1, 40)]
        true = [exact(*losses((5,), Fraction(6)), epsilon) for epsilon in grid]
        assert any(found > normal(epsilon, alone) for found, epsilon in zip(true, grid, strict=True))
        bounds = [float(smoothed_delta([(25, Fraction(6))], 1, round(epsilon * NANO), r_squared)) for epsilon in grid]
        assert all(found <= bound for found, bound in zip(true, bounds, strict=True))


def test_entries_of_all_rounds_count() -> None:
    rounds, parts = (
        [GaussianSum(90, 40, Fraction(90)), GaussianSum(50, 60, Fraction(70))],
        [(90, Fraction(90)), (50, Fraction(70))],
    )
    assert delta_of(rounds, NANO) == min(smoothed_delta(parts, 40 + 50, NANO, r_squared) for r_squared in SMOOTHING)


@pytest.mark.parametrize(("squared", "entries"), [(1, 1), (2, 2), (4, 4), (9, 3), (25, 2)])
@pytest.mark.parametrize("target", ["0.5", "1", "2"])
def test_some_change_attains_95_percent_of_the_stated_epsilon(squared: int, entries: int, target: str) -> None:
    """At delta 1e-6, with the noise that `sigma_squared_for` finds."""
    sigma_squared = sigma_squared_for(squared, entries, nano(target), MILLIONTH)
    stated = epsilon_of([GaussianSum(squared, entries, sigma_squared)], MILLIONTH) / NANO
    assert 0.999 * float(target) <= stated <= float(target)
    assert max(exact(*losses(change, sigma_squared), 0.95 * stated) for change in changes(squared, entries)) > 1e-6


def test_one_entry_is_summed_exactly() -> None:
    """Against the definition, summed over all outcomes with 70 digits; also where the noise is narrow."""
    with localcontext(prec=70):
        for sigma_squared in (Fraction(1, 5), Fraction(18001, 1024), Fraction(300)):
            rate = Decimal(sigma_squared.denominator) / (2 * sigma_squared.numerator)
            reach = 20 * (math.isqrt(math.ceil(sigma_squared)) + 1)
            weights = {x: (-rate * x * x).exp() for x in range(-reach, reach + 1)}
            total, none = sum(weights.values()), Decimal(0)
            for shift, epsilon in ((1, 0), (1, NANO), (3, NANO // 7), (7, 3 * NANO)):
                growth = (Decimal(epsilon) / NANO).exp()
                true = sum(max(w - growth * weights.get(x + shift, none), none) for x, w in weights.items()) / total
                assert true < one_entry_delta(shift, sigma_squared, epsilon) < true + Decimal("1e-55")


def test_a_smaller_change_of_one_entry_loses_less() -> None:
    for epsilon in (0, NANO // 2, 2 * NANO):
        deltas = [one_entry_delta(shift, Fraction(7, 2), epsilon) for shift in range(1, 12)]
        assert deltas == sorted(deltas)


@pytest.mark.parametrize("case", REFERENCE["one_entry"], ids=str)
def test_one_entry_is_the_same_as_dp_accounting(case: dict[str, object]) -> None:
    for epsilon, delta in case["deltas"]:  # type: ignore[attr-defined]
        ours = one_entry_delta(int(str(case["sensitivity"])), Fraction(str(case["sigma"])) ** 2, round(epsilon * NANO))
        assert float(ours) == pytest.approx(delta, rel=1e-6, abs=1e-13)


@pytest.mark.parametrize("case", REFERENCE["continuous"], ids=str)
def test_wide_noise_on_many_entries_costs_as_the_continuous_gaussian(case: dict[str, object]) -> None:
    one = GaussianSum(int(str(case["sensitivity"])) ** 2, 600, Fraction(str(case["sigma"])) ** 2)
    for epsilon, delta in case["deltas"]:  # type: ignore[attr-defined]
        assert delta * (1 - 1e-9) <= float(delta_of([one], round(epsilon * NANO))) <= delta * 1.001 + 1e-15


def test_rounds_with_noise_of_their_own_add_up() -> None:
    """Two rounds of different width, summed over both: never above the statement, and near it."""
    rounds = [GaussianSum(4, 2, Fraction(40)), GaussianSum(9, 1, Fraction(25))]
    (first, one), (second, other) = losses((1, 1), Fraction(40)), losses((3,), Fraction(25))
    values, chances = np.add.outer(first, second).ravel(), np.multiply.outer(one, other).ravel()
    (wider, likely) = losses((2,), Fraction(40))
    more, chances_more = np.add.outer(wider, second).ravel(), np.multiply.outer(likely, other).ravel()
    for epsilon in EPSILONS:
        stated = float(delta_of(rounds, round(epsilon * NANO)))
        worst = max(exact(values, chances, epsilon), exact(more, chances_more, epsilon))
        assert worst <= stated * (1 + 1e-9)
    assert exact(more, chances_more, 0.95 * epsilon_of(rounds, MILLIONTH) / NANO) > 1e-6
    assert rho_of(rounds) == NANO // 20 + 9 * NANO // 50


def test_many_equal_rounds_cost_as_one_round_with_less_noise() -> None:
    rounds, once = [GaussianSum(100, 50, Fraction(60_000))] * 60, [GaussianSum(6000, 3000, Fraction(60_000))]
    assert epsilon_of(rounds, MILLIONTH) == pytest.approx(epsilon_of(once, MILLIONTH), rel=1e-4)


def test_a_second_partys_noise_only_adds() -> None:
    """Known to the attacker it changes nothing; unknown, delta is below that of one noise. No more is claimed."""
    for sigma_squared in (Fraction(1, 2), Fraction(4), Fraction(18)):
        alone = law(sigma_squared)
        both = np.convolve(alone, alone)
        for shift in (1, 3):
            for epsilon in EPSILONS:
                stated = float(delta_of([GaussianSum(shift * shift, 1, sigma_squared)], round(epsilon * NANO)))
                padded = np.pad(both, shift)
                found = np.maximum(padded[shift:] - math.exp(epsilon) * padded[: len(padded) - shift], 0).sum()
                assert found < stated


@pytest.mark.parametrize(("squared", "entries", "rounds"), [(1, 1, 1), (22, 22, 1), (2**18, 5000, 1), (10**6, 500, 60)])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
def test_the_noise_that_is_found_is_enough_and_the_least(squared: int, entries: int, rounds: int, epsilon: str) -> None:
    sigma_squared = sigma_squared_for(squared, entries, nano(epsilon), MILLIONTH, rounds)
    assert (sigma_squared / STEP).denominator == 1
    assert delta_of([GaussianSum(squared, entries, sigma_squared)] * rounds, nano(epsilon)) <= MILLIONTH
    assert delta_of([GaussianSum(squared, entries, sigma_squared - STEP)] * rounds, nano(epsilon)) > MILLIONTH


def test_smoothing_is_cheaper_than_rho() -> None:
    """By 7 % of epsilon at 1 and 1e-6: the continuous Gaussian needs sigma = 4.2247 times the sensitivity."""
    one = GaussianSum(2**18, 5000, Fraction("4.2248") ** 2 * 2**18)
    assert epsilon_of([one], MILLIONTH) < NANO < 1.07 * NANO < epsilon_of_rho(one.rho, MILLIONTH)


def test_narrow_noise_is_bounded_by_rho() -> None:
    one = GaussianSum(9, 3, Fraction(1, 4))
    assert all(smoothed_delta([(9, one.sigma_squared)], 3, NANO, r_squared) == 1 for r_squared in SMOOTHING)
    assert delta_of([one], 60 * NANO) == delta_of_rho(18 * NANO, 60 * NANO) < MILLIONTH


@pytest.mark.parametrize(("sensitivity", "scale"), [(1, Fraction(1)), (3, Fraction(7, 3)), (5, Fraction(1, 2))])
def test_pure_epsilon_of_laplace_noise_is_attained_and_never_passed(sensitivity: int, scale: Fraction) -> None:
    stated = laplace_epsilon(sensitivity, scale)
    found = max(abs(abs(x) - abs(x - sensitivity)) for x in range(-20, 20)) / scale
    assert found * NANO <= stated < found * NANO + 1


def test_the_normal_distribution() -> None:
    assert str(normal_below(Decimal(1)))[:32] == "0.841344746068542948585232545632"
    for point in (-18.5, -6.0, -0.3, 0.0, 0.7, 5.0):
        assert float(normal_below(Decimal(point))) == pytest.approx(float(ndtr(point)), rel=1e-12, abs=1e-70)
        assert abs(normal_below(Decimal(point)) + normal_below(Decimal(-point)) - 1) < Decimal("1e-70")
    assert (normal_below(Decimal(-20)), normal_below(Decimal(20))) == (0, 1)


def test_nothing_published_costs_nothing() -> None:
    assert delta_of([], 0) == 0 and epsilon_of([], MILLIONTH) == 0 and rho_of([]) == 0


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one entry"):
        GaussianSum(1, 0, Fraction(1))
    with pytest.raises(ValueError, match="sigma squared above 0"):
        GaussianSum(1, 1, Fraction(0))
    with pytest.raises(ValueError, match="epsilon above 0"):
        sigma_squared_for(1, 1, nano(1), MILLIONTH, rounds=0)
    with pytest.raises(ValueError, match="scale above 0"):
        laplace_epsilon(1, Fraction(0))
