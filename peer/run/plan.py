"""The plan: the job of a study that is due next. Pure: study, outbox, memory and clock in, the next job out.

1. `JOBS` lists the rules of each state. `peer.run.jobs` says in a sentence what each job is.
2. `planned` asks every rule of the study's state. A rule yields its jobs with their times, or a `TimeDraw` for a random
   time that is not drawn yet.
3. `next_job` returns the missing draws, if any. `peer.run.runner` draws them, keeps them in `RunnerMemory`, asks again.
4. Else `next_job` returns the job that is due first; of two at one time, the one whose rule is listed first.
5. The runner waits for its time and does it. A job that brought nothing is tried again at `retry_at`.
6. `peer.run.following` does this for all studies of a home, side by side. One that is over has no job, a paused one
   waits, except for a withdrawal (`peer.run.runner`).

No job's time depends on an answer, on the data or on the draw of surveys. Random times spread load or hide a pattern,
and are drawn anew after a restart. `peer.rules.schedule` has their distributions.

No job begins because an answer came. The aggregator chooses when it answers. A job of this peer that had fallen due
meanwhile and began then would be tied to what was answered: it is `held_up`, and drawn again. A packet may follow its
own look at the heads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from anon.protocols.sortition import has_letters
from anon.study.manifest import Manifest, Window
from anon.text.sentences import say
from anon.values import frozen
from peer.rules.packet_lifecycle import Status
from peer.rules.schedule import (
    MAX_ATTEMPTS,
    TOLERANCE,
    RandomBytes,
    draw_fetch_time,
    draw_look,
    draw_spread,
    draw_wait,
    in_time,
    making_allowance,
    may_look,
    next_end,
    overdue,
    published_before,
    uniform,
)
from peer.run.jobs import (
    YIELDING,
    Answer,
    Begin,
    CheckBefore,
    CheckHeads,
    ChooseTranscripts,
    Conclude,
    DueJob,
    Enrol,
    FetchMembers,
    GiveUpTranscripts,
    GoOnWithout,
    Job,
    Look,
    Miss,
    Receive,
    RunnerMemory,
    Send,
    Settle,
    TimeDraw,
    Verify,
    Withdraw,
)
from peer.store.home import Settings
from peer.store.records import (
    COVER_FROM,
    AnsweringStudy,
    ConsentedStudy,
    DecidedStudy,
    EnrolledStudy,
    EvaluatingStudy,
    LeavingStudy,
    MemberStudy,
    OutboxEntry,
    PacketKey,
    SentStudy,
    Study,
)

LONGEST_BACKOFF_BASE = 60.0
LEAD = 30.0
"""The heads are fetched again at most so many seconds before a packet leaves."""
PASSED = say("its window passed")
Slots = Sequence[tuple[int, int]]
"""Slots and the surveys that they drew."""


@frozen
class PlanInputs:
    """All that a plan is made from, beside the study: its outbox, the runner's memory, the time, and settings."""

    outbox: Sequence[OutboxEntry]
    memory: RunnerMemory
    now: float
    settings: Settings

    @property
    def queued(self) -> list[OutboxEntry]:
        """The packets, dummies and blanks that still wait for their times."""
        return [packet for packet in self.outbox if packet.status is Status.QUEUED]

    def at(self, job: Job, due: float) -> DueJob:
        """The job at its time, or when it may be tried again."""
        retry = self.memory.retries.get(job)
        due = max(due, retry.not_before if retry else 0.0)
        return DueJob(job, due, held_up(self.memory, job, due, self.now))

    def timed(self, job: Job, draw: Callable[[RandomBytes], float]) -> DueJob | TimeDraw:
        """The job at its random time, or the wish for one."""
        return self.at(job, self.memory.drawn[job]) if job in self.memory.drawn else TimeDraw(job, draw)

    def apart(self, job: Job, draw: Callable[[RandomBytes], float]) -> DueJob | TimeDraw:
        """The same of a bucket: where the machine slept over its time it gets another. Buckets that were fetched
        together on waking would tell whose they are."""
        found = self.timed(job, draw)
        late = isinstance(found, DueJob) and not found.held_up and found.due < self.now - TOLERANCE
        return TimeDraw(job, draw) if late else found


