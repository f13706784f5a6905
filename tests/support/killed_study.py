"""One small study with everything around it that a test kills and starts again."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

from aggregator.app import AggregatorApp
from anon.ldp import nano
from anon.study.manifest import Manifest
from anon.wire.invite import Invite
from peer.data.importing import import_rows
from peer.rules.lifecycle import LAST, State
from tests.support.journal import Journal
from tests.support.protocols import parse_manifest
from tests.support.recording_wire import Wire
from tests.support.shared_clock import Flow, SharedClock
from tests.support.spawned import PATIENCE, Child, peer_app, pipe, publish_study, run_peers, serve_studies
from tests.support.studies import income_study

EPSILON = 2.0
LENGTHS = {"enrol": 1000, "settle": 40, "collect": 80, "margin": 6, "retention": 600}
ONE_PACKET = income_study(
    'kind = "one-packet"\nepsilon = 2.0\nsubsets = [["sex"]]\nbinning_share = 0.01',
    title="Killed", age="bins = 2", binning=30, **LENGTHS,
)
"""Practically everyone answers about `sex` when collection opens, after the edges of `age` were published."""
PAPER = income_study(
    'kind = "paper"\nepsilon_histogram = 0.75\nepsilon_binning = 0.5\npartitions = 2\nbinning_rounds = 2',
    title="Killed", age="bins = 2", binning=120, **LENGTHS,
)
"""Three packets per peer: two histograms and one of two rounds that look for the median of `age`."""


class Resident:
    """One peer: its home, its wire and its journal."""

    def __init__(self, home: Path, wire: Wire, invite: Invite) -> None:
        self.home = home
        self.wire = wire
        self.invite = invite
        self.journal = Journal(home)

    def state(self) -> State | None:
        """Where the study stands for this peer, as stored."""
        if not (self.home / "peer.sqlite").exists():
            return None
        with (
            closing(sqlite3.connect(self.home / "peer.sqlite", timeout=30)) as store,
            suppress(sqlite3.OperationalError),
        ):
            row = store.execute("SELECT state FROM studies").fetchone()
            return State(row[0]) if row else None
        return None

    def surveys(self) -> list[int]:
        """The surveys of this peer's packets, as stored."""
        with closing(sqlite3.connect(self.home / "peer.sqlite", timeout=30)) as store:
            return [survey for (survey,) in store.execute("SELECT survey FROM outbox ORDER BY slot")]

    async def until(self, reached: Callable[[State | None], bool]) -> None:
        """Wait for a state."""
        deadline = time.monotonic() + PATIENCE
        while not reached(self.state()):
            assert time.monotonic() < deadline, f"a peer stayed {self.state()}"
            await asyncio.sleep(0.05)

    async def enrolled(self) -> None:
        """Wait until enrolment is acknowledged, or the study is over for this peer."""
        await self.until(lambda state: state not in (None, State.CONSENTED, State.LEAVING))


