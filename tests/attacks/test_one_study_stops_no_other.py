"""A fault in one study of a home stops no other study of it. Once any expected error of a step ended the run, and with
it every study."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, frozen

import peer.run.packets.making
from anon.crypto.sealing import PUBLIC_KEY_SIZE
from anon.errors import AnonmlError, Conflict, Damaged, Malformed, Refused, RejectedProof
from anon.route import Response
from peer.app import PeerApp
from peer.rules.lifecycle import State
from peer.run.following import MOST_DOUBLINGS, POLL_SECONDS
from peer.store.home import PeerHome, Settings
from tests.support.clock import Clock
from tests.support.fake_aggregator import DECLARED, FakeAggregator, advance, at_once, until_closed
from tests.support.fake_aggregator import peer as reaching
from tests.support.routes import Ask, Exchanges, onward
from tests.support.sums import countersigned, opener, sum_study
from tests.support.tries import every

SECRET = "said by a document: 4711"


@frozen
class Both(Exchanges):
    """The route to two aggregators, told apart by the study in a path."""

    aggregators: tuple[FakeAggregator, ...]

    async def exchange(self, ask: Ask) -> Response:
        return await onward(next(one for one in self.aggregators if one.study.hex() in ask.path), ask)


class Peer:
    """One peer in two studies: the first will have a fault."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        titles = ("Faulty", "Sound")
        found = [FakeAggregator.with_study(DECLARED.replace("Sleep and coffee", title), self.clock) for title in titles]
        self.faulty, self.sound = found
        home = PeerHome(folder)
        home.write_settings(evolve(Settings(), check_inclusion=False))
        self.app = PeerApp(home, lambda: Both((self.faulty, self.sound)), self.clock, os.urandom,
                           sleep=self._sleep, evaluate=at_once)
        self.app.set_policy(evolve(self.app.policy(), minimum_cohort=3))

    async def _sleep(self, seconds: float) -> None:
        """All that sleep move the clock, in small steps."""
        until = self.clock() + seconds
        while self.clock() < until:
            self.clock.seconds += 1.0
            await asyncio.sleep(0.001)

    async def settle(self) -> None:
        """Enrolled in both, whose rosters close."""
        for aggregator in (self.faulty, self.sound):
            await self.app.join(aggregator.invite, aggregator.manifest.epsilon)
            aggregator.crowd(4)
        await self.app.run(once=True)
        self.clock.seconds = self.sound.manifest.timetable.enrol_closes
        for aggregator in (self.faulty, self.sound):
            aggregator.close()

    async def live(self) -> None:
        """Do what is due up to the end of the windows, whatever the runs raise."""
        while self.clock() < self.sound.manifest.windows[0].closes:
            with suppress(AnonmlError):
                await self.app.run(once=True)
            self.clock.seconds += 5.0

    def told(self, aggregator: FakeAggregator) -> tuple[State, str]:
        return told(self.app, aggregator)


def told(app: PeerApp, aggregator: FakeAggregator) -> tuple[State, str]:
    [status] = [one for one in app.status() if one.study == aggregator.study]
    return status.state, status.reason


def told_as(error: Exception) -> str:
    """Words of ours as they are; a text that anybody may have written between marks."""
    if not isinstance(error, AnonmlError):
        return "a fault in this program; its log names the place"
    return f"“{error}”" if str(error) else "rejected-proof"


@pytest.fixture
async def living(tmp_path: Path) -> Any:
    made = Peer(tmp_path / "home")
    await made.settle()
    yield made
    made.app.close()


def broken(living: Peer, patch: pytest.MonkeyPatch, error: BaseException) -> list[float]:
    """Every step of the faulty study raises; when it was tried."""
    tried: list[float] = []

    async def step() -> float | None:
        tried.append(living.clock())
        raise error

    patch.setattr(living.app._following.runner(living.faulty.study), "step", step)
    return tried