Timed = Iterator[DueJob | TimeDraw]


def next_job(study: Study, inputs: PlanInputs) -> DueJob | tuple[TimeDraw, ...]:
    """The job of a study that is due first; or the random times that must be drawn before that can be said."""
    found = planned(study, inputs)
    draws = tuple(wish for wish in found if isinstance(wish, TimeDraw))
    return draws or min((job for job in found if isinstance(job, DueJob)), key=lambda job: job.due)


def planned(study: Study, inputs: PlanInputs) -> list[DueJob | TimeDraw]:
    """All jobs of a study that is not over, and the times that they lack."""
    return [found for rule in JOBS[type(study)] for found in rule(study, inputs)]


def held_up(memory: RunnerMemory, job: Job, due: float, now: float) -> bool:
    """True if a job fell due while another was under way, and would now begin because that one ended."""
    if not isinstance(job, YIELDING) or not due < memory.ended <= now:
        return False
    return not (isinstance(job, Send) and memory.last == CheckBefore(job.slot, job.send_at, job.round))


def retry_at(manifest: Manifest, job: Job, failures: int, now: float, random_bytes: RandomBytes) -> float:
    """Try again after a random while, which grows with the failures and shrinks with what is left (`draw_wait`)."""
    table = manifest.timetable
    base = min(LONGEST_BACKOFF_BASE, max(0.25, (table.settled - table.enrol_closes) / 20))
    base, margin = (1.0, 0.0) if isinstance(job, Withdraw) else (base, float(table.margin))
    return now + draw_wait(failures, base, next_end(manifest, now) - now, margin, random_bytes)


# The rules, one a job. Each yields the jobs of its kind, or the times that they lack.


def _enrol(study: ConsentedStudy, inputs: PlanInputs) -> Timed:
    if inputs.now < study.manifest.timetable.enrol_closes:
        yield inputs.at(Enrol(), study.due)


def _verify_unacknowledged(study: ConsentedStudy, inputs: PlanInputs) -> Timed:
    table = study.manifest.timetable
    if inputs.now >= table.enrol_closes and inputs.memory.opening is None:
        yield inputs.timed(Verify(), partial(draw_fetch_time, table.enrol_closes, table.settled, inputs.now))


def _verify(study: EnrolledStudy, inputs: PlanInputs) -> Timed:
    if inputs.memory.opening is None:
        yield inputs.at(Verify(), study.due)


def _open_buckets(_study: Study, inputs: PlanInputs) -> Timed:
    opening = inputs.memory.opening
    if opening is not None:
        yield inputs.at(Begin(), opening.begins)
        for number in opening.lacking if inputs.now < opening.begins else ():
            yield inputs.apart(FetchMembers(number), partial(uniform, inputs.now, opening.begins))


def _look(study: EnrolledStudy, inputs: PlanInputs) -> Timed:
    due = Look() in inputs.memory.drawn or may_look(study.manifest.timetable, inputs.now)
    if due and Look() not in inputs.memory.done:
        yield inputs.timed(Look(), partial(draw_look, study.manifest, inputs.now))


def _go_on_without(study: EvaluatingStudy, inputs: PlanInputs) -> Timed:
    yield inputs.at(GoOnWithout(), study.evaluation.due)


def _answer(study: MemberStudy, inputs: PlanInputs) -> Timed:
    manifest = study.manifest
    for window in waiting(study, inputs.outbox, inputs.now):
        if not _missed(study, window, inputs.now):
            published = published_before(manifest, window)
            yield inputs.timed(Answer(window), partial(draw_fetch_time, published, window.opens, inputs.now))


def _miss(study: MemberStudy, inputs: PlanInputs) -> Timed:
    for window in waiting(study, inputs.outbox, inputs.now):
        if _missed(study, window, inputs.now):
            yield inputs.at(Miss(window), 0.0)


def _check_before(study: MemberStudy, inputs: PlanInputs) -> Timed:
    for packet in inputs.queued:
        check = CheckBefore(packet.slot, packet.send_at, packet.round)
        if not _looked(check, inputs):
            # At most half of the time left, so that a check that fails is never repeated at once.
            left = max(0.0, packet.send_at - inputs.now)
            longest = min(LEAD, float(study.manifest.timetable.margin), left / 2)
            yield inputs.timed(check, partial(_before, packet.send_at, longest))


