"""The vector of a member that checks a model: its entries, how far one member moves their sum, and the middle."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import log

import pytest

from anon.errors import InvalidValue, Malformed
from anon.protocols.vectors.checks import CheckSums, middle
from anon.protocols.vectors.columns import Column
from anon.protocols.vectors.gradient import WEIGHT, GradientSums

COLUMNS = tuple(Column(name, 0.0, 1.0) for name in ("1", "age", "sleep", "cups"))
ONE = {"1": 1}


def checks(clip: str = "1", columns: tuple[Column, ...] = COLUMNS) -> CheckSums:
    return CheckSums(GradientSums(columns, 1024, Fraction(clip)))


def test_a_member_tells_its_label_the_models_side_and_if_both_agree() -> None:
    sums = checks()
    mark, above, below = sums.mark, {**ONE, "age": 0.5}, {**ONE, "age": -0.5}
    weights = [0, 7, 0, 0]
    assert sums.vector(above, 1, weights) == [mark, mark, mark, 0]
    assert sums.vector(above, 0, weights) == [-mark, mark, -mark, 0]
    assert sums.vector(below, 1, weights) == [mark, -mark, -mark, 0]
    assert sums.vector(below, 0, weights) == [-mark, -mark, mark, 0]
    assert sums.vector(ONE, 1, weights) == sums.vector({**ONE, "age": "x"}, 1, weights) == [mark, -mark, -mark, 0]
    assert sums.heard([3 * mark, -mark, 2 * mark, 99]) == (3, -1, 2)


@pytest.mark.parametrize("clip", ["1/100", "1", "100"])
def test_one_member_moves_the_sum_as_far_as_stated(clip: str) -> None:
    """All records that differ in what a vector can hold, each in place of each."""
    sums = checks(clip)
    found = [sums.vector({**ONE, "age": age}, label, [0, 1, 0, 0]) for age, label in product((-1, 1), (0, 1))]
    apart = [[one - other for one, other in zip(*pair, strict=True)] for pair in product(found, found)]
    assert max(sum(entry**2 for entry in moved) for moved in apart) == sums.sensitivity_squared("replace-one")
    assert max(sum(map(bool, moved)) for moved in apart) == sums.changed("replace-one") == 2
    assert {sum(entry**2 for entry in one) for one in found} == {sums.sensitivity_squared("add-remove")}
    assert {sum(map(bool, one)) for one in found} == {sums.changed("add-remove")}
    most = sums.contribution_norm_squared
    assert sums.sensitivity_squared("add-remove") <= most < 3 * (sums.mark + 1) ** 2
    assert (most, sums.length) == (sums.gradients.contribution_norm_squared, sums.gradients.length)


@pytest.mark.parametrize("rate", [Fraction(1, 4), Fraction(1, 2), Fraction(9, 10)])
def test_the_middle_is_the_log_odds_that_the_first_sum_tells(rate: Fraction) -> None:
    summed = int((Fraction(1, 2) - rate) * 1024 * 1000)
    assert middle(summed, 1024, 1000, Fraction(1)) == pytest.approx(log(rate / (1 - rate)) * WEIGHT, abs=1)


def test_the_middle_of_noise_is_none_and_that_of_a_rare_label_has_an_end() -> None:
    assert middle(50_000, 1024, 1000, Fraction(50_000**2)) == middle(0, 1024, 1000, Fraction(1)) == 0
    assert 0 > middle(50_000, 1024, 1000, Fraction(30_000**2)) > middle(50_000, 1024, 1000, Fraction(1))
    ends = middle(10**9, 1024, 1000, Fraction(1)), middle(-(10**9), 1024, 1000, Fraction(1))
    assert ends == (-round(log(19) * WEIGHT), round(log(19) * WEIGHT))


def test_what_cannot_be_checked_is_refused() -> None:
    with pytest.raises(InvalidValue, match="two columns beside the constant"):
        checks(columns=COLUMNS[:2])
    with pytest.raises(InvalidValue, match="one record of each"):
        CheckSums(GradientSums(COLUMNS, 1024, Fraction(1), "record", 4))
    with pytest.raises(InvalidValue, match="room for marks"):
        CheckSums(GradientSums(COLUMNS, 1, Fraction(1, 10)))
    with pytest.raises(Malformed, match="expected 4, got 3"):
        checks().vector(ONE, 1, [0, 0, 0])
    with pytest.raises(Malformed, match="expected 4, got 3"):
        checks().heard([0, 0, 0])
