"""The desk's view of a study. Until collection has closed every count moves in steps of 50 (design section 8)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import lru_cache

from attrs import frozen

from aggregator.desk.steps import Steps
from aggregator.desk.timeline import TimelineStage, stages, time_left
from aggregator.protocols.contract import PartScore
from aggregator.protocols.estimates import Estimate
from aggregator.rules.counters import STEP, Count
from aggregator.rules.lifecycle import Phase
from aggregator.study.live import LiveStudy
from aggregator.study.status import CLOSED, status_of
from aggregator.study.sums import patience
from anon.accounting.statement import ENROLLED, Batch, batch_of_reports
from anon.errors import AnonmlError
from anon.protocols.contract import Place
from anon.protocols.cost_words import cost_in_words, promise_in_words, statement
from anon.protocols.models.published import PublishedModel
from anon.protocols.registry import protocol_of
from anon.protocols.tellers import PresentedTeller, presented_tellers
from anon.study.manifest import Manifest
from anon.text.sentences import say
from anon.transparency.documents import find
from anon.transparency.fingerprint import HeadPrint, head_prints, words
from anon.wire.messages import parse_roster


@frozen
class Waiting:
    """A round waits for a teller. `said`: why, and what to do; `since` and `until` in unix seconds."""

    teller: str
    said: str
    since: float
    until: float


def waiting_of(live: LiveStudy) -> Waiting | None:
    """The teller that the present round waits for; None while it waits for none."""
    if live.fault is None or not live.fault.teller:
        return None
    return Waiting(live.fault.teller, live.fault.said, live.fault.since, patience(live))


@frozen
class StudyFacts:
    """One study for its page. Nothing in it names a packet, and nothing of who enrolled stands beside a count of what
    was sent."""

    study: str
    title: str
    summary: str
    manifest: Manifest
    phase: str
    left: str
    fingerprint: str
    cost: str
    promise: str
    enrolled: Count
    enough: bool
    accepted: Count
    expected_packets: int | None
    enrolment_answers: Mapping[str, int]
    packet_answers: Mapping[str, int]
    answers_exact: bool
    stages: tuple[TimelineStage, ...]
    documents: int
    has_model: bool
    has_report: bool
    fault: str
    waiting: Waiting | None
    unsummed: str
    tellers: tuple[PresentedTeller, ...]
    left_out: tuple[str, ...]

    @property
    def admits(self) -> bool:
        """True if somebody can still enrol."""
        return self.phase == Phase.ENROLLING

    @property
    def packets_said(self) -> str:
        """How many packets are kept, and of how many. A group that is smaller than a step hears the number at the end.
        """
        if self.expected_packets is None:
            return str(self.accepted)
        if not self.accepted.exact and self.expected_packets <= STEP:
            return f"told when collection has closed ({self.expected_packets} are expected)"
        return f"{self.accepted} of {self.expected_packets}"


async def facts_of(live: LiveStudy) -> StudyFacts:
    """How a study stands."""
    status = await status_of(live, "")
    manifest, waiting = live.manifest, waiting_of(live)
    return StudyFacts(
        study=live.study.hex(),
        title=manifest.title,
        summary=protocol_of(manifest).summary(manifest),
        manifest=manifest,
        phase=live.state,
        left=time_left(live.ends, live.tools.now()),
        fingerprint=words(live.study),
        cost=cost_in_words(manifest),
        promise=promise_in_words(manifest),
        enrolled=status.enrolled,
        enough=status.enough,
        accepted=status.accepted,
        expected_packets=status.enrolled.number * manifest.packets if status.enrolled.exact else None,
        enrolment_answers=status.enrolment_answers,
        packet_answers=status.packet_answers,
        answers_exact=status.accepted.exact,
        stages=stages(manifest, live.rounds, live.phase, live.turn),
        documents=len(live.chain),
        has_model=find(live.chain, "model") is not None,
        has_report=find(live.chain, "report") is not None,
        fault="" if waiting or live.ended == live.trouble else live.trouble,
        waiting=waiting,
        unsummed=live.ended,
        tellers=presented_tellers(manifest),
        left_out=status.left_out,
    )


async def roster_of(live: LiveStudy) -> tuple[str, ...] | None:
    """The study keys of the published roster, in the roster's order (by key, not by arrival); None before it closes."""
    head = find(live.chain, "roster")
    if head is None:
        return None
    bodies = [content async for _bucket, content in live.contents(head)]
    entries = await asyncio.to_thread(lambda: [entry for body in bodies for entry in parse_roster(body, live.study)])
    return tuple(sorted(entry.key.hex() for entry in entries))


