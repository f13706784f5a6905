"""Evaluate the study's queries over a cohort's logs exactly as peers do: import, sandbox, total map to categories."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from attrs import frozen

from anon.protocols.categories import Value, feature_category, label_category
from anon.study.proposal import Proposal
from examples.mooc.generate import Student
from peer.data.evaluate_here import evaluate_here
from peer.data.importing import import_file
from peer.data.snapshot import Snapshot

STUDY = Path(__file__).with_name("study.toml")
AS_OF = 1_735_689_600
"""2025-01-01, after the course. The queries of this study do not depend on it."""


@frozen
class Record:
    """One student's raw values, and their categories with the study's declared cuts; label 1 is dropout."""

    values: dict[str, Value]
    categories: tuple[int, ...]
    label: int


def evaluate(proposal: Proposal, students: Iterable[Student]) -> list[Record]:
    """One record per student, in order. Only for studies all of whose cuts are declared; raises ValueError else."""
    if proposal.binned:
        raise ValueError(f"{', '.join(proposal.binned)}: cuts are found by the study; declare them to evaluate it here")
    with tempfile.TemporaryDirectory() as folder:
        return [_record(proposal, _snapshot(proposal, student, Path(folder))) for student in students]


def snapshots(proposal: Proposal, students: Iterable[Student]) -> Iterator[tuple[Mapping[str, Value], Value]]:
    """Each student's raw values and label value, as a peer would find them."""
    with tempfile.TemporaryDirectory() as folder:
        for student in students:
            taken = _snapshot(proposal, student, Path(folder))
            yield taken.values, taken.label


def _snapshot(proposal: Proposal, student: Student, folder: Path) -> Snapshot:
    log, database = folder / "own.jsonl", folder / "own.sqlite"
    log.write_text("".join(line + "\n" for line in student.lines), encoding="utf-8")
    import_file(database, log, proposal.tables[0].name, mode="replace")
    tables = {table.name: table.columns for table in proposal.tables}
    return evaluate_here(database, proposal.features, proposal.label, AS_OF, tables=tables)


def _record(proposal: Proposal, taken: Snapshot) -> Record:
    values = dict(taken.values)
    found = tuple(feature_category(feature, values[feature.name], feature.cuts) for feature in proposal.features)
    return Record(values, found, label_category(proposal.label, taken.label))
