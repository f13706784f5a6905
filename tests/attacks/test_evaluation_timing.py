"""A query takes 400 MiB and all the processor it can get, but only where a secret is so: nobody outside sees which.

Real clock, real children, a deadline of 0.5 s. Each run is a pair of peers that differ in the secret alone. Each peer
is in two studies: the hostile one, and one whose packets and looks at the heads fall due while the hostile query runs.
Both peers of every pair must make equal exchanges, of equal sizes, at equal charges, and every exchange of a drawn time
must begin within 100 ms of it. A busy machine is late by itself, so what was late (never what was unequal) is repeated
twice at most; a query that delays exchanges does so again.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve, field

import peer.run.verify
from anon.errors import Unreachable
from anon.route import Response
from peer.app import PeerApp
from peer.data.evaluate import Evaluate
from peer.data.importing import import_rows
from peer.rules.consent import Policy
from peer.rules.lifecycle import State
from peer.run.jobs import CheckBefore, DueJob, Send
from peer.run.runner import StudyRunner
from peer.store.home import PeerHome, Settings
from peer.store.records import Study
from tests.support.clock import Clock, RunningClock
from tests.support.fake_aggregator import DECLARED, FakeAggregator
from tests.support.routes import Ask, Exchanges, onward

pytestmark = pytest.mark.timed

HOG = """SELECT CASE WHEN age > 50 THEN (
    WITH RECURSIVE doubled(t) AS (SELECT 'a' UNION ALL SELECT t || t FROM doubled WHERE length(t) < 100000),
    kept(i, t) AS (SELECT 1, (SELECT max(t) FROM doubled) UNION SELECT i + 1, t || i FROM kept)
    SELECT count(*) FROM kept) ELSE age END FROM person"""
TRIMS = ", ".join(f"max({', '.join(['trim(t, c)'] * 16)})" for _ in range(16))
SET = "".join(chr(0x4E61 + 256 * number) for number in range(1, 64))
SLOW = f"""SELECT CASE WHEN age > 50 THEN (
    WITH RECURSIVE doubled(t) AS (SELECT '乡' UNION ALL SELECT t || t FROM doubled WHERE length(t) < 50000)
    SELECT max({TRIMS}) FROM (SELECT max(t) AS t, '{SET}乡' AS c FROM doubled)) ELSE age END FROM person"""
"""Hundreds of instructions of SQLite, and seconds of one call after the other, between which nobody looked at a
clock."""
SECRET, OTHER = 60, 20
DEADLINE, LATEST = 0.5, 0.1


@define
class Course(Exchanges):
    """Two aggregators in memory, one route to both, and what was seen of one peer; `lateness` in seconds."""

    hostile: FakeAggregator
    other: FakeAggregator
    lateness: dict[str, float] = field(factory=dict)

    async def exchange(self, ask: Ask) -> Response:
        for aggregator in (self.hostile, self.other):
            if aggregator.study.hex() in ask.path:
                return await onward(aggregator, ask)
        raise Unreachable(ask.path)

    @property
    def seen(self) -> list[tuple[list[str], list[tuple[str, int]]]]:
        """Every exchange of each study, and its size."""
        return [
            (sorted(what for what, _ in one.gets), sorted((what, len(body)) for what, body, _ in one.posts))
            for one in (self.hostile, self.other)
        ]


def study(enrol: str, settle: str, collect: str, clock: Clock, **queries: str) -> FakeAggregator:
    text = DECLARED.replace(
        'enrol = "1h"\nsettle = "10m"\ncollect = "1h"', f'enrol = "{enrol}"\nsettle = "{settle}"\ncollect = "{collect}"'
    )
    assert text != DECLARED
    for column, query in queries.items():
        text = text.replace(f'"SELECT {column} FROM person"', f"'''{query}'''", 1)
    return FakeAggregator.with_study(text, clock)


def settled_in(folder: Path, age: int, course: Course, clock: RunningClock, evaluate: Evaluate | None) -> PeerApp:
    home = PeerHome(folder)
    home.write_settings(evolve(Settings(), check_inclusion=False, head_checks=1))
    import_rows(home.data_path, "person", ["age", "cups", "tired"], [(age, "many", 1)])
    return PeerApp(home, lambda: course, clock, os.urandom, policy=Policy(minimum_cohort=3), evaluate=evaluate)


async def joined(app: PeerApp, course: Course) -> None:
    for one in (course.hostile, course.other):
        await app.join(one.invite, one.manifest.epsilon)
        await app.step(one.study)
        one.crowd(5)


async def lived(folder: Path, ages: list[int], evaluate: Evaluate | None = None) -> list[tuple[Course, Any]]:
    """Every peer's life from its first window on; what was seen of it, and its charges and states.

    The hostile study goes on half a second after the other, so that packets of the other fall due while its query runs.
    """
    clock = RunningClock()
    courses = [
        Course(study("10s", "2s", "5s", clock, age=SLOW, cups=HOG), study("10s", "1s", "5s", clock)) for _ in ages
    ]
    apps = [settled_in(folder / str(n), age, courses[n], clock, evaluate) for n, age in enumerate(ages)]
    for app, course in zip(apps, courses, strict=True):
        await joined(app, course)
    for one in courses:
        for aggregator in (one.other, one.hostile):
            aggregator.gets.clear()
            aggregator.close()
    clock.seconds += courses[-1].hostile.manifest.timetable.settled + 1 - clock()
    for app, one in zip(apps, courses, strict=True):
        app.pause(clock() + 0.5, one.hostile.study)
    with noted(apps, courses):
        await asyncio.gather(*(app.run(9.0, once=True) for app in apps))
    found = []
    for app, course in zip(apps, courses, strict=True):
        states = [(one.study in (course.hostile.study,), one.state, one.reserved, one.spent) for one in app.status()]
        found.append((course, sorted(states)))
        app.close()
    return found


class noted:
    """Notes how late everything of a drawn time begins."""

    def __init__(self, apps: list[PeerApp], courses: list[Course]) -> None:
        self._of = {id(app._tools): course for app, course in zip(apps, courses, strict=True)}
        self._perform = StudyRunner._perform

    def __enter__(self) -> None:
        perform, of = self._perform, self._of

        async def performed(runner: StudyRunner, study: Study, due_job: DueJob) -> None:
            late, name = runner._tools.now() - due_job.due, repr(due_job.job)
            if isinstance(due_job.job, (CheckBefore, Send)):
                lateness = of[id(runner._tools)].lateness
                lateness[name] = max(late, lateness.get(name, 0.0))
            await perform(runner, study, due_job)

        StudyRunner._perform = performed  # type: ignore[method-assign]

    def __exit__(self, *_: object) -> None:
        StudyRunner._perform = self._perform  # type: ignore[method-assign]


@pytest.fixture(autouse=True)
def half_a_second(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(peer.run.verify, "evaluation_allowance", lambda _table: DEADLINE)
    yield


def compare(found: list[tuple[Course, Any]]) -> float:
    """Raise unless the peers of each pair are alike; the greatest lateness of all."""
    for (mine, my_end), (theirs, their_end) in zip(found[::2], found[1::2], strict=True):
        assert my_end == their_end
        assert [end[1] for end in my_end] == [State.FINISHED] * 2
        assert [len(one.sent("packets")) for one in (mine.hostile, mine.other)] == [1, 1]
        assert mine.seen == theirs.seen
    return max(late for course, _ in found for late in course.lateness.values())


async def runs(folder: Path, count: int, evaluate: Evaluate | None = None) -> list[float]:
    greatest = []
    for number in range(count):
        for turn in range(3):
            late = compare(await lived(folder / f"{number}-{turn}", [SECRET, OTHER], evaluate))
            if late <= LATEST:
                break
        greatest.append(late)
    return greatest


async def test_nobody_sees_whose_query_took_all_it_could_get(tmp_path: Path) -> None:
    greatest = await runs(tmp_path, 20)
    assert max(greatest) <= LATEST, greatest


@pytest.mark.soak
async def test_nobody_sees_it_in_many_more_runs_either(tmp_path: Path) -> None:
    greatest = await runs(tmp_path, 200)
    assert max(greatest) <= LATEST, greatest
