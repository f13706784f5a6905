"""Peers and aggregators in processes of their own, which may be told to die by SIGKILL at a named point.

They run the very `PeerApp` and `AggregatorApp` of the command line, over loopback HTTP, on a `SharedClock`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from aggregator import app as aggregator_app
from anon.errors import AnonmlError
from anon.ldp import nano
from anon.route import DirectRoute
from anon.storage.crash_points import VARIABLE
from anon.wire.invite import parse_invite
from peer.app import PeerApp
from peer.rules.consent import Policy
from peer.rules.lifecycle import State
from peer.store.backup.archive import restore
from peer.store.home import PeerHome
from tests.support.forks import FORKS
from tests.support.protocols import parse_proposal
from tests.support.shared_clock import SharedClock

PATIENCE = 60.0
FOREVER = 1e9


class Child:
    """One process."""

    def __init__(self, work: Callable[..., None], *args: Any) -> None:
        self.process = FORKS.Process(target=work, args=args, daemon=True)
        self.process.start()

    async def ended(self, seconds: float = PATIENCE) -> int:
        """Its exit code, negative when it was killed by a signal."""
        deadline = time.monotonic() + seconds
        while self.process.exitcode is None:
            if time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"a process did not end within {seconds:g} s")
            await asyncio.sleep(0.02)
        return self.process.exitcode

    async def died(self, seconds: float = PATIENCE) -> bool:
        """Wait for its end; whether SIGKILL was its end."""
        code = await self.ended(seconds)
        assert code in (0, -signal.SIGKILL), f"a process ended with {code}"
        return code == -signal.SIGKILL

    def kill(self) -> None:
        """SIGKILL, now."""
        self.process.kill()

    @property
    def alive(self) -> bool:
        """True if it runs."""
        return self.process.exitcode is None


# The work of a peer's process


def peer_app(home: Path, clock: SharedClock) -> PeerApp:
    """A peer that consents to anything small."""
    policy = Policy(minimum_cohort=2)
    return PeerApp(PeerHome(home), DirectRoute, clock, os.urandom, sleep=clock.sleep, policy=policy)


def _armed(point: str) -> None:
    os.environ[VARIABLE] = point


def run_peers(homes: Sequence[Path], clock: Path, point: str = "") -> None:
    """`anonml peer run` for each home, side by side, until nothing is left to do."""

    async def work() -> None:
        shared = SharedClock(clock)
        await asyncio.gather(*(peer_app(home, shared).run(FOREVER, once=True) for home in homes))

    _armed(point)
    asyncio.run(work())


def join_study(home: Path, clock: Path, link: str, epsilon: float, point: str = "") -> None:
    """`anonml peer join LINK --yes`; one that is joined already stays joined."""
    _armed(point)
    app = peer_app(home, SharedClock(clock))
    if not app.status():
        asyncio.run(app.join(parse_invite(link), nano(epsilon)))


def set_policy(home: Path, clock: Path, lifetime: float, point: str = "") -> None:
    """`anonml peer budget --lifetime`."""
    _armed(point)
    peer_app(home, SharedClock(clock)).set_policy(Policy(lifetime=nano(lifetime), minimum_cohort=2))


def pause_home(home: Path, clock: Path, point: str = "") -> None:
    """`anonml peer pause`, to die at `point`; `anonml peer resume` without one."""
    _armed(point)
    app = peer_app(home, SharedClock(clock))
    app.pause(SharedClock(clock)() + 3600) if point else app.resume()


def leave_study(home: Path, clock: Path, point: str = "") -> None:
    """`anonml peer leave`: leave, and deliver the withdrawal."""

    async def work() -> None:
        app = peer_app(home, SharedClock(clock))
        (status,) = app.status()
        if status.state in (State.CONSENTED, State.ENROLLED):
            await app.leave(status.study)
        await app.run(FOREVER, once=True)

    _armed(point)
    asyncio.run(work())


def restore_home(home: Path, file: Path, clock: Path, point: str = "") -> None:
    """`anonml peer restore`."""
    _armed(point)
    if not PeerHome(home).store_path.exists():
        restore(PeerHome(home), file, SharedClock(clock)())


def race_to_join(home: Path, clock: Path, link: str, epsilon: float, start: Any, outcome: Connection) -> None:
    """Join at the same instant as others; send the outcome's code."""

    async def work() -> str:
        app = peer_app(home, SharedClock(clock))
        invite = parse_invite(link)
        await app.look(invite)
        start.wait()
        try:
            await app.join(invite, nano(epsilon))
        except AnonmlError as refused:
            return refused.code
        return "joined"

    outcome.send(asyncio.run(work()))


# The work of an aggregator's process


def publish_study(home: Path, clock: Path, text: str, point: str = "") -> None:
    """`anonml study publish`, unless there is one already."""

    async def work() -> None:
        async with aggregator_app.AggregatorApp(home, SharedClock(clock), os.urandom, processes=0) as app:
            if not app.studies():
                await app.create_study(parse_proposal(text))

    _armed(point)
    asyncio.run(work())


def serve_studies(home: Path, clock: Path, ready: Connection, point: str = "", text: str = "") -> None:
    """`anonml aggregator serve --port 0`; the port goes to `ready`. A study of `text` is published if there is none."""

    async def work() -> None:
        async with aggregator_app.AggregatorApp(
            home, SharedClock(clock), os.urandom, processes=0, look_seconds=0.02
        ) as app:
            if text and not app.studies():
                await app.create_study(parse_proposal(text))
            await app.serve("127.0.0.1", 0, ready.send)

    _armed(point)
    asyncio.run(work())


def pipe() -> tuple[Connection, Connection]:
    """Receiving and sending end."""
    return FORKS.Pipe(duplex=False)


def barrier(parties: int) -> Any:
    """For processes that start something together."""
    return FORKS.Barrier(parties)