class KilledStudy:
    """Aggregator, clock and peers of one study. Make it with `killed_study`."""

    def __init__(self, folder: Path, text: str, rate: float) -> None:
        self.folder = folder
        self.text = text
        self.home = folder / "aggregator"
        self.clock = SharedClock(folder / "clock")
        self.flow = Flow(self.clock, rate)
        self.port: int | None = None
        self.aggregator: Child | None = None
        self.residents: list[Resident] = []
        self.deaths: list[str] = []
        self.manifest: Manifest

    async def publish(self, points: Sequence[str] = ()) -> None:
        """Publish the study, dying at each of the points first."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for point in (*points, ""):
            if await Child(publish_study, self.home, self.clock.path, self.text, point).died():
                self.deaths.append(point)
        with closing(sqlite3.connect(self.home / "aggregator.sqlite")) as store:
            ((body,),) = store.execute("SELECT body FROM documents WHERE number = 0").fetchall()
        self.manifest = parse_manifest(body)

    async def settle_in(self, count: int) -> list[Resident]:
        """So many peers with data and an invite, each behind a wire of its own. They have not joined yet."""
        wires = [await Wire(lambda: self.port).open() for _ in range(count)]
        async with AggregatorApp(self.home, self.clock, os.urandom, processes=0) as app:
            study = self.manifest.study_id
            invites = [(await app.create_invites(study, 1, wire.address))[0] for wire in wires]
        fresh = []
        for number, (wire, invite) in enumerate(zip(wires, invites, strict=True), len(self.residents)):
            home = self.folder / f"peer-{number}"
            home.mkdir(mode=0o700)
            row = (20 + number, ("Female", "Male")[number % 2], ("low", "high")[number % 3 == 0])
            import_rows(home / "data.sqlite", "person", ["age", "sex", "income"], [row])
            fresh.append(Resident(home, wire, invite))
        self.residents += fresh
        return fresh

    async def join(self, resident: Resident) -> None:
        """The owner's yes."""
        app = peer_app(resident.home, self.clock)
        try:
            await app.join(resident.invite, nano(EPSILON))
        finally:
            app.close()

    async def start(self, point: str = "") -> None:
        """Start the aggregator, to die at `point`. Time stands still until it listens."""
        assert self.aggregator is None or not self.aggregator.alive
        with self.flow.held():
            receiving, sending = pipe()
            self.aggregator = Child(serve_studies, self.home, self.clock.path, sending, point)
            deadline = time.monotonic() + PATIENCE
            while not receiving.poll() and self.aggregator.alive:
                assert time.monotonic() < deadline, "the aggregator did not start"
                await asyncio.sleep(0.01)
            if receiving.poll():
                self.port = receiving.recv()

    async def aggregator_died(self, point: str) -> None:
        """It was killed by its crash point."""
        assert self.aggregator is not None
        assert await self.aggregator.died(), f"never came to {point}"
        self.port = None
        self.deaths.append(point)

    async def die_and_restart(self, points: Sequence[str]) -> None:
        """Be killed at each point by what happens anyway, then go on."""
        for point in points:
            await self.start(point)
            await self.aggregator_died(point)
        await self.start()

    def kill_aggregator(self) -> None:
        """SIGKILL, now."""
        if self.aggregator is not None:
            self.aggregator.kill()
            self.aggregator.process.join()
        self.port = None

    def run(self, *residents: Resident, point: str = "") -> Child:
        """A process that runs these peers."""
        return Child(run_peers, [one.home for one in residents], self.clock.path, point)

    async def published(self, kind: str) -> None:
        """Wait for a document."""
        deadline = time.monotonic() + PATIENCE
        while kind not in self.kinds():
            assert time.monotonic() < deadline, f"{kind} never came"
            await asyncio.sleep(0.1)

    def kinds(self) -> list[str]:
        """The kinds of the published documents, in order."""
        with closing(sqlite3.connect(self.home / "aggregator.sqlite", timeout=30)) as store:
            return [
                kind for (kind,) in store.execute("SELECT kind FROM documents WHERE signature != x'' ORDER BY number")
            ]

    def jump(self, seconds: float) -> None:
        """Skip time in which nothing happens."""
        self.clock.seconds = max(self.clock(), seconds)


@asynccontextmanager
async def killed_study(folder: Path, text: str = ONE_PACKET, rate: float = 10.0) -> AsyncIterator[KilledStudy]:
    """A study whose clock flows; everything it started ends with it."""
    folder.mkdir(parents=True, exist_ok=True)
    study = KilledStudy(folder, text, rate)
    flowing = asyncio.create_task(study.flow.run())
    try:
        yield study
    finally:
        flowing.cancel()
        study.kill_aggregator()
        for resident in study.residents:
            resident.wire.close()


def over(state: State | None) -> bool:
    """True if the study has ended for a peer."""
    return state in LAST