def _send(_study: MemberStudy, inputs: PlanInputs) -> Timed:
    for packet in inputs.queued:
        if _looked(CheckBefore(packet.slot, packet.send_at, packet.round), inputs):
            yield inputs.at(Send(packet.slot, packet.send_at, packet.round), packet.send_at)


def _check_heads(study: MemberStudy, inputs: PlanInputs) -> Timed:
    """Random times before the first packet of each window leaves, one fewer than set: each packet has a check of its
    own. Documents of later packets were not there when earlier ones were checked. Once a look brought nothing the
    others wait for it: silence makes a peer open no more circuits for having more looks."""
    start, first = max(inputs.now, inputs.memory.ready), dict[Window, float]()
    for packet in inputs.queued:
        window = window_of(study.manifest, packet)
        first[window] = min(packet.send_at, first.get(window, packet.send_at))
    for window, send_at in first.items():
        looks = range(inputs.settings.head_checks - 1)
        lacking = [check for number in looks if (check := CheckHeads(window, number)) not in inputs.memory.done]
        for check in [check for check in lacking if inputs.memory.failures(check)][:1] or lacking:
            if check in inputs.memory.drawn or send_at > start:
                yield inputs.timed(check, partial(uniform, start, send_at))


def _settle(study: MemberStudy, inputs: PlanInputs) -> Timed:
    if is_settled(study, inputs.outbox, inputs.now):
        yield inputs.at(Settle(), 0.0)


def _withdraw(_study: LeavingStudy, inputs: PlanInputs) -> Timed:
    yield inputs.at(Withdraw(), 0.0)


def _give_up_transcripts(study: SentStudy, inputs: PlanInputs) -> Timed:
    if not _all_fetched(study, inputs.memory):
        yield inputs.at(GiveUpTranscripts(), study.manifest.timetable.ends + inputs.settings.inclusion_patience)


def _choose_transcripts(study: SentStudy, inputs: PlanInputs) -> Timed:
    if inputs.memory.digests is None:
        closed, ends = transcript_interval(study.manifest)
        yield inputs.timed(ChooseTranscripts(), partial(draw_fetch_time, closed, ends, inputs.now))


def _fetch_digests(study: SentStudy, inputs: PlanInputs) -> Timed:
    closed, ends = transcript_interval(study.manifest)
    for fetch in inputs.memory.digests or ():
        if fetch not in inputs.memory.done:
            yield inputs.apart(fetch, partial(draw_spread, closed, ends, inputs.now))


def _receive(study: SentStudy, inputs: PlanInputs) -> Timed:
    closed, ends = transcript_interval(study.manifest)
    if has_letters(study.manifest) and Receive() not in inputs.memory.done:
        yield inputs.timed(Receive(), partial(draw_spread, closed, ends, inputs.now))


def _conclude(study: SentStudy, inputs: PlanInputs) -> Timed:
    if _all_fetched(study, inputs.memory):
        yield inputs.at(Conclude(), 0.0)


Rule = Callable[[Any, PlanInputs], Timed]
"""Takes a study of the state that it is listed under."""
_COLLECTING: tuple[Rule, ...] = (_answer, _miss, _check_before, _send, _check_heads, _settle)
JOBS: Mapping[type[Study], tuple[Rule, ...]] = {
    ConsentedStudy: (_enrol, _verify_unacknowledged, _open_buckets),
    EnrolledStudy: (_verify, _open_buckets, _look),
    EvaluatingStudy: (_go_on_without,),
    AnsweringStudy: _COLLECTING,
    DecidedStudy: _COLLECTING,
    SentStudy: (_give_up_transcripts, _choose_transcripts, _fetch_digests, _receive, _conclude),
    LeavingStudy: (_withdraw,),
}
"""The jobs of each state, by the class of its studies. A study that is over has none."""


# The rest of a study: what is decided, and what is not


def window_of(manifest: Manifest, packet: OutboxEntry) -> Window:
    """The window in which a packet leaves."""
    return manifest.survey(packet.survey).window


