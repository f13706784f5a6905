"""The plan of what is due, by itself: no store, no network, no await. Random schedules, seeded draws, a moved clock."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from anon.wire.packets import SealedPacket
from peer.rules.lifecycle import LAST, State
from peer.rules.packet_lifecycle import Status
from peer.rules.schedule import draw_look, may_look
from peer.run import jobs
from peer.run.departures import DepartureTimes
from peer.run.jobs import (
    YIELDING,
    Answer,
    CheckBefore,
    CheckHeads,
    DueJob,
    Job,
    Look,
    Miss,
    RunnerMemory,
    Send,
    Settle,
    TimeDraw,
    Verify,
    Withdraw,
)
from peer.run.plan import (
    JOBS,
    Hindrance,
    PlanInputs,
    earliest,
    held_up,
    hindrance,
    next_job,
    planned,
    retry_at,
    unanswered_checks,
    undecided,
    window_of,
)
from peer.store.home import Settings
from peer.store.manifests import Manifests
from peer.store.records import (
    COVER_FROM,
    AnsweringStudy,
    ConsentedStudy,
    DecidedStudy,
    EndedStudy,
    EnrolledStudy,
    EvaluatingStudy,
    LeavingStudy,
    MemberStudy,
    OutboxEntry,
    SentStudy,
    Study,
)
from tests.support.fake_aggregator import BINNED, DECLARED, PAPER, FakeAggregator
from tests.support.protocols import PROTOCOLS
from tests.support.tries import examples

COVERED = "\n[cover]\nconnections = 5\n"
CUT = PAPER.replace("bins = 2", "cuts = [40]")
AGGREGATORS = [
    FakeAggregator.with_study(text) for text in (DECLARED, BINNED, PAPER, CUT, DECLARED + COVERED, PAPER + COVERED)
]
CLOSE = 60.0
"""Seconds before the last instant of a window within which a peer need not get anything done any more."""


def study_of(aggregator: FakeAggregator, draws: tuple[int, ...], **changed: Any) -> AnsweringStudy:
    common: dict[str, Any] = {
        "study": aggregator.study, "address": "127.0.0.1:9", "aggregator": bytes(32), "state": State.CHECKED,
        "reason": "",
        "manifest_bytes": aggregator.manifest.to_bytes(), "consented": aggregator.manifest.epsilon, "minimum_cohort": 3,
        "chain_bytes": b"", "draws": draws, "barred": False, "manifests": Manifests(PROTOCOLS), "secrets": b"",
        "roster_digest": b"", "seed": b"", "credential": b"", "snapshot": b"",
    }
    return AnsweringStudy(**{**common, **changed})


@st.composite
def studies(draw: st.DrawFn) -> AnsweringStudy:
    aggregator = draw(st.sampled_from(AGGREGATORS))
    rows = [draw(st.sampled_from(slot.rows)) for slot in aggregator.manifest.slots]
    return study_of(aggregator, tuple(row.survey for row in rows))


class Life:
    """One peer while windows are open: every job takes no time, and fails while the aggregator is away."""

    def __init__(self, study: MemberStudy, random: Random, head_checks: int, back: float, now: float) -> None:
        self.study, self.random, self.back, self.now = study, random, back, now
        self.settings = Settings(head_checks=head_checks)
        self.memory = RunnerMemory()
        self.outbox: dict[int, OutboxEntry] = {}
        self.left: dict[int, list[float]] = {}

    def inputs(self) -> PlanInputs:
        return PlanInputs([self.outbox[slot] for slot in sorted(self.outbox)], self.memory, self.now, self.settings)

    def departure_times(self) -> DepartureTimes:
        return DepartureTimes(self.study.manifest, self.now, 0.0, self.random.randbytes)

    def due(self) -> DueJob:
        while isinstance(found := next_job(self.study, self.inputs()), tuple):
            for wish in found:
                self.memory = self.memory.with_time(wish.job, wish.draw(self.random.randbytes))
        return found

    def jobs(self) -> Iterator[DueJob]:
        """Every job until the last; the clock follows them."""
        for _ in range(3000):
            due_job = self.due()
            self.now = max(self.now, due_job.due)
            yield due_job
            if isinstance(due_job.job, Settle):
                return
            self.perform(due_job)
        raise AssertionError("the plan does not come to rest")

    def perform(self, due_job: DueJob) -> None:
        job, away = due_job.job, self.now < self.back
        match job:
            case Miss(window=window):
                for slot, survey in undecided(self.study, list(self.outbox.values()), window):
                    self.put(slot, survey, 0.0, Status.MISSED)
            case Answer() | CheckHeads() if away:
                not_before = retry_at(
                    self.study.manifest, job, self.memory.failures(job), self.now, self.random.randbytes
                )
                self.memory = self.memory.with_failure(job, not_before)
            case Answer(window=window):
                self.journal(window)
            case CheckHeads():
                self.memory = self.memory.with_done(job)
            case CheckBefore() if not self.settled(job) and away:
                self.redraw(job.slot)
            case CheckBefore() if (job.slot, job.send_at) in self.standing():
                self.memory = self.memory.with_done(job)
            case Send() if not self.settled(job):
                self.leave(job)
        self.memory = self.memory.with_end(job, self.now)

    def put(self, slot: int, survey: int, send_at: float, status: Status = Status.QUEUED) -> None:
        self.outbox[slot] = OutboxEntry(slot, survey, 0, SealedPacket(b"x"), None, send_at, 0, status, "")

    def journal(self, window: Any) -> None:
        departure_times = self.departure_times()
        for slot, survey in undecided(self.study, list(self.outbox.values()), window):
            send_at = departure_times.time(window)
            self.put(slot, survey, send_at or 0.0, Status.QUEUED if send_at is not None else Status.MISSED)
        number = max([COVER_FROM, *(slot + 1 for slot in self.outbox)])
        for place, covering in enumerate(departure_times.cover(window, self.study.draws)):
            self.put(number + place, covering.survey, covering.send_at)

    def standing(self) -> set[tuple[int, float]]:
        return {(packet.slot, packet.send_at) for packet in self.outbox.values() if packet.status is Status.QUEUED}

    def settled(self, job: CheckBefore | Send) -> bool:
        """As the runner does: what may not leave at its time is given up, or gets another one."""
        found = hindrance(self.study.manifest, self.outbox[job.slot], self.now, 0.0)
        if found is not None and found.word:
            self.outbox[job.slot] = evolve(self.outbox[job.slot], status=Status.GIVEN_UP, word=found.word)
        elif found is not None:
            self.redraw(job.slot)
        return found is not None

    def redraw(self, slot: int) -> None:
        packet = self.outbox[slot]
        send_at = self.departure_times().again(window_of(self.study.manifest, packet))
        changed = {"send_at": send_at} if send_at is not None else {"status": Status.GIVEN_UP}
        self.outbox[slot] = evolve(packet, **changed)

    def leave(self, job: Send) -> None:
        packet = self.outbox[job.slot]
        if unanswered_checks(self.memory, window_of(self.study.manifest, packet)):
            return self.redraw(job.slot)
        self.left.setdefault(job.slot, []).append(self.now)
        self.outbox[job.slot] = evolve(packet, status=Status.DELIVERED, attempts=1)
        return None


seeds = st.integers(0, 2**32)


@settings(max_examples=examples(120), deadline=None)
@given(
    study=studies(), seed=seeds, head_checks=st.integers(0, 4), back=st.floats(-600, 9000), woken=st.floats(-600, 9000)
)
@pytest.mark.slow
def test_a_packet_meets_every_window_that_it_could_have_met(
    study: AnsweringStudy, seed: int, head_checks: int, back: float, woken: float
) -> None:
    """The aggregator comes back, or the machine wakes, a minute before a window's last instant: all of it leaves."""
    manifest = study.manifest
    start = float(manifest.windows[0].opens)
    life = Life(study, Random(seed), head_checks, start + back, start + woken)
    for _due_job in life.jobs():
        pass
    for slot, survey in enumerate(study.draws):
        window, margin = manifest.survey(survey).window, manifest.timetable.margin
        last = window.closes - margin
        if max(start + back, start + woken) < last - CLOSE:
            assert life.outbox[slot].status is Status.DELIVERED, (slot, life.outbox[slot])
        for at in life.left.get(slot, ()):
            assert window.opens + margin <= at <= last


