"""An audit of epsilon for `marginals`, from one member's record to the published rows: vector, noise, model and draw.

The auditor knows all other members, and works with one of two tellers: so it takes off that teller's noise, and the
other's is left. It sees the rows alone. One member's record is replaced, or its vector is left out of the sum while the
number of members, which is public, stays. A right program fails by chance once in ten thousand draws at most. The draws
repeat.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from math import log
from statistics import median

import pytest
from scipy.stats import beta

from aggregator.protocols.sum.drawn import LearnedRows
from aggregator.protocols.sum.part import learned_from
from anon.protocols.contract import Record
from anon.protocols.cost_words import epsilon_of
from anon.protocols.resolve import resolve
from anon.protocols.sum.arranged import DELTA
from anon.protocols.sum.standing import arrangement_of, place_of, read_sums, sum_asked
from anon.protocols.sum.vector import vector_of
from anon.study.manifest import Manifest
from anon.teller import rules
from anon.teller.rules import noisy_share
from tests.support.protocols import parse_proposal
from tests.support.sums import KEYS, document, sum_study

pytestmark = pytest.mark.slow
TRIALS, FIRST, ALARM = 200, 30, 5e-5
"""Studies of each kind, those before them by which the auditor chooses its threshold, and the chance to miss of either
interval."""
OWN, OTHER = (20.0, 3.0, "none", 1), (80.0, 9.0, "many", 0)
CROWD = [OWN, OTHER, (45.0, 3.0, "some", 0), (45.0, 9.0, "some", 1)] * 30
"""So many that the model does not take their tables for noise, and shrink them to nothing."""
NEIGHBOURS = {"replace-one": OTHER, "add-remove": None}
SHOWN = {OWN: ("[0, 30]", "[0, 6]", "none", "1"), OTHER: ("(60, 100]", "(6, 12]", "many", "0")}


@cache
def study_of(epsilon: float) -> Manifest:
    design = f'kind = "marginals"\nepsilon = {epsilon}\ntree_from = 0\nrows = 2000'
    return resolve(parse_proposal(sum_study(design)), KEYS, 1_800_000_000)


@cache
def vector(study: Manifest, held: tuple[float, float, str, int] | None) -> tuple[int, ...]:
    """Of one record; zeros of nobody."""
    if held is None:
        return (0,) * study.surveys[0].m
    age, sleep, cups, tired = held
    return tuple(vector_of(study, study.surveys[0], Record({"age": age, "sleep": sleep, "cups": cups}, tired)))


@cache
def crowd(study: Manifest) -> list[int]:
    """The sum of all others' vectors."""
    return [sum(cells) for cells in zip(*(vector(study, one) for one in CROWD), strict=True)]


def stream(seed: str) -> Callable[[int], bytes]:
    numbers = iter(range(10**9))
    return lambda size: hashlib.shake_128(f"{seed} {next(numbers)}".encode()).digest(size)


def rows(study: Manifest, held: tuple[float, float, str, int] | None, seed: str) -> Sequence[Sequence[str]]:
    """The published rows, with one teller's noise."""
    asked, prio3 = sum_asked(study, 0), arrangement_of(study).prio3(sum_asked(study, 0))
    field = prio3.circuit.field
    shares = [field.encode([*shown]) for shown in (vector(study, held), crowd(study))]
    share = noisy_share(prio3, asked, shares, stream(seed))
    values, modulus = field.decode(share, prio3.circuit.output_length, "share"), field.modulus
    signed = [value - modulus if 2 * value > modulus else value for value in values]
    body = document(study, 0, signed, len(CROWD) + 1)
    learned = learned_from(study, read_sums(study, {place_of(0): body}, 1), with_influence=False)
    assert isinstance(learned, LearnedRows)
    return learned.rows.rows


def leaning(found: Sequence[Sequence[str]]) -> int:
    """How far rows lean to the record: cells that go with its label as in it, less those as in the other one."""
    near, far = SHOWN[OWN], SHOWN[OTHER]
    return sum(
        sum(map(str.__eq__, row[:3], near[:3])) if row[3] == near[3] else -sum(map(str.__eq__, row[:3], far[:3]))
        for row in found
    )


def alike(found: Sequence[Sequence[str]]) -> int:
    """The rows with the record's text and its label."""
    return sum((row[2], row[3]) == SHOWN[OWN][2:] for row in found)


LOOKS = {"replace-one": leaning, "add-remove": alike}


def bound(epsilon: float, neighbours: str) -> float:
    """A lower bound of epsilon, the larger one of an event and of its contrary."""
    study, look = study_of(epsilon), LOOKS[neighbours]
    kinds = {"with": OWN, "without": NEIGHBOURS[neighbours]}
    tried = {
        name: [look(rows(study, held, f"{name} {neighbours} {trial}")) for trial in range(FIRST + TRIALS)]
        for name, held in kinds.items()
    }
    middle = sum(median(values[:FIRST]) for values in tried.values()) / 2
    many, few = (sum(value > middle for value in values[FIRST:]) for values in tried.values())
    return max(least(many, few), least(TRIALS - few, TRIALS - many))


def least(many: int, few: int) -> float:
    """A lower bound of epsilon, from how often an event came of each."""
    low = float(beta.ppf(ALARM / 2, many, TRIALS - many + 1)) if many else 0.0
    high = float(beta.ppf(1 - ALARM / 2, few + 1, TRIALS - few)) if few < TRIALS else 1.0
    return log(max(low - float(DELTA), 1e-9) / high)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_drawn_rows_tell_no_more_than_is_charged(neighbours: str) -> None:
    """At epsilon 20 it finds some, so it is not blind. A vector left out costs half of what one replaced does, in
    rho."""
    found = bound(20.0, neighbours)
    assert 0.1 < found <= epsilon_of(study_of(20.0)) / 10**9, found


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_rows_of_tables_with_too_little_noise_are_seen(neighbours: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fiftieth of its length."""
    right = rules.DiscreteGaussian
    monkeypatch.setattr(rules, "DiscreteGaussian", lambda sigma_squared: right(sigma_squared / 2500))
    assert (found := bound(1.0, neighbours)) > 1, found
