"""The law of the noise in few draws, so that every run of the tests looks at it: the long oracles are slow.

Each comparison is a chi-squared test at level 1e-6, or five standard deviations. There are 10, and the draws repeat.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import exp, sqrt

import pytest
from scipy.stats import chi2

from anon.noise import DiscreteGaussian
from anon.noise.bernoulli import Coins
from anon.noise.discrete_laplace import DiscreteLaplace
from anon.noise.scaling import shrunk

DRAWS, LEVEL = 4000, 1e-6


def stream(seed: str) -> Callable[[int], bytes]:
    """Bytes that repeat, and an end to them: a fault that draws for ever fails in place of hanging."""
    numbers = iter(range(2000))
    return lambda size: hashlib.shake_128(f"{seed} {next(numbers)}".encode()).digest(size)


def follows(values: list[int], weight: Callable[[int], float]) -> float:
    """How likely values are that differ as much from the law of these weights."""
    whole = {value: weight(value) for value in range(-200, 201)}
    share = {value: one * len(values) / sum(whole.values()) for value, one in whole.items()}
    cells = [value for value, one in share.items() if one >= 10]
    found = Counter(values)
    rest = len(values) - sum(found[value] for value in cells), len(values) - sum(share[value] for value in cells)
    pairs = [(found[value], share[value]) for value in cells] + [rest]
    return float(chi2.sf(sum((seen - due) ** 2 / due for seen, due in pairs), len(pairs) - 1))


@pytest.mark.parametrize("sigma_squared", [Fraction(1, 2), Fraction(9, 2), Fraction(40)])
def test_a_gaussian_has_its_variance_its_signs_and_one_zero(sigma_squared: Fraction) -> None:
    drawn = DiscreteGaussian(sigma_squared).vector(DRAWS, stream(f"gaussian {sigma_squared}"))
    assert follows(drawn, lambda value: exp(-value * value / (2 * float(sigma_squared)))) > LEVEL


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(7, 2), Fraction(9)])
def test_a_laplace_has_its_scale_its_signs_and_one_zero(scale: Fraction) -> None:
    drawn = DiscreteLaplace(scale).vector(DRAWS, stream(f"laplace {scale}"))
    assert follows(drawn, lambda value: exp(-abs(value) / float(scale))) > LEVEL


@pytest.mark.parametrize("chance", [Fraction(1, 7), Fraction(1), Fraction(5, 2), Fraction(0)])
def test_a_coin_has_the_chance_of_its_exponent(chance: Fraction) -> None:
    coins = Coins(stream(f"coin {chance}"))
    heads, due = (
        sum(coins.bernoulli_exp(chance.numerator, chance.denominator) for _ in range(DRAWS)),
        exp(-float(chance)),
    )
    assert abs(heads - DRAWS * due) <= 5 * sqrt(DRAWS * due * (1 - due))


def test_each_word_is_spent_once_and_none_beyond_the_last_whole_multiple() -> None:
    coins = Coins(stream("words"))
    words = [coins.word() for _ in range(1200)]
    assert len(set(words)) == len(words)
    coins._words = [5, 2**64 - 1]  # the last one first, which would make 0 likelier than 2
    assert coins.below(3) == 2


def test_noise_of_no_variance_is_none_and_entries_differ() -> None:
    for variance in (Fraction(0), Fraction(-1)):
        with pytest.raises(ValueError, match="above 0"):
            DiscreteGaussian(variance)
    assert len(set(DiscreteGaussian(Fraction(50)).vector(40, stream("entries")))) > 5


@pytest.mark.parametrize("norm_squared", [1, 2, 7, 10, 26])
def test_a_shrunk_vector_is_never_longer_than_its_norm(norm_squared: int) -> None:
    for vector in product(range(-7, 8, 2), repeat=3):
        assert sum(one * one for one in shrunk(vector, norm_squared)) <= norm_squared
    assert shrunk((3, 4), 25) == [3, 4] and sum(one * one for one in shrunk((30, 40), 25)) <= 25
