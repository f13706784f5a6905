"""Notifications: what is said and when, by the rules and by a whole study on a moved clock."""

from __future__ import annotations

import asyncio
import json
import os
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from anon.errors import Refused
from peer.data.importing import import_rows
from peer.desktop.notifier import TOLD, Reminders
from peer.rules.lifecycle import State
from peer.run.notices import (
    FIRST_LOOK,
    NEXT_LOOK,
    SENTENCES,
    Happening,
    Matter,
    StudySnapshotForNotice,
    draw_look,
    happenings,
    next_told,
)
from peer.run.supervisor import Running, Supervisor
from peer.store.home import PeerHome
from tests.support.fake_aggregator import DECLARED, FakeAggregator, peer, until_closed, until_state

A, B = "aa" * 32, "bb" * 32


def seen(state: State, closes: float = 100.0, troubled: bool = False, study: str = A) -> StudySnapshotForNotice:
    return StudySnapshotForNotice(study, state, closes, troubled)


# The rules


@pytest.mark.parametrize(("one", "now", "matter"), [
    (seen(State.CONSENTED), 50, None),
    (seen(State.ENROLLED), 50, None),
    (seen(State.CHECKED), 50, None),
    (seen(State.SENT), 99, None),  # somebody who hears it now would know that it left by now
    (seen(State.SENT), 100, Matter.SENT),
    (seen(State.FINISHED), 99, None),
    (seen(State.FINISHED), 100, Matter.OVER),
    (seen(State.ABANDONED), 50, Matter.OVER),
    (seen(State.WITHDRAWN, troubled=True), 200, None),
    (seen(State.REFUSED), 50, Matter.ATTENTION),
    (seen(State.STOPPED), 50, Matter.ATTENTION),
    (seen(State.ENROLLED, troubled=True), 50, Matter.ATTENTION),
    (seen(State.LEAVING), 50, None),
])
def test_what_a_state_is_worth_telling(one: StudySnapshotForNotice, now: float, matter: Matter | None) -> None:
    expected = {Happening(matter, A)} if matter is not None else set()
    assert happenings([one], (), False, now) == expected


def test_a_link_waits_until_it_is_answered_and_a_fault_is_the_homes() -> None:
    assert happenings([], [A], False, 0) == {Happening(Matter.ANSWER, A)}
    assert happenings([seen(State.CONSENTED)], [A], False, 0) == frozenset()
    assert happenings([], [], True, 0) == {Happening(Matter.ATTENTION, "home")}


def test_the_most_urgent_comes_first_and_none_twice() -> None:
    happened = [Happening(matter, study) for matter, study in product(reversed(Matter), (A, B))]
    told: set[str] = set()
    order = []
    while (matter := next_told(happened, told)) is not None:
        order.append(matter)
        told |= {one.key for one in happened if one.matter is matter}
    assert order == [Matter.ANSWER, Matter.ATTENTION, Matter.SENT, Matter.OVER]


def test_the_times_of_looks_come_from_nothing_but_randomness() -> None:
    draws = [draw_look(first=False, random_bytes=os.urandom) for _ in range(200)]
    assert all(NEXT_LOOK[0] <= one <= NEXT_LOOK[1] for one in draws) and len(set(draws)) == 200
    assert draw_look(True, lambda size: bytes(size)) == FIRST_LOOK[0]
    assert NEXT_LOOK[0] >= 1800  # at most one notification in half an hour


def test_nothing_that_could_be_somebodys_is_in_a_sentence() -> None:
    assert set(SENTENCES) == set(Matter)
    assert all(
        "{" not in one and "%" not in one and not any(sign.isdigit() for sign in one) for one in SENTENCES.values()
    )


# A home


class Told:
    def __init__(self) -> None:
        self.sentences: list[str] = []
        self.refusing = False

    async def __call__(self, sentence: str) -> None:
        if self.refusing:
            raise Refused("nobody is logged in")
        self.sentences.append(sentence)


def _reminders(tmp_path: Path, aggregator: FakeAggregator, app: Any, told: Told, **more: Any) -> Reminders:
    return Reminders(app, PeerHome(tmp_path), told, aggregator.clock, os.urandom, Supervisor(app.run), **more)


