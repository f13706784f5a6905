"""Packets once lost to silence: to an aggregator that was away, and to a clock that jumped or was wrong."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from attrs import define, evolve

from anon.errors import NotConnected
from anon.machine.clock import elapsed_seconds
from anon.route import Response
from peer.app import PeerApp
from peer.opening import open_peer
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from peer.run.clock import BELIEVED_AFTER, SteadyClock
from peer.store.home import PeerHome, Settings
from tests.support.fake_aggregator import DECLARED, FakeAggregator, at_once, peer


@define
class Machine:
    """A machine whose wall clock is wrong by `error`; `aggregator.clock` is the truth."""

    aggregator: FakeAggregator
    error: float = 0.0
    nap: float = 3600.0
    """Seconds of its longest sleep."""

    def wall(self) -> float:
        return self.aggregator.clock() + self.error

    def started(self, folder: Path) -> PeerApp:
        home = PeerHome(folder)
        home.write_settings(evolve(Settings(), check_inclusion=False))
        app = PeerApp(
            home, lambda: self.aggregator, self.wall, os.urandom, sleep=self.aggregator.clock.sleep, evaluate=at_once,
            elapsed=self.aggregator.clock,
        )
        app.set_policy(evolve(app.policy(), minimum_cohort=3, minimum_window=0))
        return app

    async def live(self, app: PeerApp, until: float) -> None:
        """Step until this true instant."""
        clock = self.aggregator.clock
        while clock() < until:
            due = await app.step(self.aggregator.study)
            if due is None:
                return
            wait = max(0.001, due - app._now())  # a clock of floats must move
            clock.seconds += min(wait, self.nap, max(0.001, until - clock()))


async def begun(folder: Path, text: str = DECLARED, error: float = 0.0) -> tuple[Machine, PeerApp]:
    aggregator = FakeAggregator.with_study(text)
    machine = Machine(aggregator, error)
    app = machine.started(folder)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    aggregator.crowd(4)
    await app.step(aggregator.study)
    return machine, app


async def settled(folder: Path, text: str = DECLARED, error: float = 0.0) -> tuple[Machine, PeerApp]:
    """Enrolled, and the roster closed at its time; the first window not yet open."""
    machine, app = await begun(folder, text, error)
    table = machine.aggregator.manifest.timetable
    await machine.live(app, table.enrol_closes)
    machine.aggregator.close()
    return machine, app


def sent_at(aggregator: FakeAggregator) -> list[float]:
    return [at for what, _body, at in aggregator.posts if what == "packets"]


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(8))
async def test_an_aggregator_that_is_away_for_most_of_a_window_gets_the_packet(tmp_path: Path, turn: int) -> None:
    """Away from the closing on: the checks wait as well. Before, most packets were lost without any attempt."""
    machine, app = await begun(tmp_path)
    aggregator = machine.aggregator
    window, margin = aggregator.manifest.windows[0], aggregator.manifest.timetable.margin
    await machine.live(app, aggregator.manifest.timetable.enrol_closes)
    aggregator.close()
    if turn % 2:
        await machine.live(app, window.opens)
    aggregator.deaf.add("heads")
    await machine.live(app, window.opens + 0.9 * (window.closes - margin - window.opens))
    assert sent_at(aggregator) == []
    aggregator.deaf.clear()
    await machine.live(app, window.closes)
    [slot] = app.status()[0].slots
    assert (slot.status, slot.attempts) == (Status.DELIVERED, 1)
    [at] = sent_at(aggregator)
    assert at < window.closes - margin + 1
    app.close()


async def test_a_silence_is_told_since_when_until_it_ends(tmp_path: Path) -> None:
    machine, app = await settled(tmp_path)
    aggregator = machine.aggregator
    aggregator.deaf.add("heads")
    await machine.live(app, aggregator.manifest.timetable.settled)
    told = app.status()[0].reason
    again = machine.started(tmp_path)  # `status` is another program
    assert "cannot reach the aggregator, since 2023-11-14" in told
    await machine.live(app, aggregator.manifest.windows[0].opens + 600)
    assert app.status()[0].reason == told, "of a silence only its beginning is told"
    assert again.status()[0].reason == told
    aggregator.deaf.clear()
    window = aggregator.manifest.windows[0]
    await machine.live(app, window.opens + 600 + 0.4 * (window.closes - window.opens))  # a wait is 3/8 of it at most
    assert "cannot reach" not in app.status()[0].reason
    app.close()
    again.close()


@define
class Absent(FakeAggregator):
    """While `gone`, no port takes a packet; `heard` counts the packets of which a byte can have arrived."""

    gone: bool = True
    tried: int = 0

    async def post(self, address: str, path: str, body: bytes, limit: int) -> Response:
        if path.endswith("packets") and self.gone:
            self.tried += 1
            raise NotConnected("nothing listens")
        return await super().post(address, path, body, limit)


async def test_what_no_port_took_was_no_attempt(tmp_path: Path) -> None:
    aggregator = Absent.with_study(DECLARED)
    app = peer(tmp_path, aggregator, check_inclusion=False)
    machine = Machine(aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    aggregator.crowd(4)
    await machine.live(app, aggregator.manifest.timetable.enrol_closes)
    aggregator.close()
    window = aggregator.manifest.windows[0]
    await machine.live(app, window.closes - 400)
    if not aggregator.tried:
        await machine.live(app, window.closes - 301)
    aggregator.gone = False
    [slot] = app.status()[0].slots
    assert aggregator.tried > 0 and slot.attempts == 0
    await machine.live(app, window.closes)
    app.close()


def packet_at(machine: Machine, app: PeerApp, before_end: float) -> float:
    """Put the packet's time so many seconds before the end of its window."""
    window, margin = machine.aggregator.manifest.windows[0], machine.aggregator.manifest.timetable.margin
    send_at = window.closes - margin - before_end
    [slot] = app.status()[0].slots
    app.store.redraw(machine.aggregator.study, slot.key, send_at)
    return send_at


