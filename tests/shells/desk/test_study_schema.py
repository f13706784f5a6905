"""The JSON Schema of study files: it accepts what is accepted, refuses what a key alone makes wrong, and names every
key."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import attrs
import pytest
from jsonschema import Draft202012Validator

from anon.errors import Malformed
from anon.study.proposal import Proposal
from anon.study.schema import _SECTIONS, EDITOR_LINE, FILE, WORDS, study_schema
from tests.support.protocols import PROTOCOLS, parse_proposal

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[3]
TEMPLATE = ROOT / "aggregator/study/study.toml"
STUDIES = [TEMPLATE, *sorted((ROOT / "examples").rglob("*.toml"))]


def _faults(text: str) -> list[str]:
    found = Draft202012Validator(study_schema(PROTOCOLS.designs)).iter_errors(tomllib.loads(text))
    return [fault.message for fault in found]


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(study_schema(PROTOCOLS.designs))


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_every_study_here_fits(path: Path) -> None:
    assert _faults(path.read_text()) == []


def test_every_key_has_its_sentence_and_no_other() -> None:
    keys = {one.name for one in attrs.fields(Proposal)} - {"parts"}
    keys |= {f"{cls.__name__}.{one.name}" for cls in _SECTIONS for one in attrs.fields(cls)}
    keys.remove("Translation.language")  # the name of its table
    assert set(WORDS) == keys
    for design in PROTOCOLS.designs.values():
        assert set(design.words) == {one.name for one in attrs.fields(design.section)} >= set(design.bounds)


@pytest.mark.parametrize(("before", "after"), [
    ("version = 1", "version = 2"),
    ("epsilon = 2.0", "epsilon = 20.5"),
    ("epsilon = 2.0", "epsilon = 0"),
    ("epsilon = 2.0", 'epsilon = "2"'),
    ('kind = "one-packet"', 'kind = "two-packets"'),
    ('kind = "numeric"', 'kind = "number"'),
    ('mechanism = "auto"', 'mechanism = "laplace"'),
    ('enrol = "7d"', 'enrol = "7 days"'),
    ('enrol = "7d"', "enrol = 7"),
    ("minimum = 100", "minimum = 1"),
    ('name = "hours"', 'name = "Hours"'),
    ('person = ["hours", "forum", "left_course"]', "person = []"),
    ('positive = [1, "yes"]', "positive = []"),
    ('admission = "invite"', 'admission = "invites"'),
    ('purpose = """', 'purposes = """'),
    ("binning_share = 0.1", "binning_share = 0.9"),
    ('retention = "90d"', "retention = 90"),
])
def test_what_a_key_alone_makes_wrong_is_refused_by_both(before: str, after: str) -> None:
    text = TEMPLATE.read_text()
    assert before in text and _faults(text) == []
    wrong = text.replace(before, after, 1)
    assert _faults(wrong)
    with pytest.raises(Malformed):
        parse_proposal(wrong)


def test_choices_and_defaults_are_those_of_the_classes() -> None:
    learning: dict[str, Any] = study_schema(PROTOCOLS.designs)["$defs"]["Learning"]["properties"]
    assert learning["classifier"]["enum"] == ["soft", "logistic", "tree", "additive"]
    assert learning["classifier"]["default"] == "soft" and learning["score_share"]["default"] == 0.2
    assert study_schema(PROTOCOLS.designs)["$defs"]["Cohort"]["required"] == ["minimum"]


def test_init_writes_the_schema_where_the_editor_line_says(tmp_path: Path) -> None:
    run = [sys.executable, "-m", "anonml", "study"]
    subprocess.run([*run, "init", str(tmp_path / "study.toml")], cwd=ROOT, check=True, capture_output=True)
    first = (tmp_path / "study.toml").read_text().splitlines()[0]
    assert first == EDITOR_LINE and (tmp_path / FILE).is_file()
    printed = subprocess.run([*run, "schema"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert json.loads(printed) == study_schema(PROTOCOLS.designs) == json.loads((tmp_path / FILE).read_text())
