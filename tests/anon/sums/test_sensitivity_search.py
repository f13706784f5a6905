"""A search over neighbouring data sets reaches 95 % of each stated sensitivity before its rounding, and never passes
it.

Data sets are lists of peers with raw rows. Everything goes through the code that makes contributions. The search climbs
from random rows and from those that the proof names, value by value.
"""

from __future__ import annotations

from fractions import Fraction
from math import log, sqrt
from random import Random

import pytest

from anon.noise.scaling import Neighbours
from anon.protocols.vectors.columns import Column
from anon.protocols.vectors.gradient import WEIGHT, GradientSums
from anon.protocols.vectors.moments import MomentSums
from anon.protocols.vectors.sensitivity import Unit, rounded
from anon.protocols.vectors.tables import Block, TableSums, marginals_of, tables_of
from tests.support.climbing import Genes, apart, climbed, summed

NEIGHBOURS: tuple[Neighbours, ...] = ("replace-one", "add-remove")

TABLES = [
    tables_of({"a": 2, "b": 3}),
    tables_of({"a": 2, "b": 3, "c": 4}, [("a", "b"), ("b", "c")]),
    marginals_of({"a": 2, "b": 3, "c": 4}, [("a", "b")]),
    marginals_of({"a": 2, "b": 3, "c": 4}, [("a", "b"), ("a", "c"), ("b", "c")]),
    TableSums((Block(("a", "b"), (2, 2)), Block((), (), True), Block(("c",), (3,), False))),
]


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("sums", TABLES)
def test_tables(sums: TableSums, neighbours: Neighbours) -> None:
    """By every pair of persons, in a data set with two more. Attained, and as many entries change as stated."""
    cards: dict[str, int] = {}
    for block in sums.blocks:
        cards.update(zip(block.features, block.cards, strict=True))
    persons = [({}, label) for label in (0, 1)]
    for name, card in cards.items():
        persons = [({**known, name: category}, label) for known, label in persons for category in range(card)]
    vectors = [sums.vector(*one) for one in persons]
    rest = vectors[:2]
    full = [summed([*rest, vector]) for vector in vectors]
    others = full if neighbours == "replace-one" else [summed(rest)]
    assert all(sum(cell * cell for cell in vector) == sums.norm_squared for vector in vectors)
    assert max(apart(one, other) for one in full for other in others) == sums.sensitivity_squared(neighbours)
    changed = max(sum(a != b for a, b in zip(one, other, strict=True)) for one in full for other in others)
    assert changed == sums.changed(neighbours)


def columns(*reaches: int) -> tuple[Column, ...]:
    return tuple(Column(f"x{place}", 0.5, 2.0, reach) for place, reach in enumerate(reaches))


MOMENTS = [
    MomentSums(columns(*[1] * 10), 5),
    MomentSums(columns(*[1] * 10), 99),
    MomentSums(columns(1, 1), 2),
    MomentSums(columns(6, 6), 36),
    MomentSums(columns(*[8] * 6), 3 * 64),
    MomentSums(tuple(Column(f"x{place}", log(1.5), log(1.5), 8, "log") for place in range(6)), 3 * 64),
    MomentSums(columns(*[1] * 12, 2), 6),
    MomentSums(columns(2, *[1] * 14), 16),
]


def rows_of(sums: MomentSums, genes: Genes, rows: int) -> list[dict[str, float]]:
    """Genes are values in halves of a width, beside the centre; some lie beyond the clip."""
    names = [column.name for column in sums.columns]
    return [
        {name: 0.5 + gene for name, gene in zip(names, genes[at * len(names) : (at + 1) * len(names)], strict=True)}
        for at in range(rows)
    ]


