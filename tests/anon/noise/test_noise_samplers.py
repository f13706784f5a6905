"""The samplers: exact laws by enumeration, goodness of fit, moments, tails, and an audit that finds too little noise.

Statistical tests have a false-alarm rate of 1e-3 each, and fixed seeds.
"""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from random import Random
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom, chi2

from anon.accounting.gaussian_delta import one_entry_delta
from anon.ldp.epsilon import NANO
from anon.noise import Coins, DiscreteGaussian, DiscreteLaplace

pytestmark = pytest.mark.slow

FALSE_ALARM = 1e-3
ROOM = Path(__file__).resolve().parents[3] / "anon" / "noise"

Law = dict[int, Decimal]


class Again(Exception):
    """A rejection: the sampler begins anew, without memory."""


class Enumerated(Coins):
    """Coins whose outcomes are a given path; notes the chance of each outcome taken, and the first open branch."""

    def __init__(self, path: list[int], exact_exp: bool) -> None:
        super().__init__(lambda size: bytes(size))
        self.path, self.exact_exp, self.taken, self.chance, self.options = path, exact_exp, 0, Decimal(1), 0
        self.drew = False

    def _branch(self, chances: list[Decimal]) -> int:
        if self.taken == len(self.path):
            self.options = len(chances)
            raise IndexError
        outcome = self.path[self.taken]
        self.taken += 1
        self.chance *= chances[outcome]
        return outcome

    def below(self, bound: int) -> int:
        if self.drew:
            raise Again
        self.drew = True
        return self._branch([1 / Decimal(bound)] * bound)

    def bernoulli(self, numerator: int, denominator: int) -> bool:
        chance = Decimal(numerator) / denominator
        return bool(self._branch([1 - chance, chance]))

    def bernoulli_exp(self, numerator: int, denominator: int) -> bool:
        if not self.exact_exp:
            return super().bernoulli_exp(numerator, denominator)
        chance = (-Decimal(numerator) / denominator).exp()
        return bool(self._branch([1 - chance, chance]))


def enumerated(draw: Callable[[Coins], int], exact_exp: bool, least: Decimal) -> Law:
    """The chance of each outcome before a rejection, over all paths of coins but those less likely than `least`."""
    law: Law = {}
    open_paths: list[list[int]] = [[]]
    while open_paths:
        path = open_paths.pop()
        coins = Enumerated(path, exact_exp)
        try:
            outcome = draw(coins)
        except Again:
            continue
        except IndexError:
            if coins.chance >= least:
                open_paths += [[*path, option] for option in range(coins.options)]
            continue
        law[outcome] = law.get(outcome, Decimal(0)) + coins.chance
    return law


def normalised(law: Law) -> Law:
    total = sum(law.values())
    return {value: chance / total for value, chance in law.items()}


def gaussian_law(sigma_squared: Fraction, reach: int) -> Law:
    rate = Decimal(sigma_squared.denominator) / (2 * sigma_squared.numerator)
    return normalised({value: (-rate * value * value).exp() for value in range(-reach, reach + 1)})


def laplace_law(scale: Fraction, reach: int) -> Law:
    rate = Decimal(scale.denominator) / scale.numerator
    return normalised({value: (-rate * abs(value)).exp() for value in range(-reach, reach + 1)})


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 1), (1, 3), (1, 1), (7, 5)])
def test_coins_of_exp_have_their_chance(numerator: int, denominator: int) -> None:
    with localcontext(prec=40):
        law = enumerated(lambda coins: coins.bernoulli_exp(numerator, denominator), False, Decimal("1e-24"))
        true = (-Decimal(numerator) / denominator).exp()
        assert abs(law.get(True, Decimal(0)) - true) < Decimal("1e-20")
        assert abs(sum(law.values()) - 1) < Decimal("1e-20")


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(3), Fraction(1, 2), Fraction(7, 3)])
def test_the_law_of_the_discrete_laplace(scale: Fraction) -> None:
    with localcontext(prec=40):
        drawn = normalised(enumerated(DiscreteLaplace(scale).draw, True, Decimal("1e-18")))
        for value, true in laplace_law(scale, 300).items():
            assert abs(drawn.get(value, Decimal(0)) - true) < Decimal("1e-15"), value


@pytest.mark.parametrize("sigma_squared", [Fraction(1, 3), Fraction(1), Fraction(9, 2), Fraction(18001, 1024)])
def test_the_law_of_the_discrete_gaussian(sigma_squared: Fraction) -> None:
    """Also at tails that no sample reaches."""
    with localcontext(prec=40):
        drawn = normalised(enumerated(DiscreteGaussian(sigma_squared).draw, True, Decimal("1e-18")))
        for value, true in gaussian_law(sigma_squared, 60).items():
            assert abs(drawn.get(value, Decimal(0)) - true) < Decimal("1e-15"), value


