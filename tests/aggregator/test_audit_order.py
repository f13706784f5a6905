"""An end without a sum rules out every document that rests on that sum, and needs those before it."""

from __future__ import annotations

import pytest

from aggregator.audit.order import ending_faults
from anon.protocols.contract import Place
from anon.transparency.documents import Head, SignedHead
from tests.support.fake_aggregator import DECLARED, FakeAggregator

SUMMED: list[Place] = [("sums", 0), ("sums", 1)]
BEFORE: list[Place] = [("manifest", 0), ("tellers", 0), ("roster", 0), ("seed", 0), ("credentials", 0)]


def _faults(ended: int, *places: Place) -> list[str]:
    chain = [
        SignedHead(Head(bytes(32), number, kind, part, 1, bytes(32), bytes(32)), bytes(64))
        for number, (kind, part) in enumerate([*BEFORE, *places, ("unsummed", 0)])
    ]
    return [*ending_faults(FakeAggregator.with_study(DECLARED).manifest, ended, SUMMED, chain)]


def test_an_end_after_the_sums_before_it_is_no_fault() -> None:
    assert _faults(0) == _faults(1, ("sums", 0)) == []


@pytest.mark.parametrize("later", [("transcript", 0), ("seed", 1), ("model", 0), ("report", 0), ("sums", 1)])
def test_nothing_of_a_missing_sum_is_published(later: Place) -> None:
    assert _faults(1, ("sums", 0), later) == [f"says that round 1 has no sum, and there is {later[0]} {later[1]}"]


def test_the_sums_before_an_end_are_published_and_its_round_is_the_studys() -> None:
    assert _faults(1) == ["says that round 1 has no sum, and sums 0 was never published"]
    assert _faults(2, *SUMMED) == ["names round 2, and the study has 2"]
