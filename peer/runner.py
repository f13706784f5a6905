"""One study on one peer: what is due next, and doing it. All waiting and fetching is here; the rules are elsewhere.

A step does one due thing and is safe to be killed in: whatever matters was committed before, and what was not
committed did not leave. Times that only spread load or hide a pattern are drawn again after a restart.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from attrs import frozen

from anon import labels
from anon.answers import ACCEPTED, BUSY, WITHDRAWN
from anon.credential import pseudonym
from anon.documents import Head, SignedHead, find
from anon.encoding import decode, sha256
from anon.errors import AnonmlError, Conflict, Malformed, Refused, RejectedProof, Unreachable
from anon.protocols.contract import Answering, DocumentArrived
from anon.protocols.histogram.tables import slot_context
from anon.study.manifest import Manifest, Window
from peer.checks import (
    Bodies,
    Equivocation,
    NotEnrolled,
    check_credential,
    check_membership,
    extend_chain,
    tables_of,
)
from peer.client import AggregatorClient
from peer.data.features import Snapshot, snapshot
from peer.home import Settings
from peer.protocols.histogram import Record
from peer.protocols.registry import half_of
from peer.records import Queued, Status, Study, Verified
from peer.release import release
from peer.schedule import (
    MAX_ATTEMPTS,
    draw_backoff,
    draw_fetch_time,
    draw_send_time,
    overdue,
    uniform,
)
from peer.secrets import StudySecrets, Vault
from peer.session import LAST, Event, State, Unlisted
from peer.store import Scheduled, Store

LEAD = 30.0
"""The heads are fetched again at most so many seconds before a packet leaves."""
LONGEST_BACKOFF_BASE = 60.0
_AGAIN = (Unreachable, Malformed, RejectedProof)
"""What a fetch may end in without any blame: it is tried again."""


@frozen
class Tools:
    """What a runner works with."""

    store: Store
    data_path: Path
    vault: Vault
    settings: Settings
    client: Callable[[Study], AggregatorClient]
    now: Callable[[], float]
    random_bytes: Callable[[int], bytes]


@frozen
class Job:
    """Something to do from `due` on. `name` tells its random times and failures apart from others'."""

    due: float
    name: str
    action: Callable[[], Awaitable[None]]


class Later(Exception):
    """The other side has not published or answered yet; the job is tried again after a random while."""


