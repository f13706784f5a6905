"""Many peers with two packets each in one window of an hour: the real runner, journal and schedule, on a simulated
clock.

Joining and making packets is done once; each peer then begins from that journal, with the times of its packets drawn
anew by the rule. Machines sleep (the process wakes up late and goes on) or are shut down (a new process begins); routes
are slow, fail before a packet arrives, or lose the answer.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from random import Random

import pytest
from attrs import define, field, frozen

from anon.errors import Unreachable
from anon.route import Response
from anon.transparency.documents import encode_chain, parse_chain
from anon.wire.replies import ACCEPTED, BUSY, encode_reply
from peer.app import PeerApp
from peer.data.evaluate import at_once
from peer.network.client import AggregatorClient
from peer.rules.schedule import draw_send_time
from peer.rules.study_secrets import Vault
from peer.run.context import RunContext
from peer.run.following import LONGEST_SLEEP
from peer.run.runner import StudyRunner
from peer.store.home import Settings
from peer.store.records import Study
from tests.support.clock import Clock
from tests.support.fake_aggregator import PAPER, FakeAggregator, advance, peer, until_closed

TWO_PACKETS = PAPER.replace("bins = 2", "cuts = [40]")
HOUR = 3600.0


@frozen
class Habit:
    """When a machine is away, in seconds from the window's opening, `jitter` more or less; shared by a stratum of
    peers."""

    away: tuple[tuple[float, float], ...] = ()
    jitter: float = 60.0
    shut_down: float = 0.5

    def nights(self, random: Random) -> list[tuple[float, float]]:
        """One simulated's absences."""
        moved = [
            (low + random.uniform(-1, 1) * self.jitter, high + random.uniform(-1, 1) * self.jitter)
            for low, high in self.away
        ]
        return [(low, high) for low, high in moved if low < high]


HABITS = (
    Habit(),
    Habit(((-600, 1800),)),
    Habit(((1200, 2400),)),
    Habit(((300, 900), (1500, 2100), (2700, 3000))),
    Habit(((900, 3000),)),
)


@frozen
class Weather:
    """How routes do: the chance that a request gets nowhere, that its answer is lost, and seconds per exchange."""

    lost: float = 0.1
    unanswered: float = 0.1
    seconds: float = 1.5
    timeout: float = 20.0
    acknowledges: bool = True


@define
class Arrivals:
    """One peer's packets at the aggregator: per body, when it came, every time. `left` counts what was sent of it."""

    times: dict[bytes, list[float]] = field(factory=dict)
    left: dict[bytes, int] = field(factory=dict)


@define
class SimulatedPeer:
    """One simulated peer: its clock, its absences and its route."""

    aggregator: FakeAggregator
    random: Random
    weather: Weather
    clock: Clock
    away: list[tuple[float, float]]
    seen: Arrivals = field(factory=Arrivals)

    def reach(self, due: float, habit: Habit) -> bool:
        """Sleep until `due`; return True if the process restarted. A machine that was away notices a little late."""
        self.clock.seconds = max(self.clock.seconds, due)
        for low, high in self.away:
            if low < self.clock.seconds < high:
                restarted = self.random.random() < habit.shut_down
                self.clock.seconds = high + (0.0 if restarted else self.random.uniform(0, LONGEST_SLEEP))
                return restarted
        return False

    def _travel(self) -> bool:
        lost = self.random.random() < self.weather.lost
        self.clock.seconds += self.weather.timeout if lost else self.random.expovariate(1 / self.weather.seconds)
        return not lost

    async def get(self, address: str, path: str, limit: int) -> Response:
        """The chain."""
        if not self._travel():
            raise Unreachable("lost")
        return Response(200, encode_chain(self.aggregator.chain))

    async def post(self, address: str, path: str, body: bytes, limit: int) -> Response:
        """A packet."""
        self.seen.left[body] = self.seen.left.get(body, 0) + 1
        if not self._travel():
            raise Unreachable("lost")
        self.seen.times.setdefault(body, []).append(self.clock.seconds)
        if not self.weather.acknowledges:
            if self.random.random() < 0.5:
                raise Unreachable("silence")
            return Response(200, encode_reply(BUSY))
        if self.random.random() < self.weather.unanswered:
            raise Unreachable("answer lost")
        return Response(200, encode_reply(ACCEPTED))