@settings(max_examples=examples(120), deadline=None)
@given(study=studies(), seed=seeds, head_checks=st.integers(0, 4), back=st.floats(-600, 9000))
@pytest.mark.slow
def test_a_packet_never_has_two_jobs_and_leaves_once(
    study: AnsweringStudy, seed: int, head_checks: int, back: float
) -> None:
    start = float(study.manifest.windows[0].opens)
    life = Life(study, Random(seed), head_checks, start + back, start - 600)
    for _due_job in life.jobs():
        slots = [
            found.job.slot
            for found in planned(life.study, life.inputs())
            if isinstance(found.job, CheckBefore | Send)
        ]
        assert sorted(slots) == sorted({packet.slot for packet in life.inputs().queued})
    assert all(len(times) == 1 for times in life.left.values())


@settings(max_examples=examples(120), deadline=None)
@given(
    study=studies(), seed=seeds, head_checks=st.integers(0, 4), stop=st.integers(0, 40),
    content=st.binary(max_size=8), ended=st.floats(0, 20_000), status=st.sampled_from(Status),
)
@pytest.mark.slow
def test_the_time_of_a_job_depends_on_no_answer(
    study: AnsweringStudy, seed: int, head_checks: int, stop: int, content: bytes, ended: float, status: Status
) -> None:
    """Two peers with the same draws and times, and other data, packets and answers: the same jobs at the same times."""
    start = float(study.manifest.windows[0].opens)
    life = Life(study, Random(seed), head_checks, start, start - 600)
    for number, _due_job in enumerate(life.jobs()):
        if number == stop:
            break
    inputs = life.inputs()
    other = evolve(study, snapshot=content, secrets=content, seed=content, credential=content)
    told = [
        evolve(packet, sealed=SealedPacket(content), digest=content, epsilon=len(content), word=content.hex())
        if packet.status is Status.QUEUED
        else evolve(packet, status=status if status is not Status.QUEUED else packet.status, word=content.hex())
        for packet in inputs.outbox
    ]
    answered = evolve(inputs, outbox=told, memory=inputs.memory.with_end(Verify(), start - 600 + ended))
    assert times_of(planned(other, answered)) == times_of(planned(study, inputs))


