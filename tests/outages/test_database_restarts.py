"""PostgreSQL restarts under a command that serves: it goes on, and every packet is kept once."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from attrs import define

from aggregator.app import AggregatorApp
from aggregator.store.dialects import set_up
from aggregator.store.home import open_home
from aggregator.study.live import LiveStudy
from anon.errors import Unreachable
from anon.machine.guard import LONGEST_PAUSE
from anon.route import DirectRoute
from anon.transparency.bucketed import published as transcripts
from anon.wire.replies import parse_reply
from tests.support.documents import contents_of
from tests.support.patience import until
from tests.support.postgres import Server, server
from tests.support.protocols import parse_proposal
from tests.support.served_commands import serve_command
from tests.support.served_tellers import free_port
from tests.support.shared_clock import SharedClock
from tests.support.spawned import Child
from tests.support.world import FakePeer, sealed, study_text

pytestmark = [pytest.mark.postgres, pytest.mark.process]
LONG = "100000s"
"""Of a window: each restart takes half a minute of the clock."""


@define
class Restarted:
    """A command that serves, its database's server, and peers that come again until they are answered."""

    postgres: Server
    child: Child
    app: AggregatorApp
    live: LiveStudy
    clock: SharedClock
    port: int
    said: Path
    restarts: int = 0

    async def post(self, what: str, body: bytes) -> str:
        """The word, however often the post has to come again."""
        path = f"/v1/{self.live.study.hex()}/{what}"
        while True:
            assert self.child.alive, self.said.read_text()
            try:
                answer = await DirectRoute().post(f"127.0.0.1:{self.port}", path, body, 2**10)
            except Unreachable:
                answer = None
            if answer is not None and answer.status == 200:
                return parse_reply(answer.body)
            await asyncio.sleep(0.02)

    async def through(self, what: str, bodies: Sequence[bytes], rng: random.Random) -> None:
        """Posts that are under way while the server restarts; each comes twice, and is accepted both times."""
        posts = [asyncio.create_task(self.post(what, body)) for body in bodies for _ in range(2)]
        await asyncio.sleep(rng.random() * 0.05)
        await self.restarted(rng)
        assert {await post for post in posts} == {"accepted"}

    async def restarted(self, rng: random.Random) -> None:
        """One restart, after which every loop of the command has its turn."""
        await asyncio.to_thread(self.postgres.control, "stop", "-m", rng.choice(["fast", "immediate"]))
        self.clock.seconds += LONGEST_PAUSE  # loops come round while it is away
        await asyncio.sleep(rng.random() * 0.2)
        await asyncio.to_thread(self.postgres.control, "start")
        self.clock.seconds += LONGEST_PAUSE
        self.restarts += 1
        assert self.child.alive, self.said.read_text()

    async def come_to(self, seconds: float, phase: str) -> None:
        """The study is in a phase once its time has come, and the command says so."""
        self.clock.seconds = max(self.clock.seconds, seconds)

        def said() -> bool:
            assert self.child.alive, self.said.read_text()
            self.clock.seconds += 1  # what is tried again by the clock is due
            return f'"phase": "{phase}"' in self.said.read_text()

        await until(said)


@asynccontextmanager
async def begun(tmp_path: Path) -> AsyncIterator[Restarted]:
    """A study that enrols, served by the command in a process of its own."""
    with server() as postgres:
        clock, port, said = SharedClock(tmp_path / "clock"), free_port(), tmp_path / "said"
        await set_up(open_home(tmp_path / "home", os.urandom), postgres.made())
        async with AggregatorApp(tmp_path / "home", clock, os.urandom, processes=0) as app:
            text = study_text(maximum=5000, admission="open")
            for name in ("enrol", "collect", "retention"):
                text = text.replace(f"{name} = \"100s\"", f"{name} = \"{LONG}\"")
            manifest = await app.create_study(parse_proposal(text))
            child = Child(serve_command, tmp_path / "home", clock.path, port, said)
            try:
                await until(lambda: said.exists() and '"address"' in said.read_text())
                yield Restarted(postgres, child, app, app.study(manifest.study_id), clock, port, said)
            finally:
                child.kill()


async def restarted_under_load(tmp_path: Path, restarts: int, at_once: int) -> None:
    """So many restarts in each of enrolment and collection, and one at each change of phase."""
    rng = random.Random(27)
    async with begun(tmp_path) as life:
        manifest = life.live.manifest
        peers = [FakePeer(manifest) for _ in range(restarts * at_once)]
        for first in range(0, len(peers), at_once):
            await life.through("enrol", [peer.sealed_enrolment() for peer in peers[first : first + at_once]], rng)
        life.clock.seconds = max(life.clock.seconds, manifest.timetable.enrol_closes)
        await life.restarted(rng)
        await life.come_to(manifest.surveys[0].window.opens, "collecting")
        await life.app._load()
        for peer in peers:
            await peer.take_credential(life.live)
        for first in range(0, len(peers), at_once):
            packets = [sealed(life.live, peer.packet()) for peer in peers[first : first + at_once]]
            await life.through("packets", packets, rng)
        life.clock.seconds = max(life.clock.seconds, manifest.surveys[0].window.closes)
        await life.restarted(rng)
        await life.come_to(manifest.timetable.ends, "published")
        await life.app._load()
        bodies = await contents_of(life.live, "transcript")
        assert sum(transcripts(manifest, bodies).accepted.values()) == len(peers)
        assert life.restarts == 2 * restarts + 2 and life.child.alive
        assert "the database's server does not answer" in life.said.read_text()
        print(f"{life.restarts} restarts, {len(peers)} enrolments and packets, each once")


@pytest.mark.slow
async def test_packets_of_a_study_whose_database_restarts_are_kept_once(tmp_path: Path) -> None:
    await restarted_under_load(tmp_path, 1, 4)


@pytest.mark.soak
async def test_no_packet_is_lost_or_doubled_in_two_hundred_restarts(tmp_path: Path) -> None:
    await restarted_under_load(tmp_path, 99, 6)
