"""Prometheus metrics (text exposition format 0.0.4): per study, counts in steps of 50. Nobody and no packet in them.

Counts stay in steps also after a study has closed, so that one scrape compared with another never shows less than 50
packets. Served on the desk's port only, to whoever holds the token in the home's `metrics.token`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from aggregator.counters import STEP
from aggregator.desk.facts import StudyFacts
from aggregator.session import Phase

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Sample = tuple[Mapping[str, str], int]


def exposition(studies: Sequence[StudyFacts]) -> str:
    """All metrics."""
    lines: list[str] = []
    lines += _metric("anonml_studies", "gauge", "Studies by phase.", [
        ({"phase": str(phase)}, sum(one.phase == phase for one in studies)) for phase in Phase
    ])
    lines += _metric("anonml_enrolled", "gauge", "Members enrolled, in steps of 50.", [
        ({"study": one.study}, _step(one.enrolled.number)) for one in studies
    ])
    lines += _metric("anonml_packets_accepted", "gauge", "Packets kept, in steps of 50.", [
        ({"study": one.study}, _step(one.accepted.number)) for one in studies
    ])
    lines += _metric("anonml_packet_answers", "gauge", "Answers to packets since the start, in steps of 50.", [
        ({"study": one.study, "word": word}, _step(number))
        for one in studies for word, number in one.packet_answers.items()
    ])
    lines += _metric("anonml_enrolment_answers", "gauge", "Answers to enrolments since the start, in steps of 50.", [
        ({"study": one.study, "word": word}, _step(number))
        for one in studies for word, number in one.enrolment_answers.items()
    ])
    lines += _metric("anonml_documents", "gauge", "Signed documents published.", [
        ({"study": one.study}, one.documents) for one in studies
    ])
    return "\n".join(lines) + "\n"


def _step(number: int) -> int:
    return number // STEP * STEP


def _metric(name: str, kind: str, what: str, samples: Iterable[Sample]) -> list[str]:
    lines = [f"# HELP {name} {what}", f"# TYPE {name} {kind}"]
    for labels, value in samples:
        named = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        lines.append(f"{name}{{{named}}} {value}")
    return lines


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