def times_of(found: list[DueJob | TimeDraw]) -> list[tuple[Job, float | None]]:
    return [(job.job, job.due if isinstance(job, DueJob) else None) for job in found]


@given(due=st.floats(0, 100), ended=st.floats(0, 100), now=st.floats(0, 100), seed=seeds)
def test_a_job_that_fell_due_while_another_was_under_way_does_not_begin_at_its_end(
    due: float, ended: float, now: float, seed: int
) -> None:
    window = AGGREGATORS[0].manifest.windows[0]
    times = RunnerMemory().with_end(Answer(window), ended)
    fetches = (Verify(), Look(), Answer(window), CheckHeads(window, 0), jobs.ChooseTranscripts())
    for job in (*fetches, CheckBefore(3, due), Send(3, due)):
        assert isinstance(job, YIELDING)
        assert held_up(times, job, due, now) == (due < ended <= now)
    for job in (jobs.Enrol(), Withdraw(), Miss(window), Settle(), jobs.Conclude()):
        assert not held_up(times, job, due, now), "it is due at once, or at an end that everybody knows"
    own = RunnerMemory().with_end(CheckBefore(3, due), ended)
    assert not held_up(own, Send(3, due), due, now), "a packet may follow its own look"
    assert held_up(own, Send(4, due), due, now) == held_up(own, Send(3, due + 1), due, now) == (due < ended <= now)


@settings(max_examples=examples(200), deadline=None)
@given(
    study=studies(),
    seed=seeds,
    failures=st.integers(0, 30),
    left=st.floats(1, 4000),
    which=st.sampled_from([Verify(), Look(), Withdraw()]),
)
def test_a_retry_comes_before_the_end_that_it_is_for(
    study: AnsweringStudy, seed: int, failures: int, left: float, which: Job
) -> None:
    manifest = study.manifest
    end = float(manifest.timetable.enrol_closes)
    at = retry_at(manifest, which, failures, end - left, Random(seed).randbytes)
    margin = 0.0 if which == Withdraw() else manifest.timetable.margin
    assert end - left < at <= end - left + max(0.25, margin / 20, 3 / 8 * left)


WEEK = 7 * 86400