async def _sent(tmp_path: Path, **settings: object) -> tuple[FakeAggregator, Any]:
    aggregator = FakeAggregator.with_study(DECLARED)
    app = peer(tmp_path, aggregator, **settings)
    import_rows(PeerHome(tmp_path).data_path, "person", ("age", "cups", "tired"), [(30, "some", 1)])
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await until_closed(app, aggregator)
    await until_state(app, aggregator, State.SENT)
    assert aggregator.clock() < aggregator.manifest.windows[-1].closes
    return aggregator, app


async def test_a_whole_study_is_told_after_its_windows_and_once(tmp_path: Path) -> None:
    aggregator, app = await _sent(tmp_path, notifications=True)
    told = Told()
    reminders = _reminders(tmp_path, aggregator, app, told)
    await reminders.look()
    await reminders.look()
    assert told.sentences == []  # it was sent, and its window is still open
    aggregator.clock.seconds = aggregator.manifest.windows[-1].closes
    for _ in range(3):
        await reminders.look()
    assert told.sentences == [SENTENCES[Matter.SENT]]
    again = _reminders(tmp_path, aggregator, app, told)  # as after a restart
    await again.look()
    assert len(told.sentences) == 1
    said = (tmp_path / TOLD).read_bytes()
    assert aggregator.manifest.title.encode() not in said and (tmp_path / TOLD).stat().st_mode & 0o077 == 0


async def test_off_is_the_default_and_what_is_there_already_is_no_news(tmp_path: Path) -> None:
    aggregator, app = await _sent(tmp_path)
    aggregator.clock.seconds = aggregator.manifest.windows[-1].closes
    told = Told()
    reminders = _reminders(tmp_path, aggregator, app, told)
    await reminders.look()
    assert not (tmp_path / TOLD).exists() and told.sentences == []
    peer(tmp_path, aggregator, notifications=True)
    await reminders.look()
    await reminders.look()
    assert told.sentences == [] and json.loads((tmp_path / TOLD).read_text()) == [f"sent:{aggregator.study.hex()}"]
    waiting = _reminders(tmp_path, aggregator, app, told, waiting=lambda: ["cc" * 32])
    await waiting.look()
    assert told.sentences == [SENTENCES[Matter.ANSWER]]


@pytest.mark.parametrize("spoilt", [b"{", b"\xff", b'{"a": 1}', b""])
async def test_a_spoilt_memory_tells_too_little(tmp_path: Path, spoilt: bytes) -> None:
    aggregator, app = await _sent(tmp_path, notifications=True)
    aggregator.clock.seconds = aggregator.manifest.windows[-1].closes
    (tmp_path / TOLD).write_bytes(spoilt)
    told = Told()
    reminders = _reminders(tmp_path, aggregator, app, told)
    await reminders.look()
    await reminders.look()
    assert told.sentences == []


async def test_a_fault_and_a_desktop_that_takes_nothing_stop_nothing(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study(DECLARED)
    app = peer(tmp_path, aggregator, notifications=True)
    told, slept = Told(), []
    told.refusing = True

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) > 6:
            raise asyncio.CancelledError
        if len(slept) == 3:
            reminders.supervisor.running = Running.FAULTY
        if len(slept) == 4:
            (tmp_path / "settings.json").write_text("spoilt")
        if len(slept) == 5:
            peer(tmp_path, aggregator, notifications=True)
            reminders.supervisor.running = Running.HERE
        if len(slept) == 6:
            told.refusing, reminders.supervisor.running = False, Running.FAULTY

    reminders = _reminders(tmp_path, aggregator, app, told, sleep=sleep)
    with pytest.raises(asyncio.CancelledError):
        await reminders.run()
    assert told.sentences == [SENTENCES[Matter.ATTENTION]]
    assert FIRST_LOOK[0] <= slept[0] <= FIRST_LOOK[1] and all(NEXT_LOOK[0] <= one <= NEXT_LOOK[1] for one in slept[1:])
