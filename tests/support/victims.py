"""Many victims of one liar: real peers in memory, each from the same prepared home, and the rate at which they see it.

The liar draws anew for every request which of its two stories it serves, because behind a fresh circuit it cannot know
who asks. `linked` makes it stronger than it can be there: documents are then served from the story of the heads served
last.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import define, evolve, field, frozen

from anon.errors import Unreachable
from anon.route import Response
from anon.study.manifest import Manifest
from anon.transparency.equivocation import parse_evidence
from anon.wire.replies import ACCEPTED, encode_reply
from peer.app import PeerApp
from peer.data.evaluate import at_once
from peer.protocols.contract import part_of
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from peer.run.equivocations import kept
from peer.run.exchanges import ANOTHER_KEY
from peer.store.home import PeerHome
from tests.support.clock import Clock
from tests.support.documents import heads_answer
from tests.support.fake_aggregator import BINNED, DECLARED, PAPER, FakeAggregator, advance, peer, until_closed
from tests.support.routes import Ask, Exchanges
from tests.support.stories import Told, counts, second_story

MEMORY = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None
MOSTLY_HISTOGRAMS = BINNED.replace("binning_share = 0.5", "binning_share = 0.05")
AGE_ALONE = PAPER.replace(PAPER[PAPER.index('[[features]]\nname = "cups"') : PAPER.index("[design]")], "").replace(
    "partitions = 3", "partitions = 3\nsubset_size = 1\nsubsets_per_partition = 1"
)
STUDIES = {
    "manifest": DECLARED,
    "credentials": DECLARED,
    "roster": DECLARED,
    "key": DECLARED,
    "edges": MOSTLY_HISTOGRAMS,
    "thresholds": AGE_ALONE,
}
LATER = ("edges", "thresholds")
"""Documents that appear while packets are collected; the others stand before any packet."""


@define
class Liar(Exchanges):
    """A route to an aggregator that tells the second story with probability `lies`, and with probability `silent` does
    not answer a request for the heads. `heads` counts its answers."""

    manifest: Manifest
    honest: Told
    lying: Told
    lies: float
    chance: random.Random
    linked: bool = False
    silent: float = 0.0
    heads: int = 0
    left: bool = False
    told: Told = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.told = self.honest

    async def exchange(self, ask: Ask) -> Response:
        if ask.body is not None:
            self.left = True
            return Response(200, encode_reply(ACCEPTED))
        what = ask.what
        if what.startswith("heads") or not self.linked:
            self.told = self.lying if self.chance.random() < self.lies else self.honest
        chain, bodies = self.told
        if what.startswith("heads"):
            if self.silent and self.chance.random() < self.silent:
                raise Unreachable("no answer")
            self.heads += 1
            return Response(200, heads_answer(what, chain, bodies, self.manifest))
        number = int(what.removeprefix("documents/"))
        return Response(200, bodies[number]) if number < len(bodies) else Response(404, b"")


@frozen
class Fate:
    """The outcome for one victim: the lie was caught, or a packet left. `heads` is the number fetched until then."""

    caught: bool
    left: bool
    heads: int


@frozen
class Scene:
    """A study, its two stories, and the home of a peer at the moment before it fetches what differs."""

    aggregator: FakeAggregator
    kind: str
    honest: Told
    lying: Told
    home: Path
    now: float
    folder: Path

    def victim(self, fetches: int, lies: float, seed: int, linked: bool = False, silent: float = 0.0) -> Fate:
        """One victim that fetches the heads `fetches` times in all before its packet leaves."""
        with self.another_home(str(seed)) as home:
            home.write_settings(evolve(home.settings(), head_checks=fetches - 1))
            chance = random.Random(seed)
            liar = Liar(self.aggregator.manifest, self.honest, self.lying, lies, chance, linked, silent)
            return self._live(home, liar, chance)

    @contextmanager
    def another_home(self, name: str) -> Iterator[PeerHome]:
        """A copy of the prepared home."""
        path = self.folder / name
        shutil.copytree(self.home, path)
        try:
            yield PeerHome(path)
        finally:
            shutil.rmtree(path)

    def told(self, home: PeerHome, fetches: int = 3) -> Fate:
        """The outcome for the peer of this home when it is told the lying story consistently."""
        home.write_settings(evolve(home.settings(), head_checks=fetches - 1))
        chance = random.Random(1)
        return self._live(home, Liar(self.aggregator.manifest, self.honest, self.lying, 1.0, chance), chance)

    def _live(self, home: PeerHome, liar: Liar, chance: random.Random) -> Fate:
        clock = Clock(self.now)
        app = PeerApp(home, lambda: liar, clock, chance.randbytes, sleep=clock.sleep, evaluate=at_once)
        try:
            asyncio.run(until_it_left(app, liar, clock, self.aggregator.study))
            (status,) = app.status()
            if status.state is State.STOPPED:
                assert "two different documents" in status.reason
                assert not liar.left
                (proof,) = kept(app.store)
                assert (
                    parse_evidence(proof.to_bytes(), bytes(self.aggregator.key.verify_key)).study
                    == self.aggregator.study
                )
                return Fate(True, False, liar.heads)
            return Fate(status.reason == ANOTHER_KEY, liar.left, liar.heads)
        finally:
            app.close()


async def until_it_left(app: PeerApp, liar: Liar, clock: Clock, study: bytes) -> None:
    """Step one study until it is over, its first packet has left, or none will: nobody publishes transcripts here."""
    for _ in range(500):
        if liar.left or app.store.state(study) is State.SENT or (due := await app.step(study)) is None:
            return
        clock.seconds = max(clock.seconds, due)
    raise AssertionError("the study does not come to rest")


@contextmanager
def scene(kind: str, folder: Path) -> Iterator[Scene]:
    """Everything ready for victims of a lie about this kind of document."""
    with tempfile.TemporaryDirectory(dir=MEMORY or folder) as place:
        yield _prepared(kind, Path(place))


def _prepared(kind: str, folder: Path) -> Scene:
    for attempt in range(200):
        aggregator, home = FakeAggregator.with_study(STUDIES[kind]), folder / f"home-{attempt}"
        app = peer(home, aggregator)
        asyncio.run(_prepare(app, aggregator, kind))
        app.close()
        if kind not in LATER or waits_for(app, aggregator, (kind, int(kind == "thresholds"))):
            app.close()
            told = aggregator.chain, aggregator.bodies
            return Scene(aggregator, kind, told, second_story(aggregator, kind), home, aggregator.clock(), folder)
    raise AssertionError("nobody draws a survey that rests on the document")


async def _prepare(app: PeerApp, aggregator: FakeAggregator, kind: str) -> None:
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await until_closed(app, aggregator, 3)
    if kind in LATER:
        await advance(app, aggregator, first_round_closes(aggregator))
        aggregator.publish(kind, counts(aggregator, kind, 1), int(kind == "thresholds"))


def waits_for(app: PeerApp, aggregator: FakeAggregator, document: tuple[str, int]) -> bool:
    """True if the peer's next packet is one that cannot be made before the document is there."""
    manifest, outbox = aggregator.manifest, app.store.outbox(aggregator.study)
    decided = {one.slot for one in outbox}
    draws = enumerate(app.store.study(aggregator.study).draws)
    resting = [
        slot
        for slot, survey in draws
        if slot not in decided and set(part_of(manifest).needs(manifest, survey)) == {document}
    ]
    return bool(resting) and not any(one.status is Status.QUEUED for one in outbox)


def first_round_closes(aggregator: FakeAggregator) -> float:
    """When the first round of binning closes: what it found is published then."""
    return min(one.window.closes for one in aggregator.manifest.surveys)
