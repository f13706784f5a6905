"""Processes that serve one home on one PostgreSQL database, which a test kills or pauses at a point that it names."""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import time
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from attrs import define, field

from aggregator import app as aggregator_app
from aggregator.store import crash_points
from aggregator.store import postgres as postgres_module
from aggregator.store import studies as studies_module
from aggregator.store.home import open_home
from anon.errors import Unreachable
from anon.route import DirectRoute
from anon.storage.crash_points import VARIABLE
from anon.transparency.documents import Head, SignedHead, parse_chain
from anon.wire.replies import parse_reply
from tests.support.postgres import Server
from tests.support.shared_clock import SharedClock
from tests.support.spawned import Child, pipe

TAKEOVER_SECONDS = 10.0
LOCKED_SECONDS = 15.0
"""A paused process holds what it wrote for ten seconds; then the server lets go of it."""
MOMENTS = {
    "while-issuing": ("aggregator.study.bucketing", "issue"),
    "before-signing": ("aggregator.store.studies", "signed"),
    "while-compacting": ("aggregator.store.postgres", "_without_statistics"),
    "before-transcript": ("aggregator.study.bucketing", "transcript_bucket"),
    "before-settling": ("aggregator.tellers.walk", "_settled"),
    "before-one-list": ("aggregator.tellers.walk", "_demand_one_list"),
    "while-learning": ("aggregator.study.effects", "learn_from_counts"),
}
"""Points between two commits: a function of the leader, before it does anything."""


def serve(home: Path, clock: Path, ready: Connection, point: str, paused: bool, signings: Path) -> None:
    """A further process of `anonml aggregator serve`, to be killed, or `paused`, at a crash point or a moment.

    The port goes to `ready`. Every head that it signs goes to `signings`, a line each.
    """
    _note_signings(signings)
    _arm(point, signal.SIGSTOP if paused else signal.SIGKILL)

    async def work() -> None:
        async with aggregator_app.AggregatorApp(
            home, SharedClock(clock), os.urandom, processes=0, look_seconds=0.1
        ) as app:
            await app.serve_beside("127.0.0.1", 0, ready.send)

    asyncio.run(work())


def _note_signings(signings: Path) -> None:
    signed = studies_module.signed

    def noted(key: Any, head: Head) -> SignedHead:
        with signings.open("a") as file:
            file.write(f"{head.number} {head.to_bytes().hex()}\n")
        return signed(key, head)

    studies_module.__dict__["signed"] = noted


def _arm(point: str, how: signal.Signals) -> None:
    name = point.partition(":")[0]
    if name in crash_points.POINTS:
        os.environ[VARIABLE] = point
        if how is not signal.SIGKILL:
            module = importlib.import_module("anon.storage.crash_points")
            module.__dict__["KILL"] = how
    elif name:
        module, attribute = importlib.import_module(MOMENTS[name][0]), MOMENTS[name][1]
        usual, left = getattr(module, attribute), [how]

        def instead(*args: Any, **kwargs: Any) -> Any:
            if left:
                os.kill(os.getpid(), left.pop())
            return usual(*args, **kwargs)

        setattr(module, attribute, instead)


