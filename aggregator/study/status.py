"""The facts of a study that staff may see at any time."""

from __future__ import annotations

from attrs import frozen

from aggregator.rules.counters import Count
from aggregator.rules.faults import Fault
from aggregator.rules.lifecycle import Phase
from aggregator.store.studies import Progress
from aggregator.study.live import LiveStudy
from anon.transparency.documents import find
from anon.wire.messages import parse_abandoned

CLOSED = frozenset({Phase.LEARNING, Phase.PUBLISHED, Phase.ABANDONED, Phase.ENDED, Phase.ERASED})
"""Phases in which no packet comes any more."""
_NONE = Count.shown(0, final=False)


@frozen
class StudyStatus:
    """Counts as every surface shows them: of members in steps of 50 until enrolment has closed, of packets until
    collection has closed. `enough`: the minimum is reached.

    `fault`: why it does not go on, and what to do; empty while it does. `left_out`: packets found damaged, in words.
    """

    study: bytes
    title: str
    phase: str
    enrolled: Count
    minimum: int
    enough: bool
    ends: float | None
    accepted: Count
    enrolment_answers: dict[str, int]
    packet_answers: dict[str, int]
    documents: int
    fault: str = ""
    left_out: tuple[str, ...] = ()


async def status_of(live: LiveStudy, fault: str) -> StudyStatus:
    """Of a study that is loaded. `fault`: as the serving process told it."""
    closed, complete = live.phase in CLOSED, live.phase is not Phase.ENROLLING
    enrolled = await _enrolled(live)
    accepted = sum((await live.accepted()).values())
    enrolments, packets = await live.answers.all()
    return StudyStatus(
        study=live.study,
        title=live.manifest.title,
        phase=live.state,
        enrolled=Count.shown(enrolled, complete),
        minimum=live.manifest.cohort.minimum,
        enough=enrolled >= live.manifest.cohort.minimum,
        ends=live.ends,
        accepted=Count.shown(accepted, closed),
        enrolment_answers=enrolments.exact() if complete else enrolments.coarse(),
        packet_answers=packets.exact() if closed else packets.coarse(),
        documents=len(live.chain),
        fault=live.trouble or fault,
        left_out=await live.left_out(),
    )


async def _enrolled(live: LiveStudy) -> int:
    """By the store, and once that is erased by the signed documents."""
    if live.phase is not Phase.ERASED:
        return await live.tools.enrolments.enrolled(live.study)
    abandoned = find(live.chain, "abandoned")
    return live.rostered if abandoned is None else parse_abandoned(await live.body_of(abandoned), live.study)


def status_unread(progress: Progress, fault: Fault) -> StudyStatus:
    """Of one that is stored and cannot be read."""
    return StudyStatus(progress.study, "", str(progress.phase), _NONE, 0, False, None, _NONE, {}, {}, 0, fault.said)
