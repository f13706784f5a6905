"""What the desk shows of a study. Until collection has closed every count moves in steps of 50 (design section 8)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import lru_cache

from attrs import frozen

from aggregator.counters import STEP
from aggregator.desk.estimates import Estimate, Steps, can_be_named, estimate
from aggregator.desk.timeline import Stage, stages, time_left
from aggregator.session import Phase
from aggregator.study import LiveStudy
from anon.accounting import ENROLLED, Batch, account, batch_of_chain, batch_of_reports, in_words
from anon.documents import find
from anon.errors import AnonmlError
from anon.fingerprint import HeadPrint, head_prints, words
from anon.ldp import format_epsilon
from anon.messages import parse_roster
from anon.model import Model, from_json
from anon.protocols.histogram import cuts
from anon.protocols.histogram.cuts import Answers
from anon.study.manifest import Manifest, parse_manifest

_CLOSED = frozenset({Phase.LEARNING, Phase.PUBLISHED, Phase.ERASED, Phase.ABANDONED})


@frozen
class Count:
    """A number as it may be shown: exact, or rounded down to a step of 50."""

    number: int
    exact: bool

    def __str__(self) -> str:
        if self.exact:
            return str(self.number)
        return f"{self.number} or more" if self.number else f"fewer than {STEP}"


@frozen
class StudyFacts:
    """One study for its page. Nothing in it names a packet, and nothing of who enrolled stands beside a count of what
    was sent."""

    study: str
    title: str
    manifest: Manifest
    phase: str
    left: str
    fingerprint: str
    epsilon: str
    enrolled: Count
    enough: bool
    accepted: Count
    expected_packets: int | None
    enrolment_answers: Mapping[str, int]
    packet_answers: Mapping[str, int]
    answers_exact: bool
    stages: tuple[Stage, ...]
    documents: int
    has_model: bool
    has_report: bool

    @property
    def admits(self) -> bool:
        """Whether somebody can still enrol."""
        return self.phase == Phase.ENROLLING


async def facts_of(live: LiveStudy) -> StudyFacts:
    """How a study stands."""
    closed, left = live.phase in _CLOSED, live.phase is not Phase.ENROLLING
    enrolled = await live.tools.enrolments.count(live.study)
    if live.phase is Phase.ERASED:
        enrolled = roster_length(live)
    accepted = sum((await live.tools.packets.counts(live.study)).values())
    manifest = live.manifest
    return StudyFacts(
        study=live.study.hex(),
        title=manifest.title,
        manifest=manifest,
        phase=str(live.phase),
        left=time_left(manifest, live.phase, live.turn, live.tools.now()),
        fingerprint=words(live.study),
        epsilon=format_epsilon(manifest.epsilon),
        enrolled=Count(enrolled, True) if left else Count(enrolled // STEP * STEP, False),
        enough=enrolled >= manifest.cohort.minimum,
        accepted=Count(accepted, True) if closed else Count(accepted // STEP * STEP, False),
        expected_packets=enrolled * manifest.packets if left else None,
        enrolment_answers=live.enrolment_answers.exact() if left else live.enrolment_answers.coarse(),
        packet_answers=live.packet_answers.exact() if closed else live.packet_answers.coarse(),
        answers_exact=closed,
        stages=stages(manifest, live.phase, live.turn),
        documents=len(live.chain),
        has_model=find(live.chain, "model") is not None,
        has_report=find(live.chain, "report") is not None,
    )


def roster_length(live: LiveStudy) -> int:
    """How many the signed roster has, from the length of its body alone; 0 before there is one."""
    known = batch_of_chain(live.manifest, [one for one in live.chain if one.head.kind == "roster"])
    return known.counts[0] if known else 0


async def roster_of(live: LiveStudy) -> tuple[str, ...] | None:
    """The study keys of the published roster, in the roster's order (by key, not by arrival); None before it closes."""
    head = find(live.chain, "roster")
    if head is None:
        return None
    return tuple(entry.key.hex() for entry in parse_roster(await live.body_of(head), live.study))


