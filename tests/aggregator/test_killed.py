"""An aggregator killed (SIGKILL) on each side of every commit and answer, all through one study.

Nothing acknowledged is lost, nothing is kept twice, no two heads share a number, and the study ends as if nothing had
happened.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from aggregator.audit import audit_documents
from aggregator.store.crash_points import POINTS
from aggregator.study.live import LiveStudy
from anon.errors import Unreachable
from anon.route import DirectRoute
from anon.transparency.documents import SignedHead, parse_chain
from anon.wire.cbor import decode
from anon.wire.packets import parse_published
from anon.wire.replies import REPLY_BYTES, parse_reply
from examples.testing import all_contents
from tests.support.clock import Clock
from tests.support.documents import contents_of
from tests.support.shared_clock import SharedClock
from tests.support.spawned import Child, pipe, serve_studies
from tests.support.world import FakePeer, make_app, sealed, study_text

pytestmark = pytest.mark.process

PATIENCE = 60


class Victim:
    """A server process that is started, killed by a crash point, and started again."""

    def __init__(self, folder: Path) -> None:
        self.home, self.clock = folder / "home", SharedClock(folder / "clock")
        self.text = study_text(admission="open")
        self.at(1_700_000_000)
        self.child: Child | None = None
        self.port = 0
        self.deaths: list[str] = []
        self.seen: tuple[SignedHead, ...] = ()

    def at(self, time: float) -> None:
        """Set the clock."""
        self.clock.seconds = time

    async def start(self, point: str = "") -> None:
        """Start, to die at `point`; it may do so before it serves."""
        await self.stop()
        receiving, sending = pipe()
        self.child = Child(serve_studies, self.home, self.clock.path, sending, point, self.text)
        sending.close()  # its end is seen as the pipe's
        assert await asyncio.to_thread(receiving.poll, PATIENCE), "it neither serves nor ended"
        with contextlib.suppress(EOFError):
            self.port = receiving.recv()

    async def died(self, point: str) -> None:
        """The process was killed by its crash point."""
        assert self.child is not None
        assert await self.child.died(), point
        self.child = None
        self.deaths.append(point.partition(":")[0])

    async def stop(self) -> None:
        """End it, if it runs, also by SIGKILL."""
        if self.child is not None:
            self.child.kill()
            await self.child.ended()
            self.child = None

    async def post(self, study: bytes, path: str, body: bytes) -> str:
        """One post over a fresh connection."""
        answer = await DirectRoute(10).post(f"127.0.0.1:{self.port}", f"/v1/{study.hex()}/{path}", body, REPLY_BYTES)
        return parse_reply(answer.body)

    async def post_through_deaths(self, points: list[str], study: bytes, path: str, body: bytes, word: str) -> None:
        """Send the same bytes while the server dies at each point; in the end they are acknowledged."""
        for point in points:
            await self.start(point)
            with contextlib.suppress(Unreachable):
                assert await self.post(study, path, body) == word
            await self.died(point)
        await self.start()
        assert await self.post(study, path, body) == word

    async def die_ticking(self, points: list[str]) -> None:
        """Be killed at each point by what the clock makes due, then get through."""
        for point in points:
            await self.start(point)
            await self.died(point)
        await self.start()

    async def heads(self, study: bytes, key: bytes) -> tuple[SignedHead, ...]:
        """The chain; whatever was seen before must still be its beginning."""
        answer = await DirectRoute(10).get(f"127.0.0.1:{self.port}", f"/v1/{study.hex()}/heads", 10**6)
        chain = parse_chain(answer.body, key, study)
        assert chain[: len(self.seen)] == self.seen, "two heads with one number"
        self.seen = chain
        return chain

    async def until(self, study: bytes, key: bytes, kind: str) -> tuple[SignedHead, ...]:
        """Wait for a document."""
        for _ in range(PATIENCE * 10):
            chain = await self.heads(study, key)
            if any(one.head.kind == kind for one in chain):
                return chain
            await asyncio.sleep(0.1)
        raise AssertionError(f"{kind} never came")

    async def keep_killing(self, times: int, generator: random.Random) -> None:
        """Kill it so many times, each at a random moment of its life."""
        for _ in range(times):
            await self.start()
            await asyncio.sleep(generator.uniform(0, 0.5))
            await self.stop()
            self.deaths.append("at random")
        await self.start()

    async def post_until(self, study: bytes, path: str, body: bytes) -> str:
        """Send the same bytes until somebody answers."""
        while True:
            try:
                return await self.post(study, path, body)
            except Unreachable:
                await asyncio.sleep(0.05)


@pytest.fixture
async def victim(tmp_path: Path) -> AsyncIterator[Victim]:
    one = Victim(tmp_path)
    yield one
    await one.stop()


async def test_a_study_survives_being_killed_everywhere(victim: Victim) -> None:
    await victim.start("before-commit-of-study")
    await victim.died("before-commit-of-study")
    await victim.start("after-commit-of-study")
    await victim.died("after-commit-of-study")
    async with make_app(victim.home, Clock()) as app:
        (live,) = app.studies()
        manifest, key, study = live.manifest, app.home.public_key, live.study
        peers = [FakePeer(manifest) for _ in range(4)]

        around = ["before-commit-of-{}", "after-commit-of-{}"]
        answered = ["before-answer", "after-answer"]
        first, leaver, *others = peers
        await victim.post_through_deaths(
            [point.format("enrolments") for point in around] + answered,
            study,
            "enrol",
            first.sealed_enrolment(),
            "accepted",
        )
        for peer in (leaver, *others):
            assert await victim.post(study, "enrol", peer.sealed_enrolment()) == "accepted"
        await victim.post_through_deaths(
            [point.format("withdrawal") for point in around], study, "withdraw", leaver.sealed_withdrawal(), "withdrawn"
        )

        await victim.stop()
        documents = [point.format("document") for point in around]
        phases = [point.format("phase") for point in around]
        victim.at(manifest.timetable.enrol_closes)
        await victim.die_ticking(documents * 3 + phases[:1])
        await victim.until(study, key, "credentials")
        await live.refresh()
        members = [first, *others]
        for peer in members:
            await peer.take_credential(live)

        victim.at(manifest.surveys[0].window.opens)
        await asyncio.sleep(0.3)
        packets = [peer.packet() for peer in members]
        await victim.post_through_deaths(
            [point.format("packets") for point in around] + answered,
            study,
            "packets",
            sealed(live, packets[0]),
            "accepted",
        )
        for packet in packets[1:]:
            assert await victim.post(study, "packets", sealed(live, packet)) == "accepted"

        await victim.stop()
        victim.at(manifest.surveys[0].window.closes)
        freezes = [point.format("freeze") for point in around]
        await victim.die_ticking(freezes + documents * 2 + phases + documents)
        await victim.until(study, key, "report")
        assert await victim.post(study, "packets", sealed(live, packets[0])) == "accepted", "a late resend"

        await live.refresh()
        bodies = {one.head.number: await live.body_of(one.head) for one in live.chain}
        result = audit_documents(live.heads(), bodies, contents=await all_contents(live))
        assert result.ok and result.model_checked and result.enrolled == len(members), result.findings
        kept = [decode(content)[3] for content in await contents_of(live, "transcript")]
        assert sorted(one for part in kept for one in part) == sorted(packet.to_bytes() for packet in packets)
        assert {parse_published(one).study for part in kept for one in part} == {study}

        await victim.stop()
        victim.at(manifest.timetable.ends + manifest.release.retention)
        await victim.die_ticking(["before-erasure", "after-erasure"])
        assert await app._tools.packets.counts(study) == {}
        of_sums = {"before-commit-of-list", "after-commit-of-list"}  # no sum is made here
        assert set(victim.deaths) == set(POINTS) - of_sums, "every named point was met"


@pytest.mark.soak
async def test_a_study_survives_fifty_kills_at_random_moments(victim: Victim) -> None:
    """Seeded moments; what they hit depends on the machine. Enrolments, packets and the clock go on meanwhile."""
    await victim.start()
    async with make_app(victim.home, Clock()) as app:
        (live,) = app.studies()
        manifest, key, study = live.manifest, app.home.public_key, live.study
        killer = asyncio.create_task(victim.keep_killing(50, random.Random(20)))
        peers = [FakePeer(manifest) for _ in range(40)]
        for peer in peers:
            assert await victim.post_until(study, "enrol", peer.sealed_enrolment()) == "accepted"
        victim.at(manifest.timetable.enrol_closes)
        await _eventually(live, "credentials")
        for peer in peers:
            await peer.take_credential(live)
        victim.at(manifest.surveys[0].window.opens)
        packets = [peer.packet() for peer in peers]
        for packet in packets:
            assert await victim.post_until(study, "packets", sealed(live, packet)) == "accepted"
        victim.at(manifest.surveys[0].window.closes)
        await _eventually(live, "report")
        await killer
        assert len(victim.deaths) == 50
        chain = await victim.until(study, key, "report")
        bodies = {one.head.number: await live.body_of(one.head) for one in chain}
        result = audit_documents(live.heads(), bodies, contents=await all_contents(live))
        assert result.ok and (result.enrolled, result.packets) == (40, 40), result.findings


async def _eventually(live: LiveStudy, kind: str) -> None:
    for _ in range(PATIENCE * 20):
        await live.refresh()
        if any(one.head.kind == kind for one in live.chain):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"{kind} never came")