@pytest.mark.parametrize(("collect", "earliest_look"), [("1h", 3600), ("1d", 90000 / 8), ("7d", (WEEK + 3600) / 8)])
def test_a_peer_looks_once_for_an_early_roster_at_a_time_that_follows_from_the_timetable(
    collect: str, earliest_look: float
) -> None:
    """A study that enrols for a week and settles for an hour."""
    text = DECLARED.replace('enrol = "1h"', 'enrol = "7d"').replace('settle = "10m"', 'settle = "1h"')
    manifest = FakeAggregator.with_study(text.replace('collect = "1h"', f'collect = "{collect}"')).manifest
    closes = float(manifest.timetable.enrol_closes)
    for now in (closes - WEEK, closes - 1000, closes - 901):
        first, last = (draw_look(manifest, now, lambda size, share=share: share) for share in (bytes(8), b"\xff" * 8))
        assert max(now, closes - earliest_look) == pytest.approx(first) and last == pytest.approx(closes - 900)
        assert may_look(manifest.timetable, now)
    assert not may_look(manifest.timetable, closes - 900)


@pytest.mark.parametrize("settle", ["10s", "10m", "2d"])
def test_a_clock_that_the_look_finds_leaves_time_in_every_window_longer_than_its_error(settle: str) -> None:
    """The look comes late: the error of the clock after enrolment closed, less what was left at the look."""
    text = DECLARED.replace('enrol = "1h"', 'enrol = "7d"').replace('settle = "10m"', f'settle = "{settle}"')
    manifest = FakeAggregator.with_study(text).manifest
    table, (window,) = manifest.timetable, manifest.windows
    behind = float(window.closes - window.opens)
    last = draw_look(manifest, table.enrol_closes - WEEK, lambda size: b"\xff" * size)
    assert window.closes - (last + behind) >= table.settled - table.enrol_closes
    assert earliest(manifest, window, behind) >= window.closes, "a larger error lets no packet leave at all"


@pytest.mark.parametrize(
    ("attempts", "send_at", "now", "behind", "expected"),
    [
        (0, 1000, 1000, 0.0, None),
        (3, 1000, 1000, 0.0, None),
        (4, 1000, 1000, 0.0, Hindrance("never acknowledged")),
        (0, 3301, 3301, 0.0, Hindrance("its window passed")),
        (0, 3300, 3300, 0.0, None),
        (0, 1000, 1011, 0.0, Hindrance()),
        (0, 1000, 1009, 0.0, None),
        (0, 1000, 1000, 800.0, Hindrance()),
        (0, 200, 200, 0.0, Hindrance()),
    ],
    ids=[
        "due", "last attempt", "tried enough", "no retry left", "last instant", "overdue", "hardly late",
        "early by the home's clock", "early",
    ],
)
def test_a_packet_leaves_only_at_its_time(
    attempts: int, send_at: float, now: float, behind: float, expected: Hindrance | None
) -> None:
    manifest = AGGREGATORS[0].manifest
    start = manifest.windows[0].opens
    packet = OutboxEntry(0, 0, 0, SealedPacket(b"x"), None, start + send_at, attempts, Status.QUEUED, "")
    assert hindrance(manifest, packet, start + now, behind) == expected


def test_every_state_that_is_not_a_last_one_has_jobs_and_the_last_ones_have_none() -> None:
    assert set(JOBS) == {
        ConsentedStudy, EnrolledStudy, EvaluatingStudy, AnsweringStudy, DecidedStudy, SentStudy, LeavingStudy,
    }
    assert EndedStudy not in JOBS and LAST
    assert all(issubclass(kind, Study) for kind in JOBS)


def test_who_sleeps_past_closing_with_its_enrolment_unacknowledged_checks_the_roster() -> None:
    aggregator = AGGREGATORS[0]
    closes = float(aggregator.manifest.timetable.enrol_closes)
    member = study_of(aggregator, ())
    common = {
        name: getattr(member, name)
        for name in (
            "study", "address", "aggregator", "manifest_bytes", "reason", "consented", "minimum_cohort", "chain_bytes",
            "draws", "barred", "manifests", "secrets",
        )
    }
    consented = ConsentedStudy(**common, state=State.CONSENTED, enrolment=b"", due=5.0, snapshot=None)
    for now, kind in ((closes - 1, jobs.Enrol), (closes, Verify)):
        (found,) = planned(consented, PlanInputs([], RunnerMemory(), now, Settings()))
        assert isinstance(found.job, kind)
