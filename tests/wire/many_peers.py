"""Many peers with two packets each in one window of an hour: the real runner, journal and schedule, on a simulated clock.

Joining and making packets is done once; each peer then begins from that journal, with the times of its packets drawn
anew by the rule. Machines sleep (the process wakes up late and goes on) or are shut down (a new process begins); routes
are slow, fail before a packet arrives, or lose the answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from attrs import define, field, frozen
from village import PAPER, Village, advance, peer

from anon.answers import ACCEPTED, BUSY, encode_answer
from anon.documents import encode_chain
from anon.errors import Unreachable
from anon.route import Answer
from peer.app import LONGEST_SLEEP, PeerApp
from peer.client import AggregatorClient
from peer.errands import Tools
from peer.home import Settings
from peer.records import Study
from peer.runner import StudyRunner
from peer.schedule import draw_send_time
from peer.secrets import Vault

TWO_PACKETS = PAPER.replace("bins = 2", "cuts = [40]")
HOUR = 3600.0


@frozen
class Habit:
    """When a machine is away, in seconds from the window's opening, `jitter` more or less; shared by a stratum of peers."""

    away: tuple[tuple[float, float], ...] = ()
    jitter: float = 60.0
    shut_down: float = 0.5

    def nights(self, random: Random) -> list[tuple[float, float]]:
        """One machine's absences."""
        moved = [(low + random.uniform(-1, 1) * self.jitter, high + random.uniform(-1, 1) * self.jitter) for low, high in self.away]
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
class Machine:
    """One simulated peer: its clock, its absences and its route."""

    village: Village
    random: Random
    weather: Weather
    now: float
    away: list[tuple[float, float]]
    seen: Arrivals = field(factory=Arrivals)

    def clock(self) -> float:
        """Unix seconds."""
        return self.now

    def reach(self, due: float, habit: Habit) -> bool:
        """Sleep until `due`; whether the process began anew on the way. Who was away notices a little late."""
        self.now = max(self.now, due)
        for low, high in self.away:
            if low < self.now < high:
                restarted = self.random.random() < habit.shut_down
                self.now = high + (0.0 if restarted else self.random.uniform(0, LONGEST_SLEEP))
                return restarted
        return False

    def _travel(self) -> bool:
        lost = self.random.random() < self.weather.lost
        self.now += self.weather.timeout if lost else self.random.expovariate(1 / self.weather.seconds)
        return not lost

    async def get(self, address: str, path: str, limit: int) -> Answer:
        """The chain."""
        if not self._travel():
            raise Unreachable("lost")
        return Answer(200, encode_chain(self.village.chain))

    async def post(self, address: str, path: str, body: bytes, limit: int) -> Answer:
        """A packet."""
        self.seen.left[body] = self.seen.left.get(body, 0) + 1
        if not self._travel():
            raise Unreachable("lost")
        self.seen.times.setdefault(body, []).append(self.now)
        if not self.weather.acknowledges:
            if self.random.random() < 0.5:
                raise Unreachable("silence")
            return Answer(200, encode_answer(BUSY))
        if self.random.random() < self.weather.unanswered:
            raise Unreachable("answer lost")
        return Answer(200, encode_answer(ACCEPTED))


@define
class Origin:
    """The journal that every simulated peer begins from."""

    village: Village
    app: PeerApp
    bodies: tuple[bytes, ...]

    @property
    def opens(self) -> float:
        return float(self.village.manifest.windows[-1].opens)

    @property
    def closes(self) -> float:
        return float(self.village.manifest.windows[-1].closes)

    @classmethod
    async def make(cls, folder: Path) -> Origin:
        """Join, pass the checks, make both packets."""
        village = Village.found(TWO_PACKETS)
        app = peer(folder, village, check_inclusion=False)
        await app.join(village.invite, village.manifest.epsilon)
        await advance(app, village, village.manifest.timetable.enrol_closes - 1)
        village.crowd(3)
        village.clock.seconds = village.manifest.timetable.enrol_closes
        village.close()
        await advance(app, village, village.manifest.timetable.settled - 1)
        app.store._connection.execute("PRAGMA synchronous = OFF")  # no power cut is simulated
        outbox = app.store.outbox(village.study)
        return cls(village, app, tuple(one.sealed.ciphertext for one in outbox if one.sealed is not None))

    def begin_again(self, now: float, random_bytes: Callable[[int], bytes]) -> None:
        """The store as it was when both packets were journalled, with times drawn anew."""
        connection, manifest = self.app.store._connection, self.village.manifest
        connection.execute("UPDATE studies SET state = 'checked', reason = ''")
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
        machine = Machine(self.village, random, weather, start, away)
        self.begin_again(start, random.randbytes)
        runner = self._runner(machine)
        for _ in range(2000):
            due = await runner.step()
            if due is None or self._decided():
                return machine.seen
            if due > machine.now and machine.reach(due, habit):
                runner = self._runner(machine)
        raise AssertionError("a peer does not come to rest")

    def _decided(self) -> bool:
        return self.app.store.state(self.village.study) not in ("checked",)

    def _runner(self, machine: Machine) -> StudyRunner:
        def client(study: Study) -> AggregatorClient:
            return AggregatorClient(study.invite, machine)

        tools = Tools(
            self.app.store, Path(os.devnull), Vault(None, machine.random.randbytes), Settings(check_inclusion=False), client,
            machine.clock, machine.random.randbytes,
        )
        return StudyRunner(self.village.study, tools)


async def live_all(
    origin: Origin, habits: Sequence[Habit], each: int, weather: Weather, seed: str
) -> list[list[Arrivals]]:
    """So many peers of each habit."""
    return [
        [await origin.live(habit, weather, Random(f"{seed}-{place}-{number}")) for number in range(each)]
        for place, habit in enumerate(habits)
    ]
