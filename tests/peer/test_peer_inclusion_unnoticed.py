"""Faults of looking for the own packets that were planted once and went unnoticed: one test for each."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from attrs import define

from anon.transparency.buckets import LEAST, Bucket, BucketDocument
from anon.transparency.documents import Head, SignedHead
from anon.transparency.together import HeadGroup, heads_of
from anon.transparency.transcript import digest_list
from peer.rules.distrust import Distrust
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from peer.run.inclusion import choose_transcripts, conclude, fetch_digests
from peer.run.jobs import FetchDigests
from peer.store.records import SentStudy
from tests.peer.test_peer_plan import CUT
from tests.support.fake_aggregator import DECLARED, FakeAggregator
from tests.support.stored_member import StoredMember

OWN = bytes(32)
"""The digest of the packet of slot 0."""


def delivered(folder: Path, text: str = DECLARED) -> tuple[StoredMember, SentStudy]:
    """A member whose packets were all acknowledged: it drew the first survey of every slot."""
    aggregator = FakeAggregator.with_study(text)
    draws = tuple(slot.rows[0].survey for slot in aggregator.manifest.slots)
    stored = StoredMember.checked(folder, aggregator, draws)
    stored.evaluated(*[stored.packet(1.0, slot) for slot in range(len(draws))]).delivered()
    stored.store.settle(aggregator.study, stored.run.settled_events())
    study = stored.store.study(aggregator.study)
    assert isinstance(study, SentStudy)
    return stored, study


# The end


@pytest.mark.parametrize("given", ["", "another reason"])
@pytest.mark.parametrize("fetched", ["all", "some", "none"])
def test_of_packets_that_were_not_looked_for_nothing_is_said(tmp_path: Path, fetched: str, given: str) -> None:
    """Otherwise a packet that nobody looked for would pass for one that was."""
    stored, study = delivered(tmp_path, CUT)
    looked = {"all": stored.packets, "some": stored.packets[1:], "none": []}[fetched]
    assert len({packet.slot for packet in stored.packets}) == len(stored.packets) == 2
    stored.run.listed = {one.slot: frozenset({one.digest or b""}) for one in looked}
    conclude(stored.run, study, given)
    ended = stored.store.study(study.study)
    assert (ended.state, ended.reason) == (State.FINISHED, given)
    keys = {one.key for one in looked}
    assert all(one.status is (Status.INCLUDED if one.key in keys else Status.DELIVERED) for one in stored.packets)


def test_who_delivered_nothing_is_told_so(tmp_path: Path) -> None:
    stored = StoredMember.checked(tmp_path, FakeAggregator.with_study(DECLARED))
    study = stored.aggregator.study
    stored.store.record_evaluated(study, b"answers", [], [0])
    stored.store.settle(study, stored.run.settled_events())
    sent: Any = stored.store.study(study)
    conclude(stored.run, sent, "")
    assert stored.store.study(study).reason == "nothing was delivered"


# Buckets of digests


@define
class Buckets:
    """Exchanges in which each bucket holds so many digests, and some of them the own one."""

    study: bytes
    entries: int
    holding: frozenset[int] = frozenset({0})

    async def bucket(self, _study: object, _head: object, _document: object, number: int) -> Bucket:
        own = [OWN] if number in self.holding else []
        others = [Random(number * 1000 + at).randbytes(32) for at in range(self.entries - len(own))]
        return Bucket(digest_list(self.study, 0, [*own, *others]), ())


def jobs(study: SentStudy, count: int = 4096) -> list[FetchDigests]:
    """The own bucket of slot 0 and two decoys, of a transcript with so many packets."""
    head = Head(study.study, 9, "transcript", 0, 1, bytes(32), bytes(32))
    document = BucketDocument(study.study, "transcript", 0, count, bytes(32))
    return [FetchDigests(head, document, bucket, bucket == 0) for bucket in range(3)]


@pytest.mark.parametrize("at", [0, 1], ids=["the own", "a decoy"])
async def test_a_bucket_of_digests_that_is_so_small_that_it_tells_who_fetches_it_is_not_looked_into(
    tmp_path: Path, at: int
) -> None:
    stored, study = delivered(tmp_path)
    full: Any = Buckets(study.study, LEAST)
    small: Any = Buckets(study.study, LEAST - 1)
    job = jobs(study)[at]
    with pytest.raises(Distrust, match="demanded; nothing is sent"):
        await fetch_digests(stored.run, small, study, job)
    assert stored.run.listed == {} and job not in stored.run.memory.done
    await fetch_digests(stored.run, full, study, job)
    assert job in stored.run.memory.done
    (whole, *_) = jobs(study, LEAST - 1)
    await fetch_digests(stored.run, small, study, whole)
    assert whole in stored.run.memory.done, "one bucket that holds all tells nothing"


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (1, 0, 2)])
@pytest.mark.parametrize("holding", [{0}, {1}, set()], ids=["in the own", "in a decoy", "nowhere"])
async def test_the_own_packet_is_looked_for_in_the_own_bucket_alone(
    tmp_path: Path, order: tuple[int, ...], holding: set[int]
) -> None:
    """In whatever order the buckets come: a decoy neither hides the packet nor shows it."""
    stored, study = delivered(tmp_path)
    exchanges: Any = Buckets(study.study, LEAST, frozenset(holding))
    fetches = jobs(study)
    for at in order:
        await fetch_digests(stored.run, exchanges, study, fetches[at])
    (packet,) = stored.packets
    assert packet.digest == OWN and stored.run.memory.done == {*fetches}
    assert stored.run.listed == {packet.slot: frozenset({OWN}) if 0 in holding else frozenset()}
    conclude(stored.run, study, "")
    assert [one.status for one in stored.packets] == [Status.INCLUDED if 0 in holding else Status.NOT_INCLUDED]


# One bucket


async def test_documents_of_one_bucket_come_in_one_exchange_and_nothing_more_is_fetched(tmp_path: Path) -> None:
    """Of every slot, whatever was drawn and answered: and no bucket, whose time would have to be drawn."""
    stored, study = delivered(tmp_path, CUT)
    aggregator = stored.aggregator
    aggregator.crowd(4)
    aggregator.close()
    aggregator.transcribe()
    asked: list[HeadGroup] = []

    class Documents:
        async def chain_with(self, _study: object, group: HeadGroup) -> tuple[list[SignedHead], dict[Head, bytes]]:
            asked.append(group)
            heads = heads_of(group, aggregator.chain, len(study.manifest.slots))
            return aggregator.chain, {head: aggregator.bodies[head.number] for head in heads}

    exchanges: Any = Documents()
    await choose_transcripts(stored.run, exchanges, study)
    slots = [slot.slot for slot in study.manifest.slots]
    assert asked == [HeadGroup.TRANSCRIPTS] and len(slots) == 2
    assert stored.run.memory.digests == () and {*stored.run.listed} == {*slots}