def fingerprints_of(live: LiveStudy) -> tuple[HeadPrint, ...]:
    """The words of every published document; transcripts are named as all others."""
    return head_prints(live.chain)


async def statement_of(live: LiveStudy) -> tuple[str, ...]:
    """The privacy statement: with accepted packets once collection has closed, before that with the members enrolled,
    and before the roster with the declared minimum."""
    manifest = live.manifest
    if live.phase in CLOSED and live.phase is not Phase.ABANDONED:
        counts = await live.accepted()
        batch = batch_of_reports(manifest, [counts.get(survey.survey, 0) for survey in manifest.surveys])
    elif live.rostered:
        batch = Batch((live.rostered,) * manifest.packets, ENROLLED)
    else:
        counted = say("{members}, the declared minimum", members=ENROLLED)
        batch = Batch((manifest.cohort.minimum,) * manifest.packets, counted)
    return await asyncio.to_thread(_accounting, live.manifest, batch)


@lru_cache(maxsize=64)
def _accounting(manifest: Manifest, batch: Batch) -> tuple[str, ...]:
    return statement(manifest, batch)


async def model_of(live: LiveStudy) -> PublishedModel | None:
    """The published model."""
    head = find(live.chain, "model")
    if head is None:
        return None
    body = await live.body_of(head)
    return await asyncio.to_thread(live.tools.protocols.model, body)


async def part_scores_of(live: LiveStudy) -> tuple[PartScore, ...]:
    """The scores of the published model's parts."""
    model = await model_of(live)
    return live.protocol_part.part_scores(model) if model else ()


async def is_guessing(live: LiveStudy) -> bool:
    """True if the published model says of itself that it was not shown to beat the base rate."""
    model = await model_of(live)
    return model is not None and model.shown is False


class Estimates:
    """The estimates of all studies as the desk may show them."""

    def __init__(self) -> None:
        self._steps = Steps()
        self._kept: dict[tuple[bytes, int], Estimate] = {}

    async def of(self, live: LiveStudy) -> tuple[Estimate, ...]:
        """The newest estimate that may be shown of every survey that has one."""
        counts = await live.accepted()
        documents = await live.round_documents()
        for survey in live.manifest.surveys:
            kept, accepted = self._kept.get((live.study, survey.survey)), counts.get(survey.survey, 0)
            final = live.packet_intake.frozen_until >= survey.window.closes
            due = (kept is None or not kept.final) if final else self._steps.may_move(
                live.study, survey.survey, accepted
            )
            if due and accepted >= STEP:
                await self._renew(live, survey.survey, documents, final)
        return tuple(
            self._kept[live.study, known_survey.survey]
            for known_survey in live.manifest.surveys
            if (live.study, known_survey.survey) in self._kept
        )

    async def _renew(self, live: LiveStudy, survey: int, documents: Mapping[Place, bytes], final: bool) -> None:
        asked = live.manifest.survey(survey)
        tally = await live.tally_of(survey)
        try:
            estimate = live.protocol_part.estimate
            found = await asyncio.to_thread(estimate, live.manifest, asked, documents, tally, final)
        except AnonmlError:
            return
        if found is not None:
            self._kept[live.study, survey] = found


