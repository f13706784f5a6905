"""The report of a published study, made again from its documents, with what the model does on a test set."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from aggregator.counters import Traffic
from aggregator.learning import learn_from_documents
from aggregator.report.evaluation import evaluate_model
from aggregator.report.page import render
from aggregator.session import Phase, rounds
from aggregator.simulation.people import People, people_from_csv
from aggregator.study import LiveStudy
from aggregator.transcript import parse_transcript
from aggregator.workers import Workers
from anon.documents import find
from anon.errors import Malformed, Refused
from anon.fingerprint import head_prints
from anon.study.manifest import Manifest, parse_manifest
from anon.study.proposal import Proposal


async def full_report(live: LiveStudy, workers: Workers, people: str = "", person: str | None = None) -> str:
    """The page. `people`: the text of a CSV file of test people with labels, "" for none; `person` names the column
    that tells them apart when they have several rows.

    Raises `Refused` before the model is published and after packets were erased, `Malformed` for other columns.
    """
    if live.phase is not Phase.PUBLISHED:
        raise Refused(f"the study is {live.phase}; a report needs a published model and its transcripts")
    transcripts = [await _body(live, "transcript", one.survey) for one in live.manifest.surveys]
    traffic = Traffic(
        await live.tools.enrolments.count(live.study),
        live.enrolment_answers.exact(),
        live.packet_answers.exact(),
        tuple(one for one in head_prints(live.chain) if one.kind != "transcript"),
    )
    thresholds = [await _body(live, "thresholds", turn) for turn in range(1, len(rounds(live.manifest)))]
    edges = await _body(live, "edges") if rounds(live.manifest) else None
    return await workers.run(
        report_from_bytes,
        live.manifest_bytes,
        thresholds,
        edges,
        live.secrets.score_value,
        transcripts,
        traffic,
        people,
        person,
    )


def report_from_bytes(
    manifest_bytes: bytes,
    thresholds: Sequence[bytes],
    edges: bytes | None,
    score_value: bytes,
    transcripts: Sequence[bytes],
    traffic: Traffic,
    people: str,
    person: str | None,
) -> str:
    """The same as one function of bytes, for a worker process."""
    manifest = parse_manifest(manifest_bytes)
    learned = learn_from_documents(manifest, thresholds, edges, score_value, transcripts)
    accepted = {survey: len(rows) for survey, rows in (parse_transcript(one, manifest.study_id) for one in transcripts)}
    evaluation = evaluate_model(learned.model, read_people(manifest, people, person)) if people.strip() else None
    return render(manifest, learned, traffic, accepted, evaluation)


def read_people(manifest: Manifest, text: str, person: str | None = None) -> People:
    """Test people from the text of a CSV file, their features and labels found by the study's own queries."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "people.csv"
        path.write_text(text, "utf-8")
        # tables, features and label are all that is read, and a manifest has them as a proposal has
        return people_from_csv(cast(Proposal, manifest), path, person)


def read_test_file(path: Path) -> str:
    """The text of a CSV file of test people. Raises `Malformed` when it cannot be read."""
    try:
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise Malformed(f"{path}: cannot be read as UTF-8 text ({type(error).__name__}); check the path") from None


async def _body(live: LiveStudy, kind: str, part: int = 0) -> bytes:
    head = find(live.chain, kind, part)
    body = None if head is None else await live.document(head.number)
    if body is None:
        raise Refused(f"{kind} {part}: not there any more; the retention has passed")
    return body
