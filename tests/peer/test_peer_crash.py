"""Killed (SIGKILL) on each side of every commit and send, and at random moments: one perturbation, one charge.

Each stage of a study runs in a forked child that may die. The child writes its bytes for the wire to a file before
they count as sent. The parent hands them to its own aggregator. So a packet that left a dying peer has left.
"""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from random import Random

import pytest
from attrs import define

from anon.route import Response
from anon.wire.cbor import decode, encode
from peer.app import PeerApp
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from peer.store.crash_points import POINTS, VARIABLE
from peer.store.home import PeerHome
from tests.support.fake_aggregator import FakeAggregator, advance, peer, reopened
from tests.support.routes import Ask, Exchanges, onward
from tests.support.shared_clock import FileClock

pytestmark = pytest.mark.process

ELSEWHERE = {"commit-of-policy", "commit-of-restore", "commit-of-heads", "commit-of-redraw"}
LEAVING = {"commit-of-leaving", "send-of-withdrawal", "commit-of-withdrawal"}


def of(names: set[str]) -> list[str]:
    return [point for point in POINTS if point.partition("-")[2] in names]


@define
class Wire(Exchanges):
    """A route that notes every post in a file before it arrives."""

    aggregator: FakeAggregator
    path: Path
    handed: int = 0

    async def exchange(self, ask: Ask) -> Response:
        if ask.body is not None:
            record = encode([ask.what, ask.body])
            with self.path.open("ab") as file:
                file.write(len(record).to_bytes(4, "big") + record)
        return await onward(self.aggregator, ask)

    def posts(self) -> list[tuple[str, bytes]]:
        found, data = [], self.path.read_bytes() if self.path.exists() else b""
        while data:
            length = int.from_bytes(data[:4], "big")
            found.append(tuple(decode(data[4 : 4 + length])))
            data = data[4 + length :]
        return found

    def hand_over(self) -> None:
        """Let the parent's aggregator see what the child sent."""
        posts = self.posts()
        for what, body in posts[self.handed :]:
            getattr(self.aggregator, f"take_{what}")(self.aggregator.opened(what, body))
        self.handed = len(posts)


Stage = Callable[[PeerApp, FakeAggregator], Coroutine[object, object, object]]


