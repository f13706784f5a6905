"""Real vectors as integers: the norm that is promised, for whatever comes in, and the sensitivity that follows."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon.noise import Scaling
from anon.noise.scaling import Neighbours

SCALINGS = st.builds(
    Scaling, st.integers(1, 12), st.integers(1, 2**20), st.fractions(Fraction(1, 1000), 1000, max_denominator=1000)
)
VALUES = st.one_of(st.floats(), st.floats(-10, 10), st.fractions(-10, 10))


def squares(vector: list[int]) -> int:
    return sum(value * value for value in vector)


@given(SCALINGS, st.data())
def test_no_vector_is_longer_than_promised(scaling: Scaling, data: st.DataObject) -> None:
    values = data.draw(st.lists(VALUES, min_size=scaling.length, max_size=scaling.length))
    assert squares(scaling.integers(values)) <= scaling.norm_squared


@given(SCALINGS, st.data())
@pytest.mark.slow
def test_a_vector_within_the_norm_is_only_rounded(scaling: Scaling, data: st.DataObject) -> None:
    values = data.draw(
        st.lists(st.fractions(-1, 1, max_denominator=10**6), min_size=scaling.length, max_size=scaling.length)
    )
    within = [value * scaling.norm / scaling.length for value in values]
    rounded = scaling.integers(within)
    assert all(
        abs(whole - value * scaling.scale) <= Fraction(1, 2) for whole, value in zip(rounded, within, strict=True)
    )
    assert all(
        abs(back - value) * scaling.scale <= Fraction(1, 2)
        for back, value in zip(scaling.reals(rounded), within, strict=True)
    )


@pytest.mark.parametrize("length", [1, 4, 9, 16])
@pytest.mark.parametrize("odd", [1, 3, 7])
def test_the_rounding_term_is_attained(length: int, odd: int) -> None:
    """All entries just on a half, away from 0: the longest that rounding makes of a norm."""
    scaling = Scaling(length, 10, Fraction(odd, 20) * math.isqrt(length))
    vector = scaling.integers([Fraction(odd, 20) + Fraction(1, 10**9)] * length)
    longest = squares([(odd + 1) // 2] * length)
    assert squares(vector) <= scaling.norm_squared == longest
    if odd % 4 == 3:  # a half is rounded to even, here away from 0
        assert squares(scaling.integers([Fraction(odd, 20)] * length)) == longest


@pytest.mark.slow
@pytest.mark.parametrize(("neighbours", "factor"), [("add-remove", 1), ("replace-one", 4)])
@pytest.mark.parametrize("length", [1, 2, 3])
def test_search_over_neighbours_reaches_the_sensitivity_and_never_passes_it(
    neighbours: Neighbours, factor: int, length: int
) -> None:
    """Over a grid that leaves the ball: 95 % of the bound before its rounding term."""
    scaling = Scaling(length, 8, Fraction(5, 4))
    grid = [Fraction(step, 8) for step in range(-16, 17, 5 if length == 3 else 1)] + [Fraction(5, 4), Fraction(-5, 4)]
    vectors = {tuple(scaling.integers(list(values))) for values in product(grid, repeat=length)}
    others = vectors if neighbours == "replace-one" else {(0,) * length}
    apart = max(sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) for one in vectors for other in others)
    before = factor * (8 * Fraction(5, 4)) ** 2
    assert Fraction(95, 100) ** 2 * before <= apart <= scaling.sensitivity_squared(neighbours)


def test_a_long_vector_keeps_its_direction() -> None:
    scaling = Scaling(3, 1000, Fraction(1))
    shrunk = scaling.integers([3e300, -4e300, 0.0])
    assert shrunk == scaling.integers([30.0, -40.0, 0.0]) and shrunk[2] == 0
    assert shrunk[0] == pytest.approx(600, abs=2) and shrunk[1] == pytest.approx(-800, abs=2)


def test_values_that_are_not_finite_count_as_nothing() -> None:
    scaling = Scaling(3, 10, Fraction(2))
    assert scaling.integers([math.nan, 1.0, -math.inf]) == [0, 10, 0]


def test_wrong_forms_are_refused() -> None:
    with pytest.raises(ValueError, match="expected a vector of 2 values, got 1"):
        Scaling(2, 1, Fraction(1)).integers([0.5])
    for length, scale, norm in ((0, 1, 1), (1, 0, 1), (1, 1, 0)):
        with pytest.raises(ValueError, match="at least 1"):
            Scaling(length, scale, Fraction(norm))