def spelled(words: list[int]) -> Callable[[int], bytes]:
    """Bytes that begin with these words of 64 bits, in the order in which coins spend them, then zeros."""

    def random_bytes(size: int) -> bytes:
        full = words + [0] * (size // 8 - len(words))
        return b"".join(word.to_bytes(8, "little") for word in reversed(full))

    return random_bytes


@given(st.integers(1, 2**200), st.data())
def test_a_coin_compares_a_uniform_number_with_its_chance(denominator: int, data: st.DataObject) -> None:
    """Word by word: also where the first words of the number are those of the chance."""
    numerator = data.draw(st.integers(0, denominator))
    digits = [(numerator << 64 * place) // denominator % 2**64 for place in (1, 2, 3)]
    near = [min(max(digit + data.draw(st.sampled_from((0, 0, -1, 1))), 0), 2**64 - 1) for digit in digits]
    words = [
        *near[: data.draw(st.integers(0, 3))],
        *data.draw(st.lists(st.integers(0, 2**64 - 1), min_size=3, max_size=3)),
    ]
    drawn = Fraction(int.from_bytes(b"".join(word.to_bytes(8, "big") for word in words), "big"), 2 ** (64 * len(words)))
    chance = Fraction(numerator, denominator)
    if drawn <= chance < drawn + Fraction(1, 2 ** (64 * len(words))):
        return  # undecided by so many words
    assert Coins(spelled(words)).bernoulli(numerator, denominator) == (drawn < chance)


@given(st.integers(1, 2**130))
def test_uniform_integers_take_every_value_equally_often(bound: int) -> None:
    """The accepted numbers are a multiple of the bound from 0 on, and at most one round of it is refused."""
    count = -(-bound.bit_length() // 64)
    size = 2 ** (64 * count)
    last = size // bound * bound

    def below(drawn: int) -> int:
        words = [drawn >> 64 * place & 2**64 - 1 for place in reversed(range(count))]
        return Coins(spelled([*words, *[0] * (count - 1), 1])).below(bound)

    assert (
        below(last - 1) == bound - 1 and below(0) == 0 and below(min(bound, last - 1)) == min(bound, last - 1) % bound
    )
    if last < size:
        assert below(last) == below(size - 1) == 1 % bound  # refused: the 1 that follows is taken


def seeded(seed: int) -> Callable[[int], bytes]:
    return Random(seed).randbytes


GAUSSIANS = [Fraction(1, 3), Fraction(1), Fraction(18001, 1024), Fraction(400), Fraction(10**7, 3)]


@pytest.mark.parametrize("sigma_squared", GAUSSIANS)
def test_gaussian_values_fit_their_law(sigma_squared: Fraction) -> None:
    values = DiscreteGaussian(sigma_squared).vector(30_000, seeded(1))
    sigma = math.sqrt(sigma_squared)
    reach = math.ceil(9 * sigma)
    rate = 1 / (2 * float(sigma_squared))
    assert fits(values, {value: math.exp(-rate * value * value) for value in range(-reach, reach + 1)})


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(7, 3), Fraction(250)])
def test_laplace_values_fit_their_law(scale: Fraction) -> None:
    values = DiscreteLaplace(scale).vector(30_000, seeded(2))
    reach = math.ceil(40 * scale)
    assert fits(values, {value: math.exp(-abs(value) / float(scale)) for value in range(-reach, reach + 1)})


def test_a_fit_refuses_a_tenth_less_noise() -> None:
    values = DiscreteGaussian(Fraction(81, 100) * 400).vector(30_000, seeded(1))
    assert not fits(values, {value: math.exp(-value * value / 800) for value in range(-200, 201)})


def fits(values: list[int], weights: dict[int, float]) -> bool:
    """Pearson's chi-squared test over neighbouring values, merged until some 300 of the values are expected in each."""
    counts, total = Counter(values), sum(weights.values())
    statistic, cells, seen, expected = 0.0, 0, 0, 0.0
    remaining = float(len(values))
    for value in sorted(weights):
        seen, expected = seen + counts[value], expected + len(values) * weights[value] / total
        if expected >= 300 and remaining - expected >= 300:
            statistic, cells, remaining = statistic + (seen - expected) ** 2 / expected, cells + 1, remaining - expected
            seen, expected = 0, 0.0
    statistic += (seen - expected) ** 2 / expected
    return statistic < chi2.isf(FALSE_ALARM, cells)


@pytest.mark.parametrize("sigma_squared", GAUSSIANS)
def test_moments_and_tails_of_the_gaussian(sigma_squared: Fraction) -> None:
    count, sigma = 20_000, math.sqrt(sigma_squared)
    values = DiscreteGaussian(sigma_squared).vector(count, seeded(3))
    reach = math.ceil(9 * sigma)
    law = {value: math.exp(-value * value / (2 * float(sigma_squared))) for value in range(-reach, reach + 1)}
    total = sum(law.values())
    second, fourth = (sum(value**power * weight for value, weight in law.items()) / total for power in (2, 4))
    widest = NormalDist().inv_cdf(1 - FALSE_ALARM / 2)
    assert second <= float(sigma_squared) * (1 + 1e-12)
    assert abs(sum(values)) < widest * math.sqrt(count * second)
    assert abs(sum(value * value for value in values) - count * second) < widest * math.sqrt(
        count * (fourth - second**2)
    )
    far = 3 * sigma
    beyond = sum(weight for value, weight in law.items() if abs(value) > far) / total
    low, high = binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], count, beyond)
    assert low <= sum(abs(value) > far for value in values) <= high


