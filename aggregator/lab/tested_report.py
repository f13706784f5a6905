"""The report of a published study, made again from its documents, with what the model does on a test set."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from aggregator.intake.workers import Workers
from aggregator.lab.simulation.people import People, people_from_csv
from aggregator.lab.simulation.rule import evaluated
from aggregator.protocols.contract import part_of
from aggregator.protocols.installed import PROTOCOLS
from aggregator.report.page import render
from aggregator.rules.counters import Traffic
from aggregator.rules.lifecycle import Phase
from aggregator.study.learn import TranscriptCounts
from aggregator.study.live import LiveStudy
from anon.errors import Malformed, Refused, because
from anon.protocols.contract import Place
from anon.storage.private_files import new_private_text
from anon.study.manifest import Manifest


async def full_report(live: LiveStudy, workers: Workers, people: str = "", person: str | None = None) -> str:
    """The page. `people`: the text of a CSV file of test people with labels, "" for none; `person` names the column
    that tells them apart when they have several rows.

    Raises `Refused` before the model is published and after packets were erased, `Malformed` for other columns.
    """
    if live.phase is not Phase.PUBLISHED:
        raise Refused(f"the study is {live.state}; a report needs a published model and its transcripts")
    found = await live.counted()
    if found is None:
        raise Refused("the transcripts are not there any more; the retention has passed")
    traffic = await live.traffic()
    documents = await live.round_documents()
    return await workers.run(
        report_from_counts,
        live.manifest_bytes,
        documents,
        found,
        traffic,
        people,
        person,
    )


def report_from_counts(
    manifest_bytes: bytes,
    documents: Mapping[Place, bytes],
    found: TranscriptCounts,
    traffic: Traffic,
    people: str,
    person: str | None,
) -> str:
    """The same from what was counted, for a worker process."""
    manifest = PROTOCOLS.manifest(manifest_bytes)
    learned = part_of(manifest).learn(manifest, documents, found.tallies)
    tested = read_people(manifest, people, person) if people.strip() else None
    evaluation = evaluated(learned.model, manifest, tested, traffic.enrolled) if tested and learned.model else None
    return render(manifest, learned, traffic, found.accepted, evaluation, found.unreadable)


def read_people(manifest: Manifest, text: str, person: str | None = None) -> People:
    """Test people from the text of a CSV file, their features and labels found by the study's own queries."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "people.csv"
        with new_private_text(path) as file:
            file.write(text)
        # tables, features and label are all that is read, and a manifest has them as a proposal has
        return people_from_csv(manifest, path, person)


def read_test_file(path: Path) -> str:
    """The text of a CSV file of test people. Raises `Malformed` when it cannot be read."""
    try:
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise Malformed(f"{path}: cannot be read as UTF-8 text{because(error)}; check the path") from None