@pytest.mark.slow
async def test_a_study_whose_packets_cannot_be_made_stops_alone(
    living: Peer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The one step that worked on a study's documents outside a `try`."""
    release = peer.run.packets.making.release

    def hostile(study: bytes, *rest: Any) -> Any:
        if study == living.faulty.study:
            raise Malformed("survey 0: cannot be answered; do not take part")
        return release(study, *rest)

    monkeypatch.setattr(peer.run.packets.making, "release", hostile)
    await living.live()
    assert living.told(living.faulty) == (State.STOPPED, "“survey 0: cannot be answered; do not take part”")
    assert [len(one.sent("packets")) for one in (living.faulty, living.sound)] == [0, 1]
    assert living.told(living.sound)[0] is State.FINISHED


async def test_a_teller_to_whose_key_nothing_can_be_sealed_ends_the_study(tmp_path: Path) -> None:
    """The key is of the right length, so that it is found out when the finished shares are sealed: at each try
    again."""
    text = sum_study().replace(opener(0).public_key.hex(), bytes(PUBLIC_KEY_SIZE).hex())
    aggregator = FakeAggregator.with_study(text)
    aggregator.publish("tellers", countersigned(aggregator.manifest))
    app = reaching(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await until_closed(app, aggregator)
    with suppress(Malformed):
        await advance(app, aggregator)
    assert await advance(app, aggregator) is None
    (status,) = app.status()
    assert status.state is State.STOPPED
    assert status.reason == "sealing key: not a key to which anything can be sealed; do not take part"
    assert aggregator.sent("packets") == [] and status.reserved == status.spent == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "error", every(3, [Malformed(SECRET), Refused(SECRET), Conflict(SECRET), KeyError(SECRET), RejectedProof()])
)
async def test_a_fault_of_a_step_is_told_and_stops_no_other_study(
    living: Peer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    with monkeypatch.context() as patch:
        tried = broken(living, patch, error)
        await living.live()
        assert len(living.sound.sent("packets")) == 1
        assert living.told(living.sound) == (State.FINISHED, "")
        state, reason = living.told(living.faulty)
        assert state is State.ENROLLED
        expected = told_as(error)
        assert reason == f"cannot go on: {expected}; it is tried again by itself"
        lines = [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR]
        assert lines == [f"study {living.faulty.study.hex()[:8]}: {type(error).__name__}; it is tried again"]
    waits = [later - sooner for sooner, later in zip(tried, tried[1:], strict=False)]
    longest = POLL_SECONDS * 2**MOST_DOUBLINGS
    assert len(waits) > 20 and max(waits[:2]) <= 4 * POLL_SECONDS
    assert all(longest / 2 <= wait <= longest * 1.5 + POLL_SECONDS for wait in waits[MOST_DOUBLINGS:])
    living.clock.seconds += 2 * longest
    await living.app.run(once=True)  # the fault is gone
    assert "cannot go on" not in living.told(living.faulty)[1]


@pytest.mark.slow
async def test_a_run_that_ends_by_itself_ends_with_the_fault_that_remains(
    living: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(living, monkeypatch, Refused("no route leads there"))
    with pytest.raises(Refused, match="no route leads there"):
        await living.app.run(max_seconds=600.0)
    assert living.told(living.sound)[0] is State.CHECKED


async def test_a_run_without_an_end_tries_a_faulty_study_again(living: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        tried = broken(living, patch, Refused("no route leads there"))
        running = asyncio.create_task(living.app.run())
        while len(tried) < 3:
            assert not running.done()
            await asyncio.sleep(0.01)
    while living.told(living.faulty)[0] is not State.CHECKED:
        assert not running.done()
        await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.wait({running})
    assert "cannot go on" not in living.told(living.faulty)[1]


async def test_a_damaged_home_ends_the_run_at_once(living: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = broken(living, monkeypatch, Damaged("peer.sqlite: damaged"))
    with pytest.raises(Damaged, match=r"peer\.sqlite") as raised:
        await living.app.run(max_seconds=600.0)
    assert raised.value.exit_code == 8 and len(tried) == 1
    assert living.told(living.faulty) == (State.ENROLLED, "")


async def test_a_fault_outlives_the_process_and_is_seen_by_others(
    living: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(living, monkeypatch, Refused("no route leads there"))
    with pytest.raises(Refused):
        await living.app.run(once=True)
    again = PeerApp(PeerHome(living.app._home.path), lambda: Both(()), living.clock, os.urandom)
    assert "no route leads there" in told(again, living.faulty)[1]
    again.close()