def test_neighbours_in_a_vector_are_uncorrelated() -> None:
    values = DiscreteGaussian(Fraction(18)).vector(20_000, seeded(4))
    products = sum(one * other for one, other in zip(values, values[1:], strict=False)) / 18
    assert abs(products) < NormalDist().inv_cdf(1 - FALSE_ALARM / 2) * math.sqrt(20_000)


def loss_found(noise: DiscreteGaussian, claimed: Fraction, shift: int) -> bool:
    """A black-box audit: are outputs of 0 and of `shift` apart by more than the claimed noise allows?

    For each of some half-lines S and epsilons, a lower confidence bound of P0(S) - e^epsilon P1(S) is compared with the
    exact delta. All bounds hold together with probability 1 - `FALSE_ALARM` (Bonferroni).
    """
    count = 20_000
    first = noise.vector(count, seeded(5))
    second = [shift + value for value in noise.vector(count, seeded(6))]
    sigma = math.sqrt(claimed)
    events = [(edge, epsilon) for edge in (-1.5, -1.0, -0.5, 0.0, 0.5) for epsilon in (0.0, 0.5, 1.0)]
    level = FALSE_ALARM / (2 * len(events))
    for edge, epsilon in events:
        inside = [sum(value <= edge * sigma + shift / 2 for value in values) for values in (first, second)]
        least = beta.ppf(level, inside[0], count - inside[0] + 1)
        most = beta.isf(level, inside[1] + 1, count - inside[1])
        if least - math.exp(epsilon) * most > float(one_entry_delta(shift, claimed, int(epsilon * NANO))):
            return True
    return False


@pytest.mark.parametrize("claimed", [Fraction(18), Fraction(400)])
def test_an_audit_finds_a_fifth_less_noise_and_passes_the_real_one(claimed: Fraction) -> None:
    shift = math.isqrt(int(claimed))
    assert loss_found(DiscreteGaussian(claimed * Fraction(16, 25)), claimed, shift)
    assert not loss_found(DiscreteGaussian(claimed), claimed, shift)


@pytest.mark.parametrize("noise", [DiscreteGaussian(Fraction(400)), DiscreteLaplace(Fraction(20))])
def test_a_vector_is_a_function_of_its_bytes(noise: DiscreteGaussian | DiscreteLaplace) -> None:
    asked: list[int] = []
    spring = Random(7)

    def counted(size: int) -> bytes:
        asked.append(size)
        return spring.randbytes(size)

    one = noise.vector(1000, counted)
    assert one == noise.vector(1000, seeded(7)) != noise.vector(1000, seeded(8))
    assert len(one) == 1000 and len(asked) > 1  # each block of bytes is spent once, then another is asked for


def test_bytes_that_end_give_no_noise() -> None:
    """One block, then no more: the fault passes through, and no shorter vector comes out."""
    blocks = [Random(9).randbytes(4096)]
    with pytest.raises(IndexError):
        DiscreteGaussian(Fraction(4)).vector(10_000, lambda _: blocks.pop())


@pytest.mark.parametrize("kind", [DiscreteGaussian, DiscreteLaplace])
@pytest.mark.parametrize("width", [Fraction(0), Fraction(-1, 2)])
def test_no_noise_without_a_width(kind: type[DiscreteGaussian | DiscreteLaplace], width: Fraction) -> None:
    with pytest.raises(ValueError, match="lies above 0"):
        kind(width)


def of_float(source: str) -> Iterator[str]:
    """The places of a module where a float could come from: its numbers, true division, powers below 0, functions."""
    exact = {"isqrt", "isfinite"}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, float | complex):
            yield f"{node.lineno}: {node.value}"
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div):
            yield f"{node.lineno}: /"
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and not isinstance(node.right, ast.Constant):
            yield f"{node.lineno}: **"
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in {"float", "complex", "pow"}
        ):
            yield f"{node.lineno}: {node.func.id}"
        elif isinstance(node, ast.ImportFrom) and node.module == "math":
            yield from (f"{node.lineno}: {alias.name}" for alias in node.names if alias.name not in exact)
        elif isinstance(node, ast.Import):
            yield from (f"{node.lineno}: {alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", sorted(ROOM.glob("*.py")), ids=lambda path: path.name)
def test_no_float_and_no_other_randomness_in_the_room(path: Path) -> None:
    """The room imports no generator, and of itself and the standard library only what is exact."""
    source = path.read_text("utf-8")
    assert list(of_float(source)) == []
    allowed = {"__future__", "attrs", "collections", "fractions", "math", "struct", "typing", "anon"}
    modules = {str(node.module) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)}
    assert {module.partition(".")[0] for module in modules} <= allowed
    assert all(module.startswith("anon.noise") for module in modules if module.startswith("anon"))


@pytest.mark.parametrize(
    "wrong", ["x = 0.5", "x = a / b", "x = a ** -b", "x = float(a)", "from math import exp", "import random"]
)
def test_a_float_is_seen(wrong: str) -> None:
    assert list(of_float(wrong))