def starts_of(sums: MomentSums, rows: int) -> list[Genes]:
    """Random rows, rows that fill one half of the columns and their neighbours the other, and rows of opposite
    signs."""
    size, spring = len(sums.columns), Random(3)
    filled: list[list[float]] = [[0.0] * size, [0.0] * size]
    left = [sums.radius, sums.radius]
    for place in sorted(range(size), key=lambda place: -sums.columns[place].reach):
        side = 0 if left[0] >= left[1] else 1
        if left[side] >= sums.columns[place].reach ** 2:
            filled[side][place], left[side] = 2.0, left[side] - sums.columns[place].reach ** 2
    turned = [[2.0] * size, [2.0] * (size // 2) + [-2.0] * (size - size // 2)]
    drawn = [[spring.choice((-2.0, 0.0, 2.0)) for _ in range(2 * rows * size)] for _ in range(2)]
    return [*(filled[0] * rows + filled[1] * rows, turned[0] * rows + turned[1] * rows), *drawn]


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("sums", MOMENTS)
def test_moments_of_a_record(sums: MomentSums, neighbours: Neighbours) -> None:
    limit = sums.sensitivity_squared(neighbours)
    rest = sums.vector(rows_of(sums, [1.0] * len(sums.columns), 1))

    def value(genes: Genes) -> int:
        one, other = (sums.vector([row]) for row in rows_of(sums, genes, 2))
        assert sum(entry * entry for entry in one) <= sums.norm_squared
        return apart(summed([rest, one]), summed([rest, other] if neighbours == "replace-one" else [rest]))

    found = climbed(starts_of(sums, 1), (-9.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0), value, limit)
    assert sqrt(found) >= 0.95 * sqrt(limit)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("unit", ["person", "record"])
def test_moments_of_several_rows(unit: Unit, neighbours: Neighbours) -> None:
    """A person's three rows are replaced together; of a record's unit one row alone, within the same peer."""
    sums = MomentSums(columns(*[9] * 6), 3 * 81, unit, 3)
    limit, before = (
        sums.sensitivity_squared(neighbours),
        MomentSums(sums.columns, 3 * 81).sensitivity_squared(neighbours),
    )
    rest = rows_of(sums, [1.0, -2.0, 0.0] * 4, 2)

    def value(genes: Genes) -> int:
        rows = rows_of(sums, genes, 6)
        if unit == "record":
            kept = [*rest, rows[3]] if neighbours == "replace-one" else rest
            return apart(sums.vector([*rest, rows[0]]), sums.vector(kept))
        return apart(sums.vector(rows[:3]), sums.vector(rows[3:]) if neighbours == "replace-one" else [0] * sums.length)

    found = climbed(starts_of(sums, 3), (-2.0, 0.0, 1.0, 2.0), value, limit)
    assert sqrt(found) >= 0.95 * sqrt(before) and sqrt(limit) <= sqrt(before) + rounding(sums.length, neighbours)


def rounding(length: int, neighbours: Neighbours) -> float:
    """The most that rounding to integers adds to a bound: half of the root of the length for each vector of a pair."""
    return sqrt(length) / 2 * (2 if neighbours == "replace-one" else 1) + 1e-9


def test_rounding_an_average_needs_its_term() -> None:
    """Nine rows, each with ones in seven of nine columns: every product is 1 in at least five rows, and rounded to
    1."""
    exact, sums = MomentSums(columns(*[1] * 9), 7), MomentSums(columns(*[1] * 9), 7, "person", 9)
    rows = [{f"x{place}": 0.5 if (place - first) % 9 < 2 else 2.5 for place in range(9)} for first in range(9)]
    squares = sum(entry**2 for entry in sums.vector(rows))
    assert all(sum(entry**2 for entry in exact.vector([row])) == exact.norm_squared == 28 for row in rows)
    assert exact.sensitivity_squared("add-remove") < squares == 45 <= sums.sensitivity_squared("add-remove")
    assert sums.sensitivity_squared("replace-one") == rounded(exact.sensitivity_squared("replace-one"), 45, 2)


GRADIENTS = [(1, 64, Fraction(1, 4)), (4, 100, Fraction(1)), (9, 40, Fraction(3, 2)), (3, 3, Fraction(1, 2))]


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("unit", ["person", "record"])
@pytest.mark.parametrize("form", GRADIENTS)
def test_gradients(form: tuple[int, int, Fraction], unit: Unit, neighbours: Neighbours) -> None:
    """At two settings of the weights; rows of one peer are replaced together or one of them."""
    size, scale, clip = form
    sums = GradientSums(columns(*[1] * size), scale, clip, unit, 2)
    limit = sums.sensitivity_squared(neighbours)
    before = (2 if neighbours == "replace-one" else 1) * scale * float(clip)
    if unit == "record":  # their number moves too: a query decides what is one
        before = scale * max(sqrt(float(clip) ** 2 + 1), 2 * float(clip) * (neighbours == "replace-one"))
    names = [column.name for column in sums.columns]

    def row(genes: Genes) -> tuple[dict[str, float], int]:
        return {name: 0.5 + gene for name, gene in zip(names, genes, strict=False)}, int(genes[-1] > 0)

    best = 0
    for weights in ([0] * size, [WEIGHT // 2 - WEIGHT * (place % 2) for place in range(size)]):

        def value(genes: Genes, weights: list[int] = weights) -> int:
            one, other = row(genes[: size + 1]), row(genes[size + 1 :])
            fixed = [({names[0]: 1.5}, 1)] if unit == "record" else []
            left = sums.vector([*fixed, one], weights)
            gone = sums.vector(fixed, weights)
            none = apart(left, gone) if unit == "record" or neighbours == "add-remove" else 0
            return max(none, apart(left, sums.vector([*fixed, other], weights)) if neighbours == "replace-one" else 0)

        starts = [[2.0] * size + [1] + [2.0] * size + [-1], [1.0] * (2 * size + 2)]
        best = max(best, climbed(starts, (-2.0, -1.0, -0.3, 0.0, 0.3, 1.0, 2.0), value, limit))
    assert sqrt(best) >= 0.95 * before and sqrt(limit) <= before + rounding(size, neighbours)
