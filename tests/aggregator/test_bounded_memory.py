"""A study in buckets is published, learned from and audited with a few packets in memory at a time. A step that broke
off is repeated."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest

from aggregator.audit import audit_documents
from aggregator.audit import buckets as audited
from aggregator.rules.faults import Superseded
from aggregator.rules.lifecycle import Phase
from aggregator.store import database, enrolments, packets
from aggregator.study import bucketing, counting
from aggregator.study.live import LiveStudy
from anon.transparency import bucketed, buckets
from anon.transparency.bucketed import roster_in_buckets, transcript_bucket, transcript_in_buckets
from anon.transparency.documents import encode_chain, find
from anon.wire.messages import parse_roster
from examples.testing import all_contents
from tests.support.documents import contents_of
from tests.support.synthetic import fill
from tests.support.world import in_memory, study_text

MEMBERS, PACKETS = 6, 120


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six members have two buckets, and 120 packets 32; a page has five rows."""
    monkeypatch.setattr(buckets, "THRESHOLD", 4)
    monkeypatch.setattr(buckets, "MEAN", 3)
    for module, name in ((database, "PAGE"), (packets, "_AT_ONCE"), (enrolments, "_AT_ONCE")):
        monkeypatch.setattr(module, name, 5)


class Alive:
    """Counts the values of a class that are in memory at once. Those that only a cycle holds are garbage, which is
    collected before it would be counted: when Python does so by itself is chance."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> None:
        self.most = self.all = 0
        self._alive: WeakSet[Any] = WeakSet()
        made: Callable[..., Any] = getattr(module, name)

        def make(*given: Any) -> Any:
            one = made(*given)
            self._alive.add(one)
            self.all += 1
            if len(self._alive) > self.most:
                gc.collect()
            self.most = max(self.most, len(self._alive))
            return one

        monkeypatch.setattr(module, name, make)


async def numbered(live: LiveStudy) -> dict[int, bytes]:
    return {one.head.number: await live.body_of(one.head) for one in live.chain}


@pytest.mark.slow
async def test_each_step_holds_a_few_packets_and_the_bytes_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    async with in_memory(tmp_path / "home", study_text(), database_url=database_url) as world:
        live = world.live
        await world.close_enrolment(await world.enrol(MEMBERS))
        entries = [one for body in await contents_of(live, "roster") for one in parse_roster(body, live.study)]
        await world.go_to(world.opens)
        stored = await fill(live, PACKETS)
        rows, made = Alive(monkeypatch, packets, "AcceptedPacket"), Alive(monkeypatch, bucketing, "transcript_bucket")
        parsed = Alive(monkeypatch, bucketed, "parse_published")
        monkeypatch.setattr(counting, "_BYTES", 4000)
        await world.go_to(world.closes)
        assert live.phase is Phase.PUBLISHED and not live.trouble
        assert rows.all >= 2 * PACKETS * len(live.manifest.slots) and rows.most <= 40
        assert made.all == 32 * len(live.manifest.slots) and made.most <= bucketing._KEPT_AT_ONCE + 1
        assert parsed.all >= PACKETS and parsed.most <= 60, "packets of a few buckets are counted at a time"
        parsed.most = 0
        monkeypatch.setattr(audited, "TRANSCRIPTS_AT_ONCE", 1)
        result = audit_documents(encode_chain(live.chain), await numbered(live), contents=await all_contents(live))
        assert result.model_checked and result.packets == PACKETS
        crowd = f"slot 0 has {PACKETS} packets, and the signed roster {MEMBERS} members: the others are invented"
        assert [one.fault for one in result.findings] == [f"{PACKETS} tokens do not verify", crowd], (
            "all else is as it must be"
        )
        assert parsed.most <= 40, "packets of a few buckets are checked at a time"
        whole = roster_in_buckets(live.study, entries)
        assert (await contents_of(live, "roster"), await live.body_of(live.chain[1].head)) == (
            whole.contents,
            whole.document.to_bytes(),
        )
        mine = transcript_in_buckets(live.study, 0, [one.plaintext for one in reversed(stored) if one.slot == 0])
        head = find(live.chain, "transcript")
        assert head is not None and await live.body_of(head) == mine.document.to_bytes()
        assert await contents_of(live, "transcript") == mine.contents


@pytest.mark.slow
async def test_a_transcript_that_broke_off_is_made_anew(tmp_path: Path, database_url: str) -> None:
    """It broke off after some buckets were stored, one of them wrong and one too many; another process goes on."""
    async with in_memory(tmp_path / "home", study_text(), database_url=database_url) as world:
        live = world.live
        await world.close_enrolment(await world.enrol(MEMBERS))
        await world.go_to(world.opens)
        stored = await fill(live, PACKETS)
        number, store = len(live.chain), live.tools.buckets
        wrong = transcript_bucket(live.study, 0, [stored[1].plaintext, stored[0].plaintext])
        for bucket in (0, 3, 200):
            await store.put(live.study, number, bucket, [wrong])
        assert await live.served_bucket(number, 3, whole=True) is None, "no head names it"
        await world.go_to(world.closes)
        assert live.phase is Phase.PUBLISHED and len(await contents_of(live, "transcript")) == 32
        await store.put(live.study, number, 3, [wrong])
        assert wrong.content not in await contents_of(live, "transcript"), "what is signed stays"


@pytest.mark.slow
async def test_buckets_that_another_process_put_are_not_signed(tmp_path: Path, database_url: str) -> None:
    async with in_memory(tmp_path / "home", study_text(), database_url=database_url) as world:
        live = world.live
        await world.close_enrolment(await world.enrol(MEMBERS))
        number, wrong = len(live.chain), transcript_bucket(live.study, 0, [])

        async def one() -> Any:
            yield wrong

        put = live.tools.buckets.put

        async def overtaken(study: bytes, number: int, first: int, some: Any) -> None:
            await put(study, number, first, some)
            await put(study, number, first, [bucketing.roster_bucket(study, [])])

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(live.tools.buckets, "put", overtaken)
            with pytest.raises(Superseded):
                await bucketing.publish_in_buckets(live, "transcript", 0, one())
        assert len(live.chain) == number
        await bucketing.publish_in_buckets(live, "transcript", 0, one())
        assert len(live.chain) == number + 1 and await contents_of(live, "transcript") == [wrong.content]