@define
class Serving:
    """The processes. `folder` holds what they share beside the home; `name` is the database's."""

    home: Path
    clock: SharedClock
    server: Server
    url: str
    folder: Path
    children: dict[int, Child] = field(factory=dict)
    ports: dict[int, int] = field(factory=dict)
    takeovers: list[float] = field(factory=list)

    @property
    def name(self) -> str:
        """The database's."""
        return self.url.split("/")[3].partition("?")[0]

    async def start(
        self, point: str = "", paused: bool = False, clock: SharedClock | None = None, home: Path | None = None
    ) -> int:
        """One more; its number."""
        receiving, sending = pipe()
        own = (clock or self.clock).path
        child = Child(serve, home or self.home, own, sending, point, paused, self.folder / "signings")
        while not receiving.poll():
            assert child.alive
            await asyncio.sleep(0.02)
        pid = child.process.pid
        assert pid is not None
        self.children[pid], self.ports[pid] = child, receiving.recv()
        return pid

    def leader(self) -> int:
        """The process that leads now; 0 when none does."""
        asked = (
            "SELECT application_name FROM pg_stat_activity JOIN pg_locks USING (pid) WHERE locktype = 'advisory' AND "
            f"granted AND objid = {postgres_module._LEADING} AND datname = '{self.name}'"
        )
        named = self.server.run(asked, self.name)
        return int(named.removeprefix("anonml ")) if named else 0

    async def led_by(self, who: Callable[[int], bool], seconds: float = TAKEOVER_SECONDS) -> int:
        """Wait for a leader, for as long as a takeover may last."""
        begun = time.monotonic()
        while not who(leader := self.leader()):
            assert time.monotonic() < begun + seconds, "nobody took over"
            await asyncio.sleep(0.1)
        self.takeovers.append(time.monotonic() - begun)
        return leader

    async def reached(self, state: str, study: bytes = b"") -> None:
        """Wait until the study, of several this one, is there, in the database."""
        which = f" WHERE study = '\\x{study.hex()}'" if study else ""
        deadline = time.monotonic() + TAKEOVER_SECONDS + 30
        while (now := self.server.run(f"SELECT phase FROM studies{which}", self.name)) != state:
            assert time.monotonic() < deadline, f"still {now}"
            await asyncio.sleep(0.1)

    async def chain_of(self, pid: int, study: bytes) -> tuple[SignedHead, ...]:
        """The heads that a process shows."""
        answer = await DirectRoute().get(f"127.0.0.1:{self.ports[pid]}", f"/v1/{study.hex()}/heads", 2**20)
        return parse_chain(answer.body, open_home(self.home, bytes).public_key, study)

    async def shown(self, pid: int, study: bytes, chain: tuple[SignedHead, ...]) -> None:
        """Wait until a process shows this chain."""
        deadline = time.monotonic() + 30
        while await self.chain_of(pid, study) != chain:
            assert time.monotonic() < deadline, f"process {pid} shows another chain"
            await asyncio.sleep(0.1)

    async def post(self, pid: int, study: bytes, what: str, body: bytes) -> str:
        """A process's word for an enrolment (`enrol`), a withdrawal (`withdraw`) or a packet (`packets`)."""
        answer = await DirectRoute().post(f"127.0.0.1:{self.ports[pid]}", f"/v1/{study.hex()}/{what}", body, 2**10)
        return parse_reply(answer.body)

    async def post_until_answered(self, pids: Iterable[int], study: bytes, what: str, body: bytes) -> str:
        """The first word that comes, asking one process after the other as a peer does."""
        for pid in pids:
            try:
                async with asyncio.timeout(LOCKED_SECONDS):
                    return await self.post(pid, study, what, body)
            except (Unreachable, TimeoutError):
                continue
        raise AssertionError("no process answered")

    async def died(self, pid: int) -> None:
        """Wait until a process is killed at its point."""
        assert await self.children.pop(pid).died(), "it ended by itself"

    async def stopped(self, pid: int) -> None:
        """Wait until a process is paused at its point."""
        deadline = time.monotonic() + 30
        while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
            assert time.monotonic() < deadline, "it never came to its point"
            await asyncio.sleep(0.05)

    def kill(self, pid: int) -> None:
        """SIGKILL, now."""
        self.children.pop(pid).process.kill()

    def demand_one_head_a_number(self) -> None:
        """No process has ever signed another head under a number that was signed."""
        lines = {line for line in (self.folder / "signings").read_text().splitlines() if line}
        numbers = [line.split()[0] for line in lines]
        assert len(numbers) == len(set(numbers)) and numbers

    def end(self) -> None:
        """All of them."""
        for pid, child in self.children.items():
            os.kill(pid, signal.SIGCONT)
            child.process.kill()
            child.process.join()
