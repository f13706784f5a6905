"""Prometheus metrics (text exposition format 0.0.4): per study, counts in steps of 50. No person and no packet is in
them.

Counts of packets and answers stay in steps also after a study has closed, so that one scrape compared with another
never shows less than 50 packets. Who enrolled is counted by the published roster then, exactly. Served on the desk's
port only, to whoever holds the token in the home's `metrics.token`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from aggregator.desk.study_view import StudyFacts
from aggregator.rules.counters import STEP
from aggregator.rules.lifecycle import Phase
from aggregator.study.status import StudyStatus

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Sample = tuple[Mapping[str, str], int]


def _phases(studies: Sequence[StudyFacts]) -> tuple[str, ...]:
    """The words of all phases, and those of the rounds in which a study is: a round's word is its protocol's."""
    fixed = [str(phase) for phase in Phase if phase is not Phase.ROUND]
    return (*fixed, *sorted({study.phase for study in studies} - set(fixed)))


def exposition(studies: Sequence[StudyFacts], unread: Sequence[StudyStatus] = (), led: bool = True) -> str:
    """All metrics. `unread`: studies that are stored and cannot be read. `led`: some process carries studies on."""
    lines: list[str] = []
    lines += _metric("anonml_led", "gauge", "1 if some process leads and carries studies on, else 0.", [({}, int(led))])
    lines += _metric("anonml_study_phase", "gauge", "The phase of each study.", [
        *(({"study": facts.study, "phase": facts.phase}, 1) for facts in studies),
        *(({"study": status.study.hex(), "phase": status.phase}, 1) for status in unread),
    ])
    lines += _metric("anonml_study_fault", "gauge", "1 while a study cannot go on or waits for a teller, else 0.", [
        *(({"study": facts.study}, int(bool(facts.fault or facts.waiting))) for facts in studies),
        *(({"study": status.study.hex()}, 1) for status in unread),
    ])
    lines += _metric("anonml_studies", "gauge", "Studies by phase.", [
        ({"phase": word}, sum(study.phase == word for study in studies)) for word in _phases(studies)
    ])
    lines += _metric("anonml_enrolled", "gauge", (
        "Members enrolled: whole steps of 50 while enrolment is open, so that 0 is fewer than 50; exact afterwards."
    ), [({"study": facts.study}, facts.enrolled.number) for facts in studies])
    lines += _metric("anonml_packets_accepted", "gauge", "Packets kept, in steps of 50; 0 once erased.", [
        ({"study": facts.study}, _step(facts.accepted.number)) for facts in studies
    ])
    lines += _metric("anonml_packet_answers", "gauge", "Answers to packets, in steps of 50.", [
        ({"study": facts.study, "word": word}, _step(number))
        for facts in studies for word, number in facts.packet_answers.items()
    ])
    lines += _metric("anonml_enrolment_answers", "gauge", "Answers to enrolments, in steps of 50.", [
        ({"study": facts.study, "word": word}, _step(number))
        for facts in studies for word, number in facts.enrolment_answers.items()
    ])
    lines += _metric("anonml_documents", "gauge", "Signed documents published.", [
        ({"study": facts.study}, facts.documents) for facts in studies
    ])
    return "\n".join(lines) + "\n"


def _step(number: int) -> int:
    return number // STEP * STEP


def _metric(name: str, kind: str, what: str, samples: Iterable[Sample]) -> list[str]:
    lines = [f"# HELP {name} {what}", f"# TYPE {name} {kind}"]
    for labels, value in samples:
        named = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        lines.append(f"{name}{{{named}}} {value}" if named else f"{name} {value}")
    return lines


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