def waiting(study: Study, outbox: Sequence[OutboxEntry], now: float) -> dict[Window, Slots]:
    """The slots (slot, survey) still to be decided, per window, in the order of opening. It has every window that is
    still to be filled, also those without a slot. So nothing depends on the draw."""
    manifest = study.manifest
    filled = {window_of(manifest, packet) for packet in outbox if packet.slot >= COVER_FROM}
    windows: dict[Window, Slots] = {}
    for window in manifest.windows:
        slots = undecided(study, outbox, window)
        lacking = places_in(manifest, window) > packets_in(manifest, study.draws, window) and window not in filled
        if slots or (lacking and not _missed(study, window, now)):
            windows[window] = slots
    return windows


def undecided(study: Study, outbox: Sequence[OutboxEntry], window: Window) -> Slots:
    """The slots (slot, survey) of a window whose packets are neither made nor missed."""
    decided = {packet.slot for packet in outbox}
    return [
        (slot, survey)
        for slot, survey in enumerate(study.draws)
        if slot not in decided and study.manifest.survey(survey).window == window
    ]


def is_settled(study: Study, outbox: Sequence[OutboxEntry], now: float, but: PacketKey | None = None) -> bool:
    """True if every slot is decided and nothing is queued, `but` for one packet of the outbox."""
    queued = any(packet.status is Status.QUEUED for packet in outbox if packet.key != but)
    return not queued and not waiting(study, outbox, now)


def places_in(manifest: Manifest, window: Window) -> int:
    """How many departures every peer plans in a window: its connections with cover traffic, else one for each slot that
    may draw a survey in it."""
    if manifest.cover.connections:
        return manifest.cover.connections
    return sum(any(manifest.survey(row.survey).window == window for row in slot.rows) for slot in manifest.slots)


def packets_in(manifest: Manifest, draws: Sequence[int], window: Window) -> int:
    """How many of the drawn surveys have this window."""
    return sum(manifest.survey(survey).window == window for survey in draws)


def unanswered_checks(memory: RunnerMemory, window: Window) -> bool:
    """True if a look at the heads that was planned for the window brought nothing so far: silence must not pass for
    agreement."""
    return any(isinstance(job, CheckHeads) and job.window == window and job not in memory.done for job in memory.drawn)


def transcript_interval(manifest: Manifest) -> tuple[float, float]:
    """From the last window's end to the study's."""
    return max(survey.window.closes for survey in manifest.surveys), manifest.timetable.ends


@frozen
class Hindrance:
    """The reason why a packet may not leave at its time. `word`: for the receipt of one that is given up; empty when
    another time is drawn."""

    word: str = ""


def hindrance(manifest: Manifest, packet: OutboxEntry, now: float, behind: float) -> Hindrance | None:
    """The packet is too late, too early, or was tried too often; None when it may leave now."""
    window, margin = window_of(manifest, packet), manifest.timetable.margin
    if packet.attempts >= MAX_ATTEMPTS:
        return Hindrance(say("never acknowledged"))
    if packet.send_at > window.closes - margin:  # a retry for which nothing was left of the window
        return Hindrance(PASSED)
    if overdue(packet.send_at, margin, now) or packet.send_at < earliest(manifest, window, behind):
        return Hindrance()
    return None


def earliest(manifest: Manifest, window: Window, behind: float) -> float:
    """When the window is open by the home's clock too, in the study's time, which the home's is `behind`.

    An aggregator may show a document too early, and to a single peer. If that peer's packets left before the window,
    alone, they would be known for one peer's. So a document only ever makes a packet leave sooner within the window
    by the home's own clock.
    """
    return window.opens + manifest.timetable.margin + behind


def _before(send_at: float, longest: float, random_bytes: RandomBytes) -> float:
    return send_at - uniform(0.0, longest, random_bytes)


def _looked(check: CheckBefore, inputs: PlanInputs) -> bool:
    return inputs.settings.head_checks == 0 or check in inputs.memory.done


def _missed(study: Study, window: Window, now: float) -> bool:
    return study.barred or not in_time(study.manifest, window, now + making_allowance(study.manifest, window))


def _all_fetched(study: SentStudy, memory: RunnerMemory) -> bool:
    received = Receive() in memory.done or not has_letters(study.manifest)
    return received and memory.digests is not None and memory.done.issuperset(memory.digests)
