"""Sums over parties with many records each: no search passes the stated sensitivity, and rounding has its term.

Where weights are shrunk, or votes are opposite, the search reaches 95 % of it before its rounding.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement
from math import sqrt
from random import Random

import pytest

from anon.errors import InvalidValue, Malformed
from anon.noise.scaling import Neighbours, shrunk
from anon.protocols.vectors.averaging import FINEST, AveragedWeights, scale_for
from anon.protocols.vectors.columns import Column
from anon.protocols.vectors.logistic import LARGEST, LEAST, moved_by_one
from anon.protocols.vectors.transfer import TransferredVotes
from tests.support.climbing import Genes, apart, climbed, summed
from tests.support.tries import every

NEIGHBOURS: tuple[Neighbours, ...] = ("replace-one", "add-remove")
ENDS = (-2.0, -1.0, -0.5, -0.1, -0.03, 0.0, 0.03, 0.1, 0.5, 1.0, 2.0)


def columns(size: int) -> tuple[Column, ...]:
    return tuple(Column(f"x{place}", 0.0, 1.0) for place in range(size))


def records_of(genes: Genes, size: int) -> list[tuple[dict[str, object], int]]:
    """A label's sign and the values of each record."""
    cut = range(0, len(genes), size + 1)
    return [({f"x{place}": genes[at + 1 + place] for place in range(size)}, int(genes[at] > 0)) for at in cut]


PERSONS = [(1, Fraction(1)), (2, Fraction(1, 2)), (3, Fraction(3, 2))]


@pytest.mark.parametrize(("person", "neighbours"), every(3, PERSONS, NEIGHBOURS))
@pytest.mark.slow
def test_weights_of_a_person(person: tuple[int, Fraction], neighbours: Neighbours) -> None:
    """All records of a member are replaced, or left out: shrunk weights attain it."""
    size, clip = person
    design = AveragedWeights(columns(size), 1000, Fraction(1, 100), clip, 1, "person", 2)
    limit, genes = design.sensitivity_squared(neighbours), 2 * (size + 1)

    def value(both: Genes) -> int:
        one, other = (design.vector(records_of(part, size)) for part in (both[:genes], both[genes:]))
        assert sum(entry * entry for entry in one) <= design.norm_squared == design.contribution_norm_squared
        return apart(one, other if neighbours == "replace-one" else design.vector([]))

    spring = Random(size)
    opposite = [1.0] * genes + ([1.0] + [-1.0] * size) * 2
    found = climbed([opposite, [spring.choice(ENDS) for _ in opposite]], ENDS, value, limit, 60)
    before = float(clip) * 1000 * (2 if neighbours == "replace-one" else 1)
    assert sqrt(found) >= 0.95 * before and sqrt(limit) <= before + sqrt(size) + 1e-9


RECORDS = [(1, 1, 0), (2, 1, 0), (2, 1, 3), (2, 3, 0), (2, 3, 1), (2, 3, 2), (2, 3, 3), (3, 2, 3)]
CLIPS = [Fraction(1, 3), Fraction(100)]


@pytest.mark.parametrize(("record", "clip", "neighbours"), every(3, RECORDS, CLIPS, NEIGHBOURS))
def test_weights_of_a_record(record: tuple[int, int, int], clip: Fraction, neighbours: Neighbours) -> None:
    """One record of a member is replaced by another, or left out. The others stay: fewer than `fewest`, or more.

    A small clip is attained. How near 2 / (n lambda) comes is in `test_logistic.py`.
    """
    size, fewest, others = record
    strength = Fraction(1, 5)
    moved = moved_by_one(strength, fewest)
    scale = scale_for(size, moved)
    design = AveragedWeights(columns(size), scale, strength, clip, fewest, "record", 9)
    limit, each = design.sensitivity_squared(neighbours), size + 1
    assert sqrt(limit) <= 1.01 * scale * moved

    def value(genes: Genes) -> int:
        cuts = (genes[:each], genes[each : 2 * each], genes[2 * each :])
        one, other, rest = (records_of(part, size) for part in cuts)
        return apart(design.vector(one + rest), design.vector((other if neighbours == "replace-one" else []) + rest))

    spring = Random(size + others)
    opposite = [1.0] * each + [1.0] + [-1.0] * size + [spring.choice(ENDS) for _ in range(each * others)]
    found = climbed([opposite, [spring.choice(ENDS) for _ in opposite]], ENDS, value, limit, 40)
    least = 0.95 * 2 * float(clip) * scale if clip < 1 else 0.15 * sqrt(limit)
    assert sqrt(found) >= (least if neighbours == "replace-one" else least / 2)


