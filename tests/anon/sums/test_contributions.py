"""Contributions: whatever the values are, they are integers within the stated bounds, and fit the proofs of
validity."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anon.errors import InvalidValue, Malformed
from anon.protocols.vectors.columns import Column, Linear
from anon.protocols.vectors.gradient import WEIGHT, Descent, GradientSums
from anon.protocols.vectors.moments import MomentSums
from anon.protocols.vectors.sensitivity import ball_of, rounded
from anon.protocols.vectors.tables import Block, TableSums, tables_of
from anon.vdaf.circuits import ball, blocks

VALUES = st.one_of(
    st.none(), st.booleans(), st.text(max_size=3), st.floats(), st.integers(-(10**400), 10**400), st.binary(max_size=2)
)


def columns(*reaches: int) -> tuple[Column, ...]:
    return tuple(Column(f"x{place}", 1.0, 4.0, reach) for place, reach in enumerate(reaches))


def records(data: st.DataObject, count: int, most: int) -> list[dict[str, Any]]:
    return data.draw(st.lists(st.fixed_dictionaries({f"x{place}": VALUES for place in range(count)}), max_size=most))


@given(st.data())
def test_any_values_make_moments_within_the_ball(data: st.DataObject) -> None:
    for unit in ("person", "record"):
        sums = MomentSums(columns(3, 1, 5), 20, unit, 4)  # type: ignore[arg-type]
        vector = sums.vector(records(data, 3, 4))
        bits, radius = ball_of(sums.contribution_norm_squared)
        assert sum(entry * entry for entry in vector) <= sums.contribution_norm_squared <= radius**2
        assert ball(sums.length, bits, radius).encode(vector)


@given(st.data())
def test_any_values_make_gradients_within_the_ball(data: st.DataObject) -> None:
    weights = data.draw(st.lists(st.integers(-(2**32), 2**32), min_size=3, max_size=3))
    for unit in ("person", "record"):
        sums = GradientSums(columns(1, 1, 1), 50, Fraction(2, 3), unit, 4)  # type: ignore[arg-type]
        vector = sums.vector([(record, data.draw(st.integers(0, 1))) for record in records(data, 3, 4)], weights)
        bits, radius = ball_of(sums.contribution_norm_squared)
        assert sum(entry * entry for entry in vector) <= sums.contribution_norm_squared
        assert ball(sums.length, bits, radius).encode(vector)


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf, "1", True, 10**400, [1]])
def test_a_value_that_is_none_counts_as_the_centre(value: object) -> None:
    assert Column("x", 3.0, 2.0, 7).integer(value) == 0


def test_values_are_centred_and_clipped() -> None:
    column = Column("x", 3.0, 2.0, 7)
    assert [column.integer(value) for value in (3, 5, 1, 4.0, 900, -900)] == [0, 7, -7, 4, 7, -7]
    assert column.value(column.real(4.5)) == 4.5


def test_the_upper_triangle_is_row_by_row() -> None:
    sums = MomentSums(columns(4, 4, 4), 48)
    assert sums.vector([{"x0": 2.0, "x1": 3.0, "x2": -3.0}]) == [1, 2, -4, 4, -8, 16]


def test_rows_are_averaged_by_person_and_added_by_record() -> None:
    rows = [{"x0": 5.0}, {"x1": 5.0}, {"x1": 5.0}, {"x0": -3.0, "x1": 5.0}]
    assert MomentSums(columns(2, 2), 8, "record", 4).vector(rows) == [8, -4, 12]
    assert MomentSums(columns(2, 2), 8, "person", 4).vector(rows) == [2, -1, 3]
    assert MomentSums(columns(2, 2), 8, "person", 4).vector([]) == [0, 0, 0]


def test_a_long_record_is_shrunk_before_its_products() -> None:
    sums = MomentSums(columns(10, 10), 100)
    assert sums.integers({"x0": 5.0, "x1": -3.0}) == [7, -7]
    assert sums.vector([{"x0": 5.0, "x1": -3.0}]) == [49, -49, 49]


def test_tables_hold_a_one_in_each_block() -> None:
    sums = tables_of({"a": 2, "b": 3}, [("a", "b")])
    assert sums.lengths == (4, 6, 6) and sums.length == 16
    assert sums.places({"a": 1, "b": 2}, 0) == (2, 4, 5)
    vector = sums.vector({"a": 1, "b": 2}, 0)
    assert [vector.index(1), sum(vector)] == [2, 3]
    assert blocks(sums.lengths).encode(sums.places({"a": 1, "b": 2}, 0)) == vector
    assert sums.split(vector) == ((0, 0, 1, 0), (0, 0, 0, 0, 1, 0), (0, 0, 0, 0, 0, 1))


@pytest.mark.parametrize(
    ("categories", "label"), [({"a": 2, "b": 0}, 0), ({"a": 0}, 0), ({"a": 0, "b": -1}, 0), ({"a": 0, "b": 0}, 2)]
)
def test_impossible_categories_are_refused(categories: dict[str, int], label: int) -> None:
    with pytest.raises(Malformed, match="expected a category"):
        tables_of({"a": 2, "b": 3}).vector(categories, label)


def test_a_label_counts_only_where_it_is_asked() -> None:
    assert Block(("a",), (3,), False).place({"a": 2}, 7) == 2


def test_gradients_are_those_of_the_logistic_loss() -> None:
    sums = GradientSums(columns(1, 1), 1000, Fraction(5))
    weights = [WEIGHT, -2 * WEIGHT]
    error = 1 / (1 + math.exp(-(0.5 - 2 * -0.25))) - 1
    assert sums.vector([({"x0": 3.0, "x1": 0.0}, 1)], weights) == [
        round(1000 * error * 0.5),
        round(1000 * error * -0.25),
    ]


def test_a_persons_gradients_are_averaged_and_a_records_added() -> None:
    rows = [({"x0": 5.0}, 0), ({"x0": 5.0}, 0), ({"x0": 5.0}, 1), ({"x0": 5.0}, 0)]
    assert GradientSums(columns(1), 100, Fraction(1), "person", 4).vector(rows, [0]) == [25]
    assert GradientSums(columns(1), 100, Fraction(1), "record", 4).vector(rows, [0]) == [100, 4 * 100]
    assert GradientSums(columns(1), 100, Fraction(1, 5), "record", 4).vector(rows, [0]) == [2 * 20, 4 * 100]


def descent(**changed: Any) -> Descent:
    known: dict[str, Any] = {
        "rounds": 3,
        "step": Fraction(1),
        "momentum": Fraction(1, 2),
        "units": 10,
        "noise": Fraction(0),
        "last": 2,
    }
    return Descent(**{**known, **changed})


def test_records_are_counted_in_the_sum_and_a_noisy_count_stays_in_its_bounds() -> None:
    sums = GradientSums(columns(1, 1), 100, Fraction(1), "record", 4)
    assert sums.length == 3 and sums.heard((7, -3, 250), 2) == ([7, -3], 2)
    assert [sums.heard((0, 0, count), 2)[1] for count in (-900, 149, 351, 449, 10**9)] == [2, 2, 4, 4, 8]
    person = GradientSums(columns(1, 1), 100, Fraction(1), "person", 4)
    assert person.heard((7, -3), 2) == ((7, -3), 2)
    for design, values in ((sums, (1, 2)), (person, (1, 2, 3))):
        with pytest.raises(Malformed, match=f"expected {design.length}"):
            design.heard(values, 2)


def test_a_step_goes_against_the_gradient() -> None:
    way = descent()
    first = way.after(way.start(2), [50, -100], 10)
    assert first.weights == (-WEIGHT // 2, WEIGHT) and first.totals == (0, 0)
    second = way.after(first, [0, 0], 10)
    assert second.weights == (-WEIGHT // 2 - WEIGHT // 4, WEIGHT + WEIGHT // 2)
    third = way.after(second, [50, -100], 10)
    assert way.final(third) == tuple((a + b) / (2 * WEIGHT) for a, b in zip(second.weights, third.weights, strict=True))
    with pytest.raises(Malformed, match="at most 3 rounds"):
        way.after(third, [0, 0], 10)
    with pytest.raises(Malformed, match="expected 3 rounds"):
        way.final(second)


def test_the_known_noise_shrinks_a_step() -> None:
    """By James and Stein: half of the sum of squares is noise, then all of it."""
    way = descent(noise=Fraction(50**2 + 100**2, 4))
    assert way.after(way.start(2), [50, -100], 10).weights == (-WEIGHT // 4, WEIGHT // 2)
    assert way.after(way.start(2), [30, -50], 10).weights == (0, 0)


def test_weights_stay_within() -> None:
    way = descent(units=1)
    assert way.after(way.start(1), [10**15], 1).weights == (-(2**32),)


def test_a_standing_is_a_function_of_the_sums_alone() -> None:
    spring = Random(5)
    rounds = [[spring.randrange(-900, 900) for _ in range(4)] for _ in range(3)]
    ends = []
    for _ in range(2):
        way = descent(noise=Fraction(77, 3), step=Fraction(3, 7))
        standing = way.start(4)
        for sums in rounds:
            standing = way.after(standing, sums, 40)
        ends.append(standing)
    assert ends[0] == ends[1] and any(ends[0].weights)


def test_a_linear_model_scores_raw_values() -> None:
    held = columns(1, 1)
    assert Linear(held, (2.0, -1.0)).score({"x0": 5.0, "x1": -1.0}) == 2.5
    assert Linear(held, (0.5, 0.0), Column("t", 10.0, 4.0)).score({"x0": 5.0, "x1": "no number"}) == 12.0


@pytest.mark.parametrize(
    ("squared", "length", "halves"), [(0, 1, 1), (7, 5, 1), (7, 5, 2), (10**30 + 1, 500, 2), (49, 4, 1)]
)
def test_a_rounded_norm_is_its_formula_rounded_down(squared: int, length: int, halves: int) -> None:
    found = rounded(squared, length, halves)
    # below (sqrt(s) + h sqrt(l) / 2)^2 = s + h^2 l / 4 + h sqrt(s l), without floats
    rest = Fraction(found) - squared - Fraction(halves * halves * length, 4)
    above = rest + 1
    assert rest <= 0 or rest**2 <= halves * halves * squared * length
    assert above > 0 and above**2 > halves * halves * squared * length


@pytest.mark.parametrize("squared", [1, 2, 4, 255, 256, 257, 10**20])
def test_the_ball_holds_the_longest_vector(squared: int) -> None:
    bits, radius = ball_of(squared)
    assert (radius - 1) ** 2 < squared <= radius**2 and radius < 2 ** (bits - 1) <= 2 * radius


def test_wrong_forms_are_refused() -> None:
    for make, said in [
        (lambda: Block(("a",), (1,), False), "two cells"),
        (lambda: Block(("a", "a"), (2, 2)), "without repeats"),
        (lambda: TableSums(()), "at least one"),
        (lambda: TableSums((Block(("a",), (2,)),) * 2), "none twice"),
        (lambda: Column("x", 0.0, 0.0), "width above 0"),
        (lambda: Column("x", math.nan, 1.0), "finite centre"),
        (lambda: MomentSums((), 1), "at least one"),
        (lambda: MomentSums(columns(1), 0), "at least 1"),
        (lambda: MomentSums(columns(1), 1).vector([{}, {}]), "at most 1, got 2"),
        (lambda: GradientSums(columns(1), 1, Fraction(0)), "a clip above 0"),
        (lambda: GradientSums(columns(1), 1, Fraction(1)).vector([({}, 0), ({}, 0)], [0]), "at most 1, got 2"),
        (lambda: descent(last=4), "rounds >= last"),
        (lambda: descent(momentum=Fraction(1)), "below 1"),
        (lambda: Linear(columns(1), (math.inf,)), "finite weight"),
    ]:
        with pytest.raises(InvalidValue, match=said):
            make()
    with pytest.raises(Malformed, match="expected 4 cells"):
        tables_of({"a": 2}).split([1])
    with pytest.raises(Malformed, match="weights: expected 1"):
        GradientSums(columns(1), 1, Fraction(1)).vector([], [0, 0])
    with pytest.raises(Malformed, match="sums: expected 2"):
        descent().after(descent().start(2), [1], 1)