class CrashingPeer:
    """A peer's home, the aggregator and the wire between them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.aggregator = FakeAggregator.with_study(clock=FileClock(folder / "clock"))
        self.wire = Wire(self.aggregator, folder / "wire")
        self.home = PeerHome(folder / "home")
        peer(self.home.path, self.aggregator).close()

    def open(self) -> PeerApp:
        app = reopened(self.home, self.aggregator)
        app._route_factory = lambda: self.wire
        return app

    def child(self, stage: Stage, crash: str = "", kill_after: float | None = None) -> bool:
        """Run a stage in a child; whether it was killed."""
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.environ[VARIABLE] = crash
                app = self.open()
                asyncio.run(stage(app, self.aggregator))
                app.close()
                status = 0
            finally:
                os._exit(status)
        if kill_after is not None:
            time.sleep(kill_after)
            os.kill(pid, signal.SIGKILL)
        _, how = os.waitpid(pid, 0)
        self.wire.hand_over()
        self.check()
        assert os.WIFSIGNALED(how) or os.WEXITSTATUS(how) == 0
        return os.WIFSIGNALED(how)

    def check(self) -> None:
        """After every death the charges equal those of the stored packets, and every sent packet is stored."""
        app = self.open()
        entry = app.budget().entry(self.aggregator.study)
        slots = app.store.outbox(self.aggregator.study)
        assert (entry.spent if entry else 0) == sum(slot.epsilon for slot in slots)
        assert app.budget().held <= app.budget().lifetime
        sent = {body for what, body in self.wire.posts() if what == "packets"}
        kept = {slot.sealed.ciphertext for slot in slots if slot.sealed is not None}
        assert sent <= kept or all(slot.sealed is None for slot in slots)
        app.close()


async def join(app: PeerApp, aggregator: FakeAggregator) -> None:
    if not app.status():
        await app.join(aggregator.invite, aggregator.manifest.epsilon)


async def pause_and_resume(app: PeerApp, aggregator: FakeAggregator) -> None:
    app.pause(aggregator.clock.seconds + 1e6)
    app.resume()


async def until_closing(app: PeerApp, aggregator: FakeAggregator) -> None:
    await advance(app, aggregator, aggregator.manifest.timetable.enrol_closes - 1)


async def until_collected(app: PeerApp, aggregator: FakeAggregator) -> None:
    await advance(app, aggregator, max(survey.window.closes for survey in aggregator.manifest.surveys))


async def leave(app: PeerApp, aggregator: FakeAggregator) -> None:
    if app.status()[0].state in (State.CONSENTED, State.ENROLLED):
        await app.leave(aggregator.study)


async def until_over(app: PeerApp, aggregator: FakeAggregator) -> None:
    assert await advance(app, aggregator) is None


def whole_study(crashing: CrashingPeer, run: Callable[[Stage], None]) -> None:
    aggregator = crashing.aggregator
    run(join)
    run(pause_and_resume)
    run(until_closing)
    aggregator.crowd(3)
    aggregator.clock.seconds = float(aggregator.manifest.timetable.enrol_closes)
    aggregator.close()
    run(until_collected)
    aggregator.transcribe()
    run(until_over)


def demand_one_of_everything(crashing: CrashingPeer) -> None:
    posts = crashing.wire.posts()
    assert len({body for what, body in posts if what == "enrol"}) == 1
    packets = [body for what, body in posts if what == "packets"]
    assert len(set(packets)) == 1
    assert len(packets) <= 4
    app = crashing.open()
    (status,) = app.status()
    assert status.state is State.FINISHED, status.reason
    assert [slot.status for slot in status.slots] == [Status.INCLUDED]
    assert (status.reserved, status.spent) == (0, status.slots[0].epsilon)
    app.close()


STAGED = [point for point in POINTS if point.partition("-")[2] not in ELSEWHERE | LEAVING]


@pytest.mark.parametrize("point", STAGED)
def test_killed_at_a_point_and_started_again(tmp_path: Path, point: str) -> None:
    crashing = CrashingPeer(tmp_path)
    deaths = 0

    def run(stage: Stage) -> None:
        nonlocal deaths
        if crashing.child(stage, point):
            deaths += 1
            crashing.child(stage)

    whole_study(crashing, run)
    assert deaths >= 1
    demand_one_of_everything(crashing)


@pytest.mark.parametrize("point", of(LEAVING))
def test_killed_while_leaving_sends_no_packet_and_charges_nothing(tmp_path: Path, point: str) -> None:
    crashing = CrashingPeer(tmp_path)
    crashing.child(join)
    crashing.child(lambda app, aggregator: advance(app, aggregator, aggregator.clock.seconds + 1))
    deaths = 0
    for stage in (leave, until_over):
        if crashing.child(stage, point):
            deaths += 1
            crashing.child(stage)
    assert deaths == 1
    app = crashing.open()
    (status,) = app.status()
    assert status.state is State.WITHDRAWN
    assert app.budget().held == 0
    assert crashing.aggregator.enrolments == {}
    app.close()


def test_killed_at_random_moments(tmp_path: Path) -> None:
    random = Random(20)
    killed = 0
    for turn in range(8):
        crashing = CrashingPeer(tmp_path / str(turn))

        def run(stage: Stage, crashing: CrashingPeer = crashing) -> None:
            nonlocal killed
            for _ in range(3):
                if not crashing.child(stage, kill_after=random.uniform(0.0, 0.05)):
                    return
                killed += 1
            crashing.child(stage)

        whole_study(crashing, run)
        demand_one_of_everything(crashing)
    assert killed >= 10


def test_no_crash_point_is_armed_by_default() -> None:
    assert VARIABLE not in os.environ
    assert threading.active_count() < 50