def fingerprints_of(live: LiveStudy) -> tuple[HeadPrint, ...]:
    """The words of every published document; transcripts are named as all others."""
    return head_prints(live.chain)


async def statement_of(live: LiveStudy) -> tuple[str, ...]:
    """The privacy statement: with accepted packets once collection has closed, before that with the members enrolled,
    and before the roster with the declared minimum."""
    manifest = live.manifest
    if live.phase in _CLOSED and live.phase is not Phase.ABANDONED:
        counts = await live.tools.packets.counts(live.study)
        batch = batch_of_reports(manifest, [counts.get(one.survey, 0) for one in manifest.surveys])
    elif roster_length(live):
        batch = Batch((roster_length(live),) * manifest.packets, ENROLLED)
    else:
        batch = Batch((manifest.cohort.minimum,) * manifest.packets, f"{ENROLLED}, the declared minimum")
    return await asyncio.to_thread(_accounting, live.manifest_bytes, batch)


@lru_cache(maxsize=64)
def _accounting(manifest_bytes: bytes, batch: Batch) -> tuple[str, ...]:
    return in_words(account(parse_manifest(manifest_bytes), batch))


async def answers_of(live: LiveStudy) -> dict[int, Answers]:
    """The answers of every binning round that is published."""
    published: dict[int, Answers] = {}
    for turn in sorted({one.round for one in live.manifest.surveys if not one.asks_label}):
        place = cuts.place_of(live.manifest, turn)
        head = find(live.chain, *place)
        if head is not None:
            published |= cuts.parse(live.manifest, place, await live.body_of(head))
    return published


async def model_of(live: LiveStudy) -> Model | None:
    """The published model."""
    head = find(live.chain, "model")
    return None if head is None else from_json((await live.body_of(head)).decode())


@frozen
class Reached:
    """What one table of the published model reached on reports that took no part in fitting it."""

    features: str
    reports: int
    auc: float
    f1: float


async def reached_by(live: LiveStudy) -> tuple[Reached, ...]:
    """The scores of the published model's tables."""
    model = await model_of(live)
    tables = model.tables if model else ()
    return tuple(Reached(" × ".join(one.features), one.reports, one.auc, one.f1) for one in tables)


async def is_guessing(live: LiveStudy) -> bool:
    """Whether the published model says of itself that it was not shown to beat the base rate."""
    model = await model_of(live)
    return model is not None and model.shown is False


class Estimates:
    """The estimates of all studies as the desk may show them."""

    def __init__(self) -> None:
        self._steps = Steps()
        self._kept: dict[tuple[bytes, int], Estimate] = {}

    async def of(self, live: LiveStudy) -> tuple[Estimate, ...]:
        """The newest estimate that may be shown of every survey that has one."""
        counts = await live.tools.packets.counts(live.study)
        published = await answers_of(live)
        for survey in live.manifest.surveys:
            kept, accepted = self._kept.get((live.study, survey.survey)), counts.get(survey.survey, 0)
            final = live.door.frozen_until >= survey.window.closes
            due = (kept is None or not kept.final) if final else self._steps.may_move(
                live.study, survey.survey, accepted
            )
            if due and accepted and can_be_named(live.manifest, survey, published):
                await self._renew(live, survey.survey, published, final)
        return tuple(
            self._kept[live.study, one.survey]
            for one in live.manifest.surveys
            if (live.study, one.survey) in self._kept
        )

    async def _renew(self, live: LiveStudy, survey: int, published: Mapping[int, Answers], final: bool) -> None:
        asked = live.manifest.survey(survey)
        slot = next(one.slot for one in live.manifest.slots if any(row.survey == survey for row in one.rows))
        packets = await live.tools.packets.of_survey(live.study, slot, survey)
        try:
            found = await asyncio.to_thread(estimate, live.manifest, asked, published, packets, final)
        except AnonmlError:
            return
        if found is not None:
            self._kept[live.study, survey] = found


