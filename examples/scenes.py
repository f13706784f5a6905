"""The facts about an example that a demo needs: the study's text, one line per peer, and people to score the model
on."""

from __future__ import annotations

import csv
import gzip
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from aggregator.lab.simulation.people import People, people_from_rows, people_from_values
from aggregator.protocols.installed import PROTOCOLS
from anon.errors import Malformed
from anon.protocols.categories import Value
from anon.protocols.contract import Record
from anon.study import Proposal
from anon.study.given import NONE_GIVEN
from examples.census import data as census_data
from examples.census.generate import people
from examples.mooc.features import STUDY as MOOC_STUDY
from examples.mooc.features import snapshots
from examples.mooc.generate import generate, write_cohort

HERE = Path(__file__).parent
CENSUS_STUDIES = {"census": "study.toml", "sum": "sum.toml"}
MOOC_TEST_STUDENTS = 1000
CENSUS_TEST_ROWS = 10_000


@frozen
class Scene:
    """`peers`: one dictionary per peer for `examples.hosting`, without its link. `train` and `test` never leave.

    `given`: the study's public documents by name. `held`: where a peer has many records, those of each.
    """

    name: str
    study_text: str
    peers: tuple[dict[str, Any], ...]
    train: People
    test: People
    made_up: bool = False
    given: Mapping[str, bytes] = NONE_GIVEN
    held: tuple[tuple[Record, ...], ...] = ()


def census(peers: int, seed: int, data: Path | None, example: str = "census") -> Scene:
    """Adult, or people made up in its likeness: each peer holds one row; test rows are held by nobody.

    `example`: census, or sum for the same questions in exact sums with two tellers.
    """
    text = (HERE / "census" / CENSUS_STUDIES[example]).read_text("utf-8")
    proposal = PROTOCOLS.proposal(text)
    rows, made_up = census_rows(data, peers, seed)
    own, others = census_data.split(rows, peers, CENSUS_TEST_ROWS, seed)
    return evolve(_of_rows(example, proposal, text, own, others), made_up=made_up)


def census_rows(data: Path | None, wanted: int, seed: int) -> tuple[list[census_data.Row], bool]:
    """The rows to draw from. Where no data are named and none are installed, so many and those of the test are made up,
    which the second value tells."""
    try:
        return census_data.load(data), False
    except census_data.DataUnavailable as unavailable:
        if data is not None:
            raise Malformed(str(unavailable)) from None
        return people(wanted + CENSUS_TEST_ROWS, seed), True


def mooc(peers: int, seed: int, folder: Path, shuffle_labels: bool) -> Scene:
    """Generated students: each peer imports its own tracking log; another cohort is scored."""
    text = MOOC_STUDY.read_text("utf-8")
    proposal = PROTOCOLS.proposal(text)
    files = write_cohort(folder, peers, seed, shuffle_labels=shuffle_labels)
    table = proposal.tables[0].name
    lines = tuple({"table": table, "file": str(file)} for file in files)
    train = _people(proposal, snapshots(proposal, generate(peers, seed, shuffle_labels=shuffle_labels)))
    test = _people(
        proposal, snapshots(proposal, generate(MOOC_TEST_STUDENTS, seed + 1_000_000, shuffle_labels=shuffle_labels))
    )
    return Scene("mooc", text, lines, train, test)


def own_study(study: Path, data: Path, peers: int, seed: int) -> Scene:
    """Any study that reads one table, with a CSV of one row per person: a pilot before anyone is asked."""
    text = study.read_text("utf-8")
    proposal = PROTOCOLS.proposal(text, study.name)
    rows = read_rows(data)
    random.Random(seed).shuffle(rows)
    share = min(peers, len(rows) * 7 // 10)
    return _of_rows(study.stem, proposal, text, rows[:share], rows[share:])


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Rows of a CSV file, numbers as numbers, empty as None. Raises `Malformed`."""
    if not path.is_file():
        raise Malformed(f"{path}: no such file; give --data the path of a CSV file")
    opener: Any = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", newline="", encoding="utf-8-sig") as stream:
        return [{name: _cell(text) for name, text in row.items()} for row in csv.DictReader(stream)]


def _cell(text: str | None) -> int | float | str | None:
    if text is None or not text.strip():
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip()


def _of_rows(
    name: str, proposal: Proposal, text: str, own: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]
) -> Scene:
    table = proposal.tables[0]
    lines = tuple(
        {"table": table.name, "columns": list(table.columns), "rows": [[row.get(column) for column in table.columns]]}
        for row in own
    )
    return Scene(name, text, lines, people_from_rows(proposal, own), people_from_rows(proposal, others))


def _people(proposal: Proposal, found: Iterable[tuple[Mapping[str, Value], Value]]) -> People:
    return people_from_values(proposal.label, found)


def write_people(scene: Scene, folder: Path, parts: int) -> list[Path]:
    """The peers divided among `parts` files for as many processes: every `parts`-th one."""
    files = []
    for part in range(parts):
        path = folder / f"people-{part}.jsonl"
        with path.open("w", encoding="utf-8") as stream:
            for person in scene.peers[part::parts]:
                stream.write(json.dumps(person) + "\n")
        files.append(path)
    return files
