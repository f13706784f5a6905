"""Answering the surveys that wait for documents, and sending packets at their times."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from anon.answers import ACCEPTED, BUSY
from anon.credential import Credential
from anon.errors import Malformed, RejectedProof, Unreachable
from anon.protocols.contract import DocumentArrived
from anon.study.manifest import Manifest, Window
from peer.checks import (
    check_credential,
)
from peer.data.features import Snapshot
from peer.errands import (
    CHECK,
    FETCH_FAULTS,
    Errands,
    Grounds,
    Job,
    Later,
    Tools,
    documents_of,
    packets_in,
    surveys_in,
)
from peer.records import Queued, Status, Study
from peer.schedule import (
    MAX_ATTEMPTS,
    draw_fetch_time,
    overdue,
    uniform,
)
from peer.secrets import StudySecrets
from peer.session import Event
from peer.store import Scheduled

PASSED = "its window passed"
LEAD = 30.0
"""The heads are fetched again at most so many seconds before a packet leaves."""

class Collecting(Errands):
    """Errands while windows are open."""

    def __init__(self, study: bytes, tools: Tools) -> None:
        super().__init__(study, tools)
        self._checked_before: set[tuple[int, float]] = set()
        self._head_checks: dict[Window, list[float]] = {}

    def _collecting_jobs(self, study: Study) -> list[Job]:
        manifest = study.manifest
        departures = self._tools.store.departures(self._study)
        waiting = self._waiting(study, departures)
        queued = [one for one in departures if one.status is Status.QUEUED]
        jobs = [self._answer_job(study, window, slots) for window, slots in waiting.items()]
        jobs += [self._packet_job(study, one) for one in queued]
        jobs += [
            self._job(f"heads-{due}", due, partial(self._check_heads, study, window, due), self._later)
            for window, due in self._head_check_times(manifest, queued)
        ]
        if not waiting and not queued:
            jobs.append(self._job("settle", 0.0, partial(self._settle, study)))
        return jobs

    def _answer_job(self, study: Study, window: Window, slots: list[tuple[int, int]]) -> Job:
        manifest, name = study.manifest, f"answer-{window.opens}-{window.closes}"
        over = study.barred or self._over(manifest, window)
        published = max(
            (one.window.closes for one in manifest.surveys if one.window.closes <= window.opens),
            default=manifest.timetable.enrol_closes,
        )
        due = self._drawn(
            name,
            lambda: draw_fetch_time(published, window.opens, self._tools.now(), self._tools.random_bytes),
        )
        action = partial(self._miss, study, slots) if over else partial(self._answer, study, window, slots)
        return self._job(name + "-over", 0.0, action) if over else self._job(name, due, action)

    async def _miss(self, study: Study, slots: list[tuple[int, int]]) -> None:
        self._tools.store.journal(self._study, (), [slot for slot, _survey in slots])
        self._settle_if_done(study)

    async def _answer(self, study: Study, window: Window, slots: list[tuple[int, int]]) -> None:
        """Fetch what the surveys need and journal their packets; with cover traffic, what any survey of the window
        needs, and as many dummies as there is room for."""
        manifest = study.manifest
        chain = await self._chain(study)
        asked = surveys_in(manifest, window) if manifest.cover.connections else [survey for _slot, survey in slots]
        documents = [await self._document(study, chain, kind, part) for kind, part in documents_of(manifest, asked)]
        now = self._tools.now()
        try:
            packets, missed = self._answers(study, slots, documents, now) if slots else ([], [])
        except (Malformed, RejectedProof) as fault:
            return self._tools.store.end(self._study, Event.CHECK_FAILED, str(fault))
        cover = self._dummies(manifest, window, packets_in(manifest, study.draws, window), now)
        self._tools.store.journal(self._study, packets, missed, cover=cover)
        self._settle_if_done(study)

    def _answers(
        self, study: Study, slots: list[tuple[int, int]], documents: Sequence[DocumentArrived], now: float
    ) -> tuple[list[Scheduled], list[int]]:
        assert study.snapshot is not None
        assert study.seed is not None
        record, secrets = Snapshot.from_bytes(study.snapshot), self._secrets(study)
        credential = self._credential(study, secrets)
        grounds = Grounds(study.manifest, secrets, credential, study.seed, record, tuple(documents))
        return self._released(grounds, slots, now)

    def _credential(self, study: Study, secrets: StudySecrets) -> Credential:
        assert study.roster_digest is not None
        assert study.seed is not None
        assert study.credential is not None
        return check_credential(
            study.study, study.manifest, study.roster_digest, study.seed, study.credential, secrets
        )

    def _head_check_times(self, manifest: Manifest, queued: Sequence[Queued]) -> list[tuple[Window, float]]:
        """Random times before the first packet of each window leaves, one fewer than set: each packet has a check of
        its own. What later packets rest on (thresholds, edges) was not there when earlier ones were checked."""
        now, first = self._after_evaluation(), dict[Window, float]()
        for one in queued:
            window = manifest.survey(one.survey).window
            first[window] = min(one.send_at, first.get(window, one.send_at))
        for window, send_at in first.items():
            if window not in self._head_checks and send_at > now:
                count = max(0, self._tools.settings.head_checks - 1)
                times = [uniform(now, send_at, self._tools.random_bytes) for _ in range(count)]
                self._head_checks[window] = times
        return [(window, due) for window in first for due in self._head_checks.get(window, ())]

    def _after_evaluation(self) -> float:
        """Now, but never before the time that evaluating the features is treated as having taken."""
        return max(self._tools.now(), self._times.get("ready", 0.0))

    async def _later(self) -> None:
        raise Later

    async def _check_heads(self, study: Study, window: Window, due: float) -> None:
        await self._chain(study)
        self._head_checks[window].remove(due)  # only now: one that was not answered is made up for

    def _packet_job(self, study: Study, packet: Queued) -> Job:
        name = f"packet-{packet.slot}-{packet.send_at}"
        off = partial(self._put_off, study, packet)
        if self._tools.settings.head_checks == 0 or (packet.slot, packet.send_at) in self._checked_before:
            return self._job(name, packet.send_at, partial(self._send, study, packet), off)
        # At most half of the time left, so that a check that fails is never repeated at once.
        left = max(0.0, packet.send_at - self._tools.now())
        longest = min(LEAD, float(study.manifest.timetable.margin), left / 2)
        lead = self._drawn(name + "-lead", lambda: uniform(0.0, longest, self._tools.random_bytes))
        return self._job(name + CHECK, packet.send_at - lead, partial(self._check_before, study, packet), off)

    async def _put_off(self, study: Study, packet: Queued) -> None:
        if not self._redrawn(study, packet):
            self._redraw(study, packet)

    async def _check_before(self, study: Study, packet: Queued) -> None:
        if self._redrawn(study, packet):
            return
        try:
            await self._chain(study)
        except Later:
            self._redraw(study, packet)
            return
        self._checked_before.add((packet.slot, packet.send_at))

    async def _send(self, study: Study, packet: Queued) -> None:
        if self._redrawn(study, packet):
            return
        assert packet.sealed is not None
        window = study.manifest.survey(packet.survey).window
        if self._head_checks.get(window):  # some went unanswered, and silence must not pass for agreement
            return self._redraw(study, packet)
        client = self._tools.client(study)
        try:
            await client.ready()
        except Unreachable:  # no byte can have left: the attempt is not one, and its time is as lost as a sleeper's
            return self._redraw(study, packet)
        if self._redrawn(study, packet):  # getting ready took too long
            return
        retry_at = self._send_time(study.manifest, window)
        self._tools.store.attempt(self._study, packet.slot, retry_at if retry_at is not None else float(window.closes))
        try:
            word = await client.submit(packet.sealed)
        except FETCH_FAULTS:
            return
        if word in (BUSY, "window-not-open"):
            return
        status = Status.DELIVERED if word == ACCEPTED else Status.REFUSED
        self._answered(study, packet, status, word)

    def _redrawn(self, study: Study, packet: Queued) -> bool:
        """Whether the packet is too late for its time, or out of retries, and was dealt with accordingly."""
        if packet.attempts >= MAX_ATTEMPTS:
            self._answered(study, packet, Status.GIVEN_UP, "never acknowledged")
            return True
        if packet.send_at > self._last_instant(study, packet):  # a retry for which nothing was left of the window
            self._answered(study, packet, Status.GIVEN_UP, PASSED)
            return True
        if overdue(packet.send_at, study.manifest.timetable.margin, self._tools.now()):
            self._redraw(study, packet)
            return True
        return False

    def _last_instant(self, study: Study, packet: Queued) -> float:
        return study.manifest.survey(packet.survey).window.closes - study.manifest.timetable.margin

    def _redraw(self, study: Study, packet: Queued) -> None:
        send_at = self._send_time(study.manifest, study.manifest.survey(packet.survey).window)
        if send_at is None:
            self._answered(study, packet, Status.GIVEN_UP, PASSED)
        else:
            self._tools.store.redraw(self._study, packet.slot, send_at)

    def _answered(self, study: Study, packet: Queued, status: Status, word: str) -> None:
        departures = self._tools.store.departures(self._study)
        others_done = not self._waiting(study, departures) and all(
            one.status is not Status.QUEUED for one in departures if one.slot != packet.slot
        )
        self._tools.store.answered(
            self._study, packet.slot, status, word, self._settled_events() if others_done else ()
        )
