"""A course in which everybody is a peer and an aggregator: real apps, real HTTP over loopback, one clock set by
hand."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from attrs import define, field

from aggregator.app import AggregatorApp
from anon.ldp import nano
from anon.protocols.registry import Protocols
from anon.route import DirectRoute
from anon.storage.home import aggregators_home
from anon.study.manifest import Manifest
from anon.transparency.documents import encode_chain, sign_head
from anon.wire.invite import Invite
from peer.app import PeerApp
from peer.data.evaluate import at_once
from peer.data.importing import import_file
from peer.rules.consent import Policy
from peer.store.home import PeerHome
from tests.support.clock import Clock
from tests.support.fake_aggregator import DECLARED
from tests.support.protocols import PROTOCOLS, parse_proposal

STUDY = DECLARED.replace("minimum = 3", "minimum = 2")
LIFETIME = 4.5
"""Enough for two of the course's studies, which cost 2 each, and not for three."""


@define
class Person:
    """One folder, two roles."""

    name: str
    peer: PeerApp
    aggregator: AggregatorApp
    home: PeerHome
    address: str = ""
    manifest: Manifest = field(init=False)

    async def publish(self) -> None:
        """A study of their own."""
        text = STUDY.replace("Sleep and coffee", f"The study of {self.name}")
        self.manifest = await self.aggregator.create_study(parse_proposal(text))

    async def invites(self, count: int) -> list[Invite]:
        return await self.aggregator.create_invites(self.manifest.study_id, count, self.address)

    def tell_another_story(self) -> None:
        """From now on the credentials document is another one for whoever asks."""
        live = self.aggregator.study(self.manifest.study_id)
        before = live.chain[:3]
        other = sign_head(self.aggregator.home.signing_key, live.study, before, "credentials", 0, b"another")
        live._encoded_chain = encode_chain([*before, other])


@asynccontextmanager
async def course(
    folder: Path, *names: str, protocols: Protocols = PROTOCOLS
) -> AsyncIterator[tuple[Clock, list[Person]]]:
    """Everybody's data imported, everybody's study published and served."""
    clock = Clock()
    async with AsyncExitStack() as stack:
        people = [await stack.enter_async_context(_person(folder / name, name, clock, protocols)) for name in names]
        for one in people:
            await one.publish()
        yield clock, people


@asynccontextmanager
async def _person(path: Path, name: str, clock: Clock, protocols: Protocols) -> AsyncIterator[Person]:
    home = PeerHome(path)
    home.prepare()
    table = path / "person.csv"
    table.write_text(f"age,cups,tired\n{20 + len(name)},many,1\n", encoding="utf-8")
    import_file(home.data_path, table, None, "replace", lambda _rows: None)
    policy = Policy(lifetime=nano(LIFETIME), minimum_cohort=2)
    peer = PeerApp(home, DirectRoute, clock, os.urandom, policy=policy, evaluate=at_once, protocols=protocols)
    async with AggregatorApp(aggregators_home(path), clock, os.urandom, processes=0, protocols=protocols) as aggregator:
        person = Person(name, peer, aggregator, home)
        bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(aggregator.serve("127.0.0.1", 0, bound.set_result))
        person.address = f"127.0.0.1:{await bound}"
        try:
            yield person
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            peer.close()


async def live_on(clock: Clock, people: list[Person], until: float) -> None:
    """Everybody does what is due, in the order of time, until the clock shows `until` or nothing is left to do."""
    aggregators = {id(one.aggregator): one.aggregator for one in people}.values()  # people may share one
    while True:
        for aggregator in aggregators:
            await aggregator.tick()
        dues = [due for one in people for due in await _steps(one.peer, clock())]
        ends = [
            end
            for aggregator in aggregators
            for status in await aggregator.status()
            if (end := status.ends) is not None
        ]
        coming = min([due for due in (*dues, *ends) if due > clock()], default=until)
        if coming >= until or not dues:
            clock.seconds = max(clock(), until if dues else clock())
            return
        clock.seconds = coming


async def _steps(peer: PeerApp, now: float) -> list[float]:
    """Do all that is due now in a peer's studies, and return the time at which each goes on."""
    dues = []
    for study in peer.store.active():
        due: float | None = now
        while due is not None and due <= now:
            due = await peer.step(study)
        if due is not None:
            dues.append(due)
    return dues