@pytest.mark.parametrize("jump", [20.0, 3600.0, -3600.0], ids=["20 s ahead", "1 h ahead", "1 h behind"])
async def test_a_clock_that_jumps_and_is_put_right_loses_nothing(tmp_path: Path, jump: float) -> None:
    machine, app = await settled(tmp_path)
    aggregator = machine.aggregator
    await machine.live(app, aggregator.manifest.timetable.settled)
    send_at = packet_at(machine, app, 15.0)
    await machine.live(app, send_at - 600)
    machine.error, machine.nap = jump, 30.0
    await machine.live(app, send_at - 60)
    assert "clock looks wrong by about" in app.status()[0].reason
    assert app.status()[0].slots[0].status is Status.QUEUED
    await machine.live(app, aggregator.manifest.windows[0].closes)
    assert app.status()[0].slots[0].status is Status.DELIVERED
    [at] = sent_at(aggregator)
    assert at <= aggregator.manifest.windows[0].closes - aggregator.manifest.timetable.margin
    machine.error = 0.0
    assert app._now() == aggregator.clock()
    app.close()


async def test_a_laptop_that_slept_is_no_clock_that_jumped(tmp_path: Path) -> None:
    machine, app = await settled(tmp_path)
    aggregator = machine.aggregator
    await machine.live(app, aggregator.manifest.timetable.settled)
    send_at = packet_at(machine, app, 1800.0)
    await machine.live(app, send_at - 120)
    aggregator.clock.seconds += 1200.0  # both clocks count it
    for _ in range(4):
        await app.step(aggregator.study)
    assert sent_at(aggregator) == [], "it is drawn again, and does not leave on waking"
    [drawn] = app.store.outbox_entries(aggregator.study)
    assert drawn.send_at > aggregator.clock()
    await machine.live(app, aggregator.manifest.windows[0].closes)
    assert "clock" not in app.status()[0].reason
    assert app.status()[0].slots[0].status is Status.DELIVERED
    [at] = sent_at(aggregator)
    assert at >= drawn.send_at
    app.close()


@define
class Punctual(FakeAggregator):
    """Judges a packet by when it arrives, as an aggregator does."""

    def take_packets(self, plaintext: bytes) -> str:
        window = self.manifest.windows[0]
        if self.clock() < window.opens:
            return "window-not-open"
        return super().take_packets(plaintext) if self.clock() < window.closes else "window-closed"


@pytest.mark.parametrize("turn", range(3))
async def test_a_clock_that_is_an_hour_behind_misses_no_study(tmp_path: Path, turn: int) -> None:
    """It looks for the roster before its own clock has enrolment end, and finds it. The window is longer than the
    error: a packet leaves only while it is open by both clocks."""
    text = DECLARED.replace('enrol = "1h"', 'enrol = "1d"').replace('collect = "1h"', 'collect = "3h"')
    aggregator = Punctual.with_study(text)
    aggregator.clock.seconds += 7200.0  # it is not before the publishing even for this clock
    machine = Machine(aggregator, -3600.0)
    app = machine.started(tmp_path)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    aggregator.crowd(4)
    table, window = aggregator.manifest.timetable, aggregator.manifest.windows[0]
    await machine.live(app, table.enrol_closes)
    aggregator.close()
    await machine.live(app, table.enrol_closes + 3600)
    troubles = app.store.troubles(aggregator.study)
    assert "behind" in troubles.told()
    assert 3600 <= -troubles.clock <= 3600 + table.margin, "the aggregator tells its time, in steps of the margin"
    await machine.live(app, window.closes)
    assert app.status()[0].state is State.FINISHED
    assert app.status()[0].slots[0].status is Status.DELIVERED
    app.close()


def test_a_jump_is_believed_when_it_stands() -> None:
    wall, elapsed = [1_000_000.0], [50.0]
    clock = SteadyClock(lambda: wall[0], lambda: elapsed[0])

    def passes(seconds: float) -> None:
        wall[0] += seconds
        elapsed[0] += seconds

    assert clock() == 1_000_000.0
    wall[0] += 3600
    assert clock() == 1_000_000.0 and clock.doubt == 3600
    passes(BELIEVED_AFTER - 1)
    assert clock() == wall[0] - 3600
    passes(1)
    assert clock() == wall[0] and clock.doubt == 0 and clock.corrected == 3600
    wall[0] += 1.5  # what a time service slews is followed
    assert clock() == wall[0] and clock.doubt == 0
    wall[0] -= 600
    clock()
    passes(60)
    wall[0] += 600
    assert clock() == wall[0] and clock.doubt == 0


async def test_a_clock_that_nothing_can_check_is_believed(tmp_path: Path) -> None:
    clock = SteadyClock(lambda: 5.0)
    assert clock() == 5.0 and clock.doubt == 0.0


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="only Linux has a clock of this name")
def test_the_second_clock_counts_the_time_asleep_and_every_command_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that stands still in sleep makes of every waking a jump, which is not believed for half an hour."""
    monkeypatch.setattr(time, "clock_gettime", lambda clock: 7.0 if clock == time.CLOCK_BOOTTIME else 3.0)
    monkeypatch.setattr(time, "monotonic", lambda: 3.0)
    assert elapsed_seconds() == 7.0
    monkeypatch.undo()
    app = open_peer(tmp_path / "home")
    assert app._now._elapsed is elapsed_seconds
    app.close()
