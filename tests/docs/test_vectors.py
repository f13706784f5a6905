"""The vectors in docs/vectors: this program agrees with each case, and the command writes the same bytes again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.vectors.__main__ import FOLDER, main
from benchmarks.vectors.made import Case, read
from benchmarks.vectors.verdicts import ASKED, verdict

LEAST, LEAST_FAILING = 500, 0.6
FILES = sorted(path.stem for path in FOLDER.glob("*.json"))
LONG = {"packets", "sums", "tokens"}
"""The kinds that take most of the time."""


@pytest.mark.parametrize("kind", [pytest.param(one, marks=pytest.mark.slow) if one in LONG else one for one in FILES])
def test_this_program_agrees_with_every_case(kind: str) -> None:
    wrong = [case.name for case in read(FOLDER / f"{kind}.json").cases if not _agrees(kind, case)]
    assert wrong == []


def _agrees(kind: str, case: Case) -> bool:
    found = verdict(kind, case)
    return found is None if case.why else found == case.gives


def test_there_are_enough_cases_and_most_must_fail() -> None:
    cases = [case for kind in FILES for case in read(FOLDER / f"{kind}.json").cases]
    assert len(cases) >= LEAST and sum(bool(case.why) for case in cases) >= LEAST_FAILING * len(cases)
    assert set(FILES) == ASKED.keys()


def test_the_page_names_every_file() -> None:
    page = (FOLDER / "README.md").read_text("utf-8")
    assert re.findall(r"\]\(([a-z-]+)\.json\)", page) and sorted(re.findall(r"\]\(([a-z-]+)\.json\)", page)) == FILES


@pytest.mark.slow
def test_the_command_writes_the_same_bytes(tmp_path: Path) -> None:
    main(tmp_path)
    made = {path.stem: path.read_bytes() for path in tmp_path.iterdir()}
    assert made == {kind: (FOLDER / f"{kind}.json").read_bytes() for kind in FILES}
