"""An aggregator and its peers in one process, over loopback HTTP, on a clock that stands until it is moved.

Uses nothing but what old and new programs both have, so that `make_homes` runs it with old ones.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aggregator.app import AggregatorApp
from anon.errors import Unreachable
from anon.route import DirectRoute
from anon.route.route import Response
from anon.wire.invite import Invite
from peer.app import PeerApp
from peer.data.evaluate import at_once
from peer.rules.consent import Policy
from peer.store.home import PeerHome
from tests.support.clock import Clock
from tests.support.routes import Ask, Exchanges, onward

ADDRESS = "127.0.0.1:8750"
"""The address in the links; only the route knows the address at which the aggregator really listens."""
FIRST, SECOND = "First", "Second"
PEERS = ("ada", "ben", "eve")


class Leading(Exchanges):
    """Leads to the aggregator wherever it listens, and keeps every packet that leaves."""

    def __init__(self) -> None:
        self.port = 0
        self.packets: list[bytes] = []

    async def exchange(self, ask: Ask) -> Response:
        if ask.address != ADDRESS or not self.port:
            raise Unreachable("nothing is served there; try again later")
        if ask.body is not None and ask.what == "packets":
            self.packets.append(ask.body)
        return await onward(DirectRoute(), ask, f"127.0.0.1:{self.port}")


class Town:
    """The aggregator and some peers; each peer has the home of its name in `folder`."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.folder = folder
        self.clock = clock
        self.route = Leading()
        self.aggregator: AggregatorApp
        self.peers: dict[str, PeerApp] = {}

    def peer(self, name: str) -> PeerApp:
        """The peer of this name, opened."""
        if name not in self.peers:
            home = PeerHome(self.folder / name)
            policy = Policy(minimum_cohort=2)
            self.peers[name] = PeerApp(home, lambda: self.route, self.clock, os.urandom, policy=policy, evaluate=at_once)
        return self.peers[name]

    def study(self, title: str) -> bytes:
        """The id of a study."""
        return next(one.study for one in self.aggregator.studies() if one.manifest.title == title)

    async def invites(self, title: str, count: int) -> list[Invite]:
        return await self.aggregator.create_invites(self.study(title), count, ADDRESS)

    async def work(self, *names: str) -> float:
        """Everything that is due now, of these peers and the aggregator, is done; when the next thing is."""
        for _ in range(200):
            await asyncio.sleep(0.02)
            upcoming = [self.clock() + await self.aggregator.tick()]
            for name in names:
                steps = [await self.peer(name).step(study) for study in self.peer(name).store.active()]
                upcoming += [due for due in steps if due is not None]
            if min(upcoming) > self.clock():
                return min(upcoming)
        raise AssertionError("there is always something due")

    async def until(self, seconds: float, *names: str) -> None:
        """Move the clock there, from one thing that is due to the next."""
        upcoming = await self.work(*names)
        while self.clock() < seconds:
            self.clock.seconds = min(seconds, max(upcoming, self.clock() + 0.01))
            upcoming = await self.work(*names)


@asynccontextmanager
async def town(folder: Path, seconds: float) -> AsyncIterator[Town]:
    """Everything is open until the block ends."""
    found = Town(folder, Clock(seconds))
    async with AggregatorApp(folder / "aggregator", found.clock, os.urandom, processes=0, look_seconds=0.02) as found.aggregator:
        serving = asyncio.create_task(found.aggregator.serve("127.0.0.1", 0, lambda port: setattr(found.route, "port", port)))
        try:
            while not found.route.port:
                await asyncio.sleep(0.01)
                if serving.done():
                    serving.result()
            yield found
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            for peer in found.peers.values():
                peer.close()