class StudyRunner:
    """Steps one study. Holds nothing that may not be lost."""

    def __init__(self, study: bytes, tools: Tools) -> None:
        self._study = study
        self._tools = tools
        self._times: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        self._checked_before: set[tuple[int, float]] = set()
        self._head_checks: list[float] | None = None

    async def step(self) -> float | None:
        """Do what is due, one thing at most; the unix time when the next is, or None when the study is over."""
        study = self._tools.store.study(self._study)
        if study.state in LAST:
            return None
        job = min(self._jobs(study), key=lambda one: one.due)
        now = self._tools.now()
        if job.due > now:
            return job.due
        try:
            await job.action()
            self._failures.pop(job.name, None)
        except Later:
            self._postpone(job.name, study.manifest)
        except Equivocation as caught:
            self._tools.store.end(self._study, Event.CHECK_FAILED, str(caught), caught.evidence())
        except Refused as fault:
            self._tools.store.end(self._study, Event.CHECK_FAILED, str(fault))
        except (Unlisted, Conflict):
            if self._tools.store.study(self._study).state is study.state:
                raise
        return self._tools.now()

    def _jobs(self, study: Study) -> list[Job]:
        if study.state is State.CONSENTED and self._tools.now() < study.manifest.timetable.enrol_closes:
            return [self._job("enrol", study.due, partial(self._enrol, study))]
        if study.state in (State.CONSENTED, State.ENROLLED):
            return [self._job("verify", self._fetch_time(study), partial(self._verify, study))]
        if study.state is State.LEAVING:
            return [self._job("withdraw", 0.0, partial(self._withdraw, study))]
        if study.state is State.CHECKED:
            return self._collecting_jobs(study)
        return [self._job("include", self._inclusion_time(study), partial(self._include, study))]

    def _job(self, name: str, due: float, action: Callable[[], Awaitable[None]]) -> Job:
        return Job(max(due, self._times.get("again-" + name, 0.0)), name, action)

    def _drawn(self, name: str, draw: Callable[[], float]) -> float:
        if name not in self._times:
            self._times[name] = draw()
        return self._times[name]

    def _postpone(self, name: str, manifest: Manifest) -> None:
        table = manifest.timetable
        base = min(LONGEST_BACKOFF_BASE, max(0.25, (table.settled - table.enrol_closes) / 20))
        failures = self._failures.get(name, 0)
        self._failures[name] = failures + 1
        self._times["again-" + name] = self._tools.now() + draw_backoff(failures, base, self._tools.random_bytes)

    # Enrolling

    async def _enrol(self, study: Study) -> None:
        assert study.enrolment is not None
        word = await self._word(self._tools.client(study).enrol(study.enrolment))
        if word == ACCEPTED:
            table = study.manifest.timetable
            due = draw_fetch_time(table.enrol_closes, table.settled, self._tools.now(), self._tools.random_bytes)
            self._tools.store.enrolled(self._study, due)
        elif word == BUSY:
            raise Later
        else:
            self._tools.store.end(self._study, Event.ENROLMENT_REFUSED, f"the aggregator did not admit it: {word}")

    async def _withdraw(self, study: Study) -> None:
        closes = study.manifest.timetable.enrol_closes
        if study.withdrawal is None or self._tools.now() >= closes:
            return self._tools.store.settle_withdrawal(self._study, "left; enrolment had closed, nothing is sent")
        word = await self._word(self._tools.client(study).withdraw(study.withdrawal))
        if word == BUSY:
            raise Later
        reason = "left" if word == WITHDRAWN else f"left; the aggregator answered {word}"
        return self._tools.store.settle_withdrawal(self._study, reason)

    async def _word(self, answer: Awaitable[str]) -> str:
        try:
            return await answer
        except _AGAIN:
            raise Later from None

    # Checking

    def _fetch_time(self, study: Study) -> float:
        table = study.manifest.timetable
        if study.state is State.ENROLLED:
            return study.due
        return self._drawn(
            "verify",
            lambda: draw_fetch_time(table.enrol_closes, table.settled, self._tools.now(), self._tools.random_bytes),
        )

    async def _verify(self, study: Study) -> None:
        manifest = study.manifest
        if self._tools.now() >= last_chance(manifest):
            return self._tools.store.end(
                self._study, Event.WINDOWS_PASSED, "the windows passed before the checks could be made; nothing is sent"
            )
        chain = await self._chain(study)
        if find(chain, "abandoned") is not None:
            return self._tools.store.end(
                self._study, Event.STUDY_ABANDONED, "too few enrolled; nothing is sent, the budget is back"
            )
        bodies = await self._membership_bodies(study, chain)
        try:
            verified, packets, missed, record = await self._checked(study, chain, bodies)
        except NotEnrolled as absent:
            event = Event.ENROLMENT_REFUSED if study.state is State.CONSENTED else Event.CHECK_FAILED
            return self._tools.store.end(self._study, event, str(absent))
        except (Malformed, Refused, RejectedProof) as fault:
            return self._tools.store.end(self._study, Event.CHECK_FAILED, str(fault))
        self._tools.store.verified(self._study, verified, record.to_bytes(), packets, missed)
        return self._settle_if_done(manifest)

    async def _membership_bodies(self, study: Study, chain: Sequence[SignedHead]) -> Bodies:
        heads = [find(chain, kind) for kind in ("roster", "seed", "credentials")]
        present = [head for head in heads if head is not None]
        if len(present) < len(heads):
            raise Later
        client = self._tools.client(study)
        try:
            return Bodies(*[await client.body(head) for head in present])
        except _AGAIN:
            raise Later from None

    async def _checked(
        self, study: Study, chain: tuple[SignedHead, ...], bodies: Bodies
    ) -> tuple[Verified, list[Scheduled], list[int], Snapshot]:
        manifest, secrets = study.manifest, self._secrets(study)
        demand_order(chain)
        member = check_membership(
            study.manifest_bytes, manifest, bodies, secrets, study.minimum_cohort, study.consented
        )
        tags = [
            pseudonym(member.credential, slot_context(study.study, number)) for number in range(manifest.packets)
        ]
        draws = half_of(manifest).drawn_surveys(manifest, member.seed, tags)
        verified = Verified(chain, member.roster_digest, member.seed, member.signature, draws)
        record = await self._evaluated(manifest)
        asked = list(enumerate(draws))
        answers = half_of(manifest).answers(manifest, Record(record.values, record.label), asked, ())
        packets, missed = self._released(manifest, answers, member.credential)
        missed += [
            slot
            for slot, survey in asked
            if slot not in missed and self._over(manifest, manifest.survey(survey).window)
            and slot not in {one.slot for one in answers}
        ]
        return verified, packets, missed, record

    async def _evaluated(self, manifest: Manifest) -> Snapshot:
        """All features at one instant, the study's own, unrelated to when packets leave."""
        as_of = manifest.timetable.enrol_closes
        tables = tables_of(manifest)
        evaluate = partial(snapshot, self._tools.data_path, manifest.features, manifest.label, as_of, tables=tables)
        return await asyncio.to_thread(evaluate)

    def _released(
        self, manifest: Manifest, answers: Sequence[Answering], credential: Any
    ) -> tuple[list[Scheduled], list[int]]:
        """Finished packets with their times, and the slots whose window has passed."""
        packets: list[Scheduled] = []
        missed: list[int] = []
        for answering in answers:
            window = manifest.survey(answering.survey).window
            send_at = self._send_time(manifest, window)
            if send_at is None:
                missed.append(answering.slot)
                continue
            made = release(manifest, answering, credential, self._tools.random_bytes)
            packets.append(Scheduled(made, send_at))
        return packets, missed

    def _secrets(self, study: Study) -> StudySecrets:
        assert study.secrets is not None
        return StudySecrets.from_bytes(self._tools.vault.open(study.secrets))

    # Answering and sending

    def _collecting_jobs(self, study: Study) -> list[Job]:
        manifest = study.manifest
        outbox = self._tools.store.outbox(self._study)
        decided = {one.slot for one in outbox}
        waiting: dict[Window, list[tuple[int, int]]] = {}
        for slot, survey in enumerate(study.draws):
            if slot not in decided:
                waiting.setdefault(manifest.survey(survey).window, []).append((slot, survey))
        queued = [one for one in outbox if one.status is Status.QUEUED]
        jobs = [self._answer_job(study, window, slots) for window, slots in waiting.items()]
        jobs += [self._packet_job(study, one) for one in queued]
        jobs += [
            self._job(f"heads-{due}", due, partial(self._check_heads, study, due))
            for due in self._head_check_times(queued)
        ]
        if not waiting and not queued:
            jobs.append(self._job("settle", 0.0, partial(self._settle, manifest)))
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
        action = partial(self._miss, study, slots) if over else partial(self._answer, study, slots)
        return self._job(name + "-over", 0.0, action) if over else self._job(name, due, action)

    async def _miss(self, study: Study, slots: list[tuple[int, int]]) -> None:
        self._tools.store.journal(self._study, (), [slot for slot, _survey in slots])
        self._settle_if_done(study.manifest)

    async def _answer(self, study: Study, slots: list[tuple[int, int]]) -> None:
        manifest, half = study.manifest, half_of(study.manifest)
        chain = await self._chain(study)
        needed = sorted({document for _slot, survey in slots for document in half.needs(manifest, survey)})
        documents = [await self._document(study, chain, kind, part) for kind, part in needed]
        assert study.snapshot is not None
        record = Snapshot.from_bytes(study.snapshot)
        try:
            answers = half.answers(manifest, Record(record.values, record.label), slots, documents)
            packets, missed = self._released(manifest, answers, self._credential(study))
        except (Malformed, RejectedProof) as fault:
            return self._tools.store.end(self._study, Event.CHECK_FAILED, str(fault))
        self._tools.store.journal(self._study, packets, missed, chain=chain)
        self._settle_if_done(manifest)

    async def _document(
        self, study: Study, chain: Sequence[SignedHead], kind: str, part: int
    ) -> DocumentArrived:
        head = find(chain, kind, part)
        if head is None:
            raise Later
        return DocumentArrived(kind, part, await self._body(study, head))

    async def _body(self, study: Study, head: Head) -> bytes:
        try:
            return await self._tools.client(study).body(head)
        except _AGAIN:
            raise Later from None

    def _credential(self, study: Study) -> Any:
        assert study.roster_digest is not None
        assert study.seed is not None
        assert study.credential is not None
        return check_credential(
            study.manifest, study.roster_digest, study.seed, study.credential, self._secrets(study)
        )

    def _head_check_times(self, queued: Sequence[Queued]) -> list[float]:
        """Random times before the first packet leaves, one less than the setting: each packet has a check of its own."""
        if self._head_checks is None:
            if not queued:
                return []
            now, first = self._tools.now(), min(one.send_at for one in queued)
            count = self._tools.settings.head_checks - 1 if first > now else 0
            self._head_checks = [uniform(now, first, self._tools.random_bytes) for _ in range(count)]
        return self._head_checks

    async def _check_heads(self, study: Study, due: float) -> None:
        if self._head_checks is not None:
            self._head_checks.remove(due)
        await self._chain(study)

    def _packet_job(self, study: Study, packet: Queued) -> Job:
        name = f"packet-{packet.slot}-{packet.send_at}"
        if self._tools.settings.head_checks == 0 or (packet.slot, packet.send_at) in self._checked_before:
            return self._job(name, packet.send_at, partial(self._send, study, packet))
        longest = min(LEAD, float(study.manifest.timetable.margin))
        lead = self._drawn(name + "-lead", lambda: uniform(0.0, longest, self._tools.random_bytes))
        return self._job(name + "-check", packet.send_at - lead, partial(self._check_before, study, packet))

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
        retry_at = self._send_time(study.manifest, window)
        self._tools.store.attempt(self._study, packet.slot, retry_at if retry_at is not None else float(window.closes))
        try:
            word = await self._tools.client(study).submit(packet.sealed)
        except _AGAIN:
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
        if overdue(packet.send_at, study.manifest.timetable.margin, self._tools.now()):
            self._redraw(study, packet)
            return True
        return False

    def _redraw(self, study: Study, packet: Queued) -> None:
        send_at = self._send_time(study.manifest, study.manifest.survey(packet.survey).window)
        if send_at is None:
            self._answered(study, packet, Status.GIVEN_UP, "its window passed")
        else:
            self._tools.store.redraw(self._study, packet.slot, send_at)

    def _answered(self, study: Study, packet: Queued, status: Status, word: str) -> None:
        outbox = self._tools.store.outbox(self._study)
        others_done = len(outbox) == len(study.draws) and all(
            one.status is not Status.QUEUED for one in outbox if one.slot != packet.slot
        )
        self._tools.store.answered(
            self._study, packet.slot, status, word, self._settled_events() if others_done else ()
        )

    def _settle_if_done(self, manifest: Manifest) -> None:
        outbox = self._tools.store.outbox(self._study)
        if len(outbox) == manifest.packets and all(one.status is not Status.QUEUED for one in outbox):
            self._tools.store.settle(self._study, self._settled_events())

    async def _settle(self, manifest: Manifest) -> None:
        self._settle_if_done(manifest)

    def _settled_events(self) -> tuple[Event, ...]:
        if self._tools.settings.check_inclusion:
            return (Event.SLOTS_SETTLED,)
        return (Event.SLOTS_SETTLED, Event.INCLUSION_SETTLED)

    def _send_time(self, manifest: Manifest, window: Window) -> float | None:
        return draw_send_time(window, manifest.timetable.margin, self._tools.now(), self._tools.random_bytes)

    def _over(self, manifest: Manifest, window: Window) -> bool:
        return self._tools.now() >= window.closes - manifest.timetable.margin

    # Heads and inclusion

    async def _chain(self, study: Study) -> tuple[SignedHead, ...]:
        """The chain, fetched anew and consistent with what was seen. Raises `Later`, `Equivocation`."""
        try:
            fresh = await self._tools.client(study).chain()
        except _AGAIN:
            raise Later from None
        seen = study.chain
        chain = extend_chain(seen, fresh)
        if seen and len(chain) > len(seen):
            self._tools.store.see_chain(self._study, chain)
        return chain

    def _inclusion_time(self, study: Study) -> float:
        manifest = study.manifest
        closed = max(survey.window.closes for survey in manifest.surveys)
        ends = manifest.timetable.ends
        return self._drawn(
            "include", lambda: draw_fetch_time(closed, ends, self._tools.now(), self._tools.random_bytes)
        )

    async def _include(self, study: Study) -> None:
        """Look for the own packets in the published transcripts, by downloading whole surveys."""
        delivered = [one for one in self._tools.store.outbox(self._study) if one.status is Status.DELIVERED]
        deadline = study.manifest.timetable.ends + self._tools.settings.inclusion_patience
        if not delivered:
            return self._tools.store.inclusion(self._study, {}, "nothing was delivered")
        if self._tools.now() >= deadline:
            return self._tools.store.inclusion(self._study, {}, "the transcript was not published in time")
        chain = await self._chain(study)
        found: dict[int, Status] = {}
        for packet in delivered:
            document = await self._document(study, chain, "transcript", packet.survey)
            listed = transcript_digests(document.body, study.study, packet.survey)
            found[packet.slot] = Status.INCLUDED if packet.digest in listed else Status.NOT_INCLUDED
        return self._tools.store.inclusion(self._study, found, "")


def last_chance(manifest: Manifest) -> float:
    """The last instant at which any packet of the study could still be made, in unix seconds."""
    return max(survey.window.closes for survey in manifest.surveys) - manifest.timetable.margin


def demand_order(chain: Sequence[SignedHead]) -> None:
    """The roster was signed before the seed was revealed, the seed before the credentials. Raises `Refused`."""
    numbers = [head.number for kind in ("roster", "seed", "credentials") if (head := find(chain, kind)) is not None]
    if numbers != sorted(numbers):
        raise Refused("the aggregator revealed its random value before it signed the roster; nothing is sent")


def transcript_digests(body_untrusted: bytes, study: bytes, survey: int) -> frozenset[bytes]:
    """Digests of the packets in a transcript; empty for a body that is none, which then includes nothing."""
    try:
        body = decode(body_untrusted, "transcript")
        version, named, asked, packets = body
        fits = (version, named, asked) == (1, study, survey) and all(type(one) is bytes for one in packets)
    except (AnonmlError, TypeError, ValueError):
        return frozenset()
    return frozenset(sha256(labels.PACKET_DIGEST, one) for one in packets) if fits else frozenset()