@define
class Origin:
    """The journal that every simulated peer begins from."""

    aggregator: FakeAggregator
    app: PeerApp
    bodies: tuple[bytes, ...]
    row: dict[str, object]

    @property
    def opens(self) -> float:
        return float(self.aggregator.manifest.windows[-1].opens)

    @property
    def closes(self) -> float:
        return float(self.aggregator.manifest.windows[-1].closes)

    @classmethod
    async def make(cls, folder: Path) -> Origin:
        """Join, pass the checks, make both packets."""
        aggregator = FakeAggregator.with_study(TWO_PACKETS)
        app = peer(folder, aggregator, check_inclusion=False)
        await app.join(aggregator.invite, aggregator.manifest.epsilon)
        await until_closed(app, aggregator, 3)
        await advance(app, aggregator, aggregator.manifest.timetable.settled - 1)
        app.store._connection.execute("PRAGMA synchronous = OFF")  # no power cut is simulated
        outbox = app.store.outbox(aggregator.study)
        bodies = tuple(one.sealed.ciphertext for one in outbox if one.sealed is not None)
        return cls(aggregator, app, bodies, dict(app.store._rows("SELECT * FROM studies")[0]))

    def begin_again(self, now: float, random_bytes: Callable[[int], bytes]) -> None:
        """The store as it was when both packets were journalled, with times drawn anew."""
        connection, manifest = self.app.store._connection, self.aggregator.manifest
        changes = ", ".join(f"{name} = ?" for name in self.row)
        connection.execute(f"UPDATE studies SET {changes}", tuple(self.row.values()))
        for slot, body in enumerate(self.bodies):
            send_at = draw_send_time(manifest.windows[-1], manifest.timetable.margin, now, random_bytes)
            connection.execute(
                "UPDATE outbox SET packet = ?, send_at = ?, attempts = 0, status = 'queued', word = '' WHERE slot = ?",
                (body, send_at, slot),
            )

    async def live(self, habit: Habit, weather: Weather, random: Random) -> Arrivals:
        """One peer's window, from just before it opens until its packets are decided."""
        start = self.opens - 300
        away = [(self.opens + low, self.opens + high) for low, high in habit.nights(random)]
        simulated = SimulatedPeer(self.aggregator, random, weather, Clock(start), away)
        self.begin_again(start, random.randbytes)
        runner = self._runner(simulated)
        for _ in range(2000):
            due = await runner.step()
            if due is None or self._decided():
                return simulated.seen
            if due > simulated.clock() and simulated.reach(due, habit):
                runner = self._runner(simulated)
        raise AssertionError("a peer does not come to rest")

    def _decided(self) -> bool:
        return self.app.store.state(self.aggregator.study) not in ("checked",)

    def _runner(self, simulated: SimulatedPeer) -> StudyRunner:
        def client(study: Study) -> AggregatorClient:
            return AggregatorClient(study.invite, simulated)

        tools = RunContext(
            self.app.store, Path(os.devnull), at_once, Vault(None, simulated.random.randbytes),
            Settings(check_inclusion=False), client,
            simulated.clock, simulated.random.randbytes,
        )
        return StudyRunner(self.aggregator.study, tools)


async def live_all(
    origin: Origin, habits: Sequence[Habit], each: int, weather: Weather, seed: str
) -> list[list[Arrivals]]:
    """So many peers of each habit."""
    return [
        [await origin.live(habit, weather, Random(f"{seed}-{place}-{number}")) for number in range(each)]
        for place, habit in enumerate(habits)
    ]


@contextmanager
def common_journal() -> Iterator[Origin]:
    """An origin, in memory where there is a file system for it."""
    shared = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(dir=shared if shared.is_dir() else None))
    remembered = lru_cache(64)(parse_chain)  # pure, and the dearest part of a step
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("peer.network.client.parse_chain", remembered)
        patch.setattr("peer.store.records.parse_chain", remembered)
        origin = asyncio.run(Origin.make(folder))
        yield origin
    origin.app.close()
    shutil.rmtree(folder)