def test_a_records_weights_are_shrunk_and_its_sensitivity_with_them() -> None:
    """From one end of the ball to the other, where one record moves weights farther than the ball is wide."""
    design = AveragedWeights(columns(1), 1000, Fraction(1, 1000), Fraction(1), 1, "record", 2)
    one, other = (design.vector([({"x0": value}, 1)]) for value in (1.0, -1.0))
    assert 0.95 * sqrt(design.sensitivity_squared("replace-one")) <= abs(one[0] - other[0]) == 2000
    assert design.norm_squared > design.contribution_norm_squared == 1000**2 + 1000


def test_one_record_more_may_turn_the_weights_round() -> None:
    """From one end of the ball to the other: so a record that is left out has the sensitivity of one that is
    replaced."""
    design = AveragedWeights(columns(1), 1000, Fraction(1, 1000), Fraction(1), 1, "record", 2)
    weak, strong = ({"x0": 0.1}, 1), ({"x0": -1.0}, 1)
    moved = design.vector([weak])[0] - design.vector([weak, strong])[0]
    assert moved == 2000 and moved**2 <= design.sensitivity_squared("add-remove") <= 1.01 * moved**2
    assert design.sensitivity_squared("add-remove") == design.sensitivity_squared("replace-one")


def test_two_roundings_stay_within_their_term() -> None:
    """Of each vector: 1/2 sqrt(d) for the nearest integers, and not quite 11/10 sqrt(d) where it is shrunk."""
    worst = 0.0
    for size, reach in ((1, 200), (2, 24), (3, 9)):
        for vector in combinations_with_replacement(range(reach), size):
            squares = sum(entry * entry for entry in vector)
            for norm in {*range(1, min(squares, 12)), squares // 3, squares - 1} & {*range(1, squares)}:
                ideal = sqrt(norm / squares)
                lost = [ideal * entry - kept for entry, kept in zip(vector, shrunk(vector, norm), strict=True)]
                worst = max(worst, sqrt(sum(one * one for one in lost) / size))
    design = AveragedWeights(columns(4), 2**20, Fraction(1), Fraction(1), 100, "record", 100)
    term = (sqrt(design.norm_squared) - 2**20 * float(moved_by_one(Fraction(1), 100))) / 2
    assert 1 <= worst <= 1.1 and 2 * (0.5 + worst) <= term


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6, 7, 11, 47, 124, 1000])
def test_a_row_is_no_longer_than_1(size: int) -> None:
    """Exactly, of the doubles that are stored."""
    held = columns(size)
    for design in (AveragedWeights(held, 1, Fraction(1), Fraction(1)), TransferredVotes(held, 1, 1)):
        for far in (1.0, -3.0, 10**400, float("inf")):
            row = design.row({f"x{place}": far for place in range(size)})
            assert sum(Fraction(entry) ** 2 for entry in row) <= 1


