"""Epsilon: outward rounding, exact reading, exact printing."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anon.errors import Refused
from anon.ldp import NANO, NanoEpsilon, format_epsilon, loss, nano
from tests.support.tries import examples


def exp_of(epsilon: int) -> Fraction:
    with localcontext(prec=120):
        return Fraction((Decimal(epsilon) / NANO).exp())


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(st.integers(1, 2**128), st.integers(1, 2**128))
def test_a_loss_is_the_least_count_of_1e_9_not_below_the_logarithm(first: int, second: int) -> None:
    ratio = Fraction(max(first, second) + 1, min(first, second))
    epsilon = loss(ratio)
    assert exp_of(epsilon) >= ratio > exp_of(epsilon - 1)


def test_a_loss_that_hardly_exists_is_still_charged() -> None:
    assert loss(Fraction(2**64, 2**64 - 1)) == 1
    assert loss(Fraction(1)) == 0


def test_a_ratio_below_one_is_our_own_mistake() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        loss(Fraction(1, 2))


@pytest.mark.parametrize(
    ("written", "expected"),
    [(1, NANO), (0.1, NANO // 10), ("0.5", NANO // 2), (Decimal("2.000000001"), 2 * NANO + 1), ("1e-9", 1), (3e-9, 3)],
)
def test_a_stated_epsilon_is_taken_exactly(written: float | str | Decimal, expected: int) -> None:
    assert nano(written) == expected


@pytest.mark.parametrize(
    "written",
    [0, -1, "nan", "inf", float("nan"), float("inf"), "", "one", True, "1e-10", 0.1 + 0.2, 1e9, "1e999999999", "-0"],
)
def test_an_epsilon_that_would_need_rounding_or_is_no_positive_number_is_refused(written: float | str) -> None:
    with pytest.raises(Refused):
        nano(written)


@given(st.integers(1, 10**15))
def test_formatting_reads_back(epsilon: int) -> None:
    assert nano(format_epsilon(NanoEpsilon(epsilon))) == epsilon


@pytest.mark.parametrize(
    ("epsilon", "text"), [(NANO, "1"), (10 * NANO, "10"), (NANO // 2, "0.5"), (1, "0.000000001"), (0, "0")]
)
def test_formatting_is_the_shortest_decimal(epsilon: int, text: str) -> None:
    assert format_epsilon(epsilon) == text
