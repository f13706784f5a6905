"""Aggregators that lie with every key in their hands: the audit finds each kind of lie, names it, or says that it
cannot see it; and it says nothing of an honest study."""

from __future__ import annotations

from random import Random

import pytest

from anon.errors import AnonmlError
from anon.transparency import buckets
from tests.attacks.lying_aggregators import HISTOGRAMS, SUMS, Sight, begun, sight_of
from tests.attacks.lying_pages import KINDS
from tests.support.forged_studies import Forge
from tests.support.tries import every, soaked

LIES = 8
"""Lies of each kind: one in `make test-all`, all in the soak."""
HONEST = 200
MOST_FINDINGS = 60
"""A longer list is read by nobody."""
AT_ONCE = (
    "ghosts beside the roster",
    "ghosts in a transcript that is signed for as many as there are members",
    "more vectors than members in a sum",
    "an abandoned study in which enough enrolled",
    "the score seed revealed before anybody answered",
    "counts before any packet is shown",
    "an invented report",
)
"""Kinds of which one lie is told in every run of the tests; the others are slow."""


@pytest.fixture(autouse=True)
def few_in_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight members have buckets of two."""
    monkeypatch.setattr(buckets, "THRESHOLD", 8)
    monkeypatch.setattr(buckets, "MEAN", 2)
    monkeypatch.setattr(buckets, "LEAST", 0)


def seen(forge: Forge) -> Sight:
    try:
        result = forge.audited()
    except AnonmlError:
        return Sight.FOUND  # nothing can be checked
    return sight_of(result) if len(result.findings) <= MOST_FINDINGS else Sight.NONE


def drawn(name: str, number: int) -> Forge:
    return KINDS[name].tell(Random(f"{name} {number}"))


def test_the_kinds_of_lies_are_enough_and_those_not_seen_are_few() -> None:
    unseen = [name for name, kind in KINDS.items() if kind.sight is Sight.NONE]
    assert len(KINDS) >= 25 and len(unseen) <= 8
    assert all(kind.bound for kind in KINDS.values() if kind.sight is not Sight.FOUND)


def told(name: str) -> list[pytest.MarkDecorator]:
    return [] if name in AT_ONCE else [pytest.mark.slow]


@pytest.mark.parametrize("number", soaked(LIES, range(LIES)))
@pytest.mark.parametrize("name", [pytest.param(name, marks=told(name)) for name in KINDS])
def test_a_lie(name: str, number: int) -> None:
    assert seen(drawn(name, number)) is KINDS[name].sight


def honest(number: int) -> Forge:
    """Of any design, from 4 to 20 members, some of whom send nothing."""
    rng = Random(f"honest {number}")
    members, design = rng.randint(4, 20), (*HISTOGRAMS, *SUMS)[number % 7]
    silent = rng.randrange(members - 3)
    return begun(design, members, rng.getrandbits(32), silent).finish()


@pytest.mark.parametrize("number", every(2, range(4)))
@pytest.mark.slow
def test_an_honest_study_raises_nothing(number: int) -> None:
    result = honest(2 * number).audited()
    assert sight_of(result) is Sight.NONE and result.report_checked, result.lines()


@pytest.mark.slow
@pytest.mark.parametrize("tens", soaked(4, range(HONEST // 10)))
def test_honest_studies_raise_nothing(tens: int) -> None:
    for number in range(10 * tens, 10 * tens + 10):
        result = honest(number).audited()
        assert sight_of(result) is Sight.NONE and result.report_checked, result.lines()
