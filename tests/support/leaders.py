"""A study whose leaders are killed or paused at points that a test names; the next process takes over."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from attrs import define, field

from aggregator.app import AggregatorApp
from aggregator.store.dialects import set_up
from aggregator.store.home import open_home
from aggregator.study.live import LiveStudy
from anon.transparency.bucketed import published as transcripts
from anon.transparency.documents import find
from tests.support.documents import contents_of, read_roster
from tests.support.postgres import Server
from tests.support.protocols import parse_proposal
from tests.support.serving import Serving
from tests.support.shared_clock import SharedClock
from tests.support.world import FakePeer, study_text


def both(*names: str) -> list[str]:
    return [f"{side}-{name}" for name in names for side in ("before", "after")]


DOCUMENT, PHASE = both("commit-of-document"), both("commit-of-phase")


@define
class Life:
    """A study on its way, carried on by processes of which one leads. `spent`: the points at which leaders ended."""

    serving: Serving
    app: AggregatorApp
    live: LiveStudy
    peers: list[FakePeer] = field(factory=list)
    accepted: int = 0
    spent: set[str] = field(factory=set)

    async def killed(self, points: Sequence[str], due: float, state: str) -> None:
        """The due steps are taken by one leader after the other, each of which is killed at its point."""
        leader = await self._leading(points[0])
        heirs = [await self.serving.start(*points[1:2])]
        self.serving.clock.seconds = due
        for point in points[2:] + [""] * (len(points) > 1):
            await self._succeeded(leader, heirs[-1])
            leader = heirs[-1]
            heirs.append(await self.serving.start(point))
        await self._succeeded(leader, heirs[-1])
        await self.serving.reached(state)
        self.spent |= set(points)

    async def paused(self, point: str, due: float, state: str) -> None:
        """The leader is paused there. It goes on once another leads, and shows what the other shows."""
        leader = await self._leading(point, paused=True)
        heir = await self.serving.start()
        self.serving.clock.seconds = due
        await self.serving.stopped(leader)
        await self.serving.led_by(lambda pid: pid == heir)
        os.kill(leader, signal.SIGCONT)
        await self.serving.reached(state)
        await self._woken(leader, heir)
        self.spent.add(point)

    async def killed_taking(self, what: str, body: bytes, point: str) -> str:
        """The word for a post that a leader is killed over: the next process says it."""
        leader = await self._leading(point)
        heir = await self.serving.start()
        word = await self.serving.post_until_answered((leader, heir), self.live.study, what, body)
        await self._succeeded(leader, heir)
        self.spent.add(point)
        return word

    async def paused_taking(self, what: str, body: bytes, point: str) -> str:
        """The same for one that is paused over it."""
        leader = await self._leading(point, paused=True)
        heir = await self.serving.start()
        word = await self.serving.post_until_answered((leader, heir), self.live.study, what, body)
        await self.serving.stopped(leader)
        await self.serving.led_by(lambda pid: pid == heir)
        os.kill(leader, signal.SIGCONT)
        await self._woken(leader, heir)
        self.spent.add(point)
        return word

    async def enrol(self, count: int) -> None:
        """So many, with no process in between."""
        self.peers += (more := [FakePeer(self.live.manifest) for _ in range(count)])
        assert {await self.live.enrol(peer.sealed_enrolment()) for peer in more} == {"accepted"}

    async def take_credentials(self) -> None:
        """All peers, from what the processes published."""
        await self.app._load()
        for peer in self.peers:
            await peer.take_credential(self.live)

    async def send(self, posts: Sequence[bytes]) -> None:
        """Packets, to a process that leads."""
        leader = self.serving.leader()
        for post in posts:
            assert await self.serving.post(leader, self.live.study, "packets", post) == "accepted"
        self.accepted += len(posts)

    async def demand_nothing_lost(self) -> None:
        """Each enrolment is in the roster, each packet in a transcript, and all processes show one chain."""
        await self.app._load()
        for pid in self.serving.children:
            await self.serving.shown(pid, self.live.study, self.live.chain)
        chain = self.live.chain
        bodies = await contents_of(self.live, "transcript")
        assert sum(transcripts(self.live.manifest, bodies).accepted.values()) == self.accepted
        roster = find(chain, "roster")
        assert roster is not None
        entries = read_roster(await self.live.body_of(roster), self.live.study)
        assert {entry.key for entry in entries} == {bytes(peer.key.verify_key) for peer in self.peers}
        self.serving.demand_one_head_a_number()

    async def _leading(self, point: str, paused: bool = False) -> int:
        leader = await self.serving.start(point, paused)
        for pid in self.serving.children.keys() - {leader}:
            self.serving.kill(pid)
        return await self.serving.led_by(lambda pid: pid == leader)

    async def _succeeded(self, leader: int, heir: int) -> None:
        await self.serving.died(leader)
        own = self.serving.children[heir]
        await self.serving.led_by(lambda pid: pid == heir or not own.alive)

    async def _woken(self, leader: int, heir: int) -> None:
        await self.app._load()
        for pid in (leader, heir):
            await self.serving.shown(pid, self.live.study, self.live.chain)
        self.serving.kill(leader)


@asynccontextmanager
async def begun(postgres: Server, folder: Path, design: str) -> AsyncIterator[Life]:
    """A study that enrols, and a process that leads."""
    url, clock = postgres.made(), SharedClock(folder / "clock")
    await set_up(open_home(folder / "home", os.urandom), url)
    serving = Serving(folder / "home", clock, postgres, url, folder)
    async with AggregatorApp(folder / "home", clock, os.urandom, processes=0) as app:
        manifest = await app.create_study(parse_proposal(study_text(design, admission="open")))
        try:
            await serving.start()
            yield Life(serving, app, app.study(manifest.study_id))
        finally:
            serving.end()
            print(f"longest takeover: {max(serving.takeovers):.1f} s of {len(serving.takeovers)}")
