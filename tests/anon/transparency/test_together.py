"""Heads that come with documents: both sides take the same bodies, and nothing else passes."""

from __future__ import annotations

import pytest

from anon.errors import Malformed
from anon.protocols.sizes import longest_beside
from anon.transparency.together import (
    HeadGroup,
    heads_of,
    parse_told_time,
    parse_with_heads,
    taken_apart,
    told_time,
    with_heads,
)
from tests.support.documents import heads_answer
from tests.support.fake_aggregator import FakeAggregator


def test_a_time_is_told_in_steps_of_the_margin_and_never_too_early() -> None:
    assert [parse_told_time(told_time(now, 60)) for now in (1200, 1200.5, 1201, 1260)] == [1200, 1200, 1260, 1260]
    assert parse_told_time(told_time(7.9, 0.05)) == 7.0, "a second is the least step"
    assert parse_told_time(b"") is None
    for told in (b"1", bytes(7), bytes(9)):
        with pytest.raises(Malformed, match="8 bytes"):
            parse_told_time(told)


def test_heads_and_rest_are_parted_by_their_length() -> None:
    assert parse_with_heads(b"".join(with_heads(b"heads", [b"one", memoryview(b"two")]))) == (b"heads", b"onetwo")
    for cut in (b"", b"\0\0\0", b"\0\0\0\x05head", b"\xff" * 4):
        with pytest.raises(Malformed, match="cut off"):
            parse_with_heads(cut)


def closed() -> FakeAggregator:
    aggregator = FakeAggregator.with_study()
    aggregator.crowd(4)
    aggregator.close()
    return aggregator


def test_bodies_of_another_length_or_content_are_refused() -> None:
    aggregator = closed()
    heads = heads_of(HeadGroup.CLOSING, aggregator.chain, 1)
    answer = heads_answer("heads/closing", aggregator.chain, aggregator.bodies, aggregator.manifest)
    _, bodies = parse_with_heads(answer)
    assert list(taken_apart(heads, bodies).values()) == aggregator.bodies[1:4]
    for other in (b"", bodies[:-1], bodies + b"x", bodies[1:] + bodies[:1]):
        with pytest.raises(Malformed):
            taken_apart(heads, other)


def test_a_group_comes_whole_or_not_at_all() -> None:
    aggregator = closed()
    for published in range(1, 4):
        assert heads_of(HeadGroup.CLOSING, aggregator.chain[:published], 1) == []
    assert [head.kind for head in heads_of(HeadGroup.CLOSING, aggregator.chain, 1)] == ["roster", "seed", "credentials"]
    assert heads_of(HeadGroup.TRANSCRIPTS, aggregator.chain, 1) == heads_of(HeadGroup.CLOCK, aggregator.chain, 1) == []
    assert [head.kind for head in heads_of(HeadGroup.OPENING, aggregator.chain, 1)] == ["manifest"]
    aggregator.publish("report", b"long")
    aggregator.transcribe()
    assert [head.kind for head in heads_of(HeadGroup.TRANSCRIPTS, aggregator.chain, 1)] == ["transcript"]
    aggregator.publish("unsummed", b"why")
    assert [head.kind for head in heads_of(HeadGroup.TRANSCRIPTS, aggregator.chain, 1)] == ["unsummed"]


@pytest.mark.parametrize("group", HeadGroup)
def test_no_answer_is_longer_than_a_peer_reads(group: HeadGroup) -> None:
    aggregator = closed()
    aggregator.transcribe()
    answer = heads_answer(f"heads/{group}", aggregator.chain, aggregator.bodies, aggregator.manifest, 1e9)
    heads, _ = parse_with_heads(answer)
    assert len(answer) - len(heads) <= longest_beside(aggregator.manifest, group)
