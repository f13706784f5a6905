"""The facts of a study that staff may see at any time."""

from __future__ import annotations

from attrs import frozen

from aggregator.intake.counters import STEP
from aggregator.rules.faults import Fault
from aggregator.rules.lifecycle import Phase
from aggregator.store.studies import Progress
from aggregator.study.live import LiveStudy

CLOSED = frozenset({Phase.LEARNING, Phase.PUBLISHED, Phase.ABANDONED, Phase.ENDED, Phase.ERASED})
"""Phases in which no packet comes any more."""


@frozen
class StudyStatus:
    """`accepted` packets and `packet_answers` are in steps of 50 until collection has closed.

    `fault`: why it does not go on, and what to do; empty while it does. `left_out`: packets found damaged, in words.
    """

    study: bytes
    title: str
    phase: str
    enrolled: int
    minimum: int
    ends: float | None
    accepted: int
    enrolment_answers: dict[str, int]
    packet_answers: dict[str, int]
    documents: int
    fault: str = ""
    left_out: tuple[str, ...] = ()


async def status_of(live: LiveStudy, fault: str) -> StudyStatus:
    """Of a study that is loaded. `fault`: as the serving process told it."""
    closed = live.phase in CLOSED
    accepted = sum((await live.accepted()).values())
    enrolments, packets = await live.answers.all()
    return StudyStatus(
        study=live.study,
        title=live.manifest.title,
        phase=live.state,
        enrolled=await live.tools.enrolments.enrolled(live.study),
        minimum=live.manifest.cohort.minimum,
        ends=live.ends,
        accepted=accepted if closed else accepted // STEP * STEP,
        enrolment_answers=enrolments.exact(),
        packet_answers=packets.exact() if closed else packets.coarse(),
        documents=len(live.chain),
        fault=live.trouble or fault,
        left_out=await live.left_out(),
    )


def status_unread(progress: Progress, fault: Fault) -> StudyStatus:
    """Of one that is stored and cannot be read."""
    return StudyStatus(progress.study, "", str(progress.phase), 0, 0, None, 0, {}, {}, 0, fault.said)