@pytest.mark.parametrize("size", [1, 2, 124, 26_843])
@pytest.mark.parametrize(("strength", "fewest"), [(Fraction(1, 1000), 1), (LARGEST, 10**9)])
def test_a_scale_makes_rounding_a_hundredth(size: int, strength: Fraction, fewest: int) -> None:
    """And half of it would not. The finest scale suffices for 26,843 columns, since `SLACK` is a part of each move."""
    moved, held = moved_by_one(strength, fewest), columns(size)
    scale = scale_for(size, moved)

    def grown(scale: int) -> float:
        design = AveragedWeights(held, scale, strength, Fraction(1), fewest, "record", fewest)
        return sqrt(design.norm_squared) / (scale * float(moved)) - 1

    assert scale & (scale - 1) == 0 and scale <= FINEST and grown(scale) < 0.01 + 1e-9
    assert scale == 1 or grown(scale // 2) > 0.01 - 1e-9


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize(("size", "public"), [(1, 1), (1, 5), (4, 3), (9, 4)])
def test_transferred_votes(size: int, public: int, neighbours: Neighbours) -> None:
    """Votes and public rows climb together: opposite votes on rows that are all alike attain it."""
    scale = 1000
    design = TransferredVotes(columns(size), scale, public)
    limit, before = design.sensitivity_squared(neighbours), scale * (1.0 if neighbours == "replace-one" else 0.5)
    rest = design.vector([1] * public, [design.row({"x0": 1.0})] * public)

    def value(genes: Genes) -> int:
        rows = [design.row(record) for record, _label in records_of(genes[2 * public :], size)]
        one, other = (design.vector([int(gene > 0) for gene in part], rows) for part in halves(genes[: 2 * public]))
        assert sum(entry * entry for entry in one) <= design.norm_squared == design.contribution_norm_squared
        return apart(summed([rest, one]), summed([rest, other] if neighbours == "replace-one" else [rest]))

    spring = Random(size)
    alike = [1.0] * public + [-1.0] * public + [1.0] * (public * (size + 1))
    drawn = [spring.choice(ENDS) for _ in alike]
    found = climbed([drawn, alike], ENDS, value, limit)
    assert sqrt(found) >= 0.95 * before and sqrt(limit) <= before + sqrt(size) + 1e-9
    assert design.changed(neighbours) == size


def halves(genes: Genes) -> tuple[Genes, Genes]:
    return genes[: len(genes) // 2], genes[len(genes) // 2 :]


def test_wrong_forms_are_refused() -> None:
    held = columns(2)
    for form in (
        ((), 1, Fraction(1), Fraction(1)),
        (held, 0, Fraction(1), Fraction(1)),
        (held, FINEST + 1, Fraction(1), Fraction(1)),
        (held, 1, Fraction(1), Fraction(0)),
        (held, 1, Fraction(1), Fraction(1), 2),
        (held, 1, Fraction(1), Fraction(1), 0),
    ):
        with pytest.raises(InvalidValue, match="averaging: expected"):
            AveragedWeights(*form)
    for strength in (Fraction(0), LEAST / 2, 2 * LARGEST):
        with pytest.raises(InvalidValue, match="a lambda from 1/100000 to 1000"):
            AveragedWeights(held, 1, strength, Fraction(1))
    for votes in (((), 1, 1), (held, 0, 1), (held, 1, 0), (held, 1, 1, 0)):
        with pytest.raises(InvalidValue, match="transfer: expected"):
            TransferredVotes(*votes)
    design = AveragedWeights(held, 1, Fraction(1), Fraction(1))
    with pytest.raises(InvalidValue, match="at most 1, got 2"):
        design.vector([({}, 0), ({}, 1)])
    transferred = TransferredVotes(held, 1, 2)
    for found, count in (([], 2), ([1], 1), ([1], 2), ([1] * 3, 3)):
        with pytest.raises(Malformed, match="public rows: expected 2"):
            transferred.vector(found, [[0.0, 0.0]] * count)
    for mean in (design.mean, transferred.mean):
        for values, members in (([1], 1), ([1, 2], 0)):
            with pytest.raises(Malformed, match="sums: expected 2"):
                mean(values, members)
    assert transferred.vector([1, 0], [[0.0, 0.0]] * 2) == design.vector([]) == [0, 0]
