"""The demo's parts that can be looked at without running a study: its clock, its study file, its published reader."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

from anon.study import parse_proposal
from examples.demo import Clock, _with_sections

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
TEXTS = {
    "template": resources.files("aggregator.cli").joinpath("study.toml").read_text("utf-8"),
    "census": (ROOT / "examples/census/study.toml").read_text("utf-8"),
    "paper": (ROOT / "examples/census/paper.toml").read_text("utf-8"),
    "mooc": (ROOT / "examples/mooc/study.toml").read_text("utf-8"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_every_study_file_takes_the_demos_schedule(name: str) -> None:
    clock = Clock.of(2000, preparing=0.0)
    before = parse_proposal(TEXTS[name])
    after = parse_proposal(_with_sections(TEXTS[name], clock.sections(2000)))
    assert after.schedule.enrol == clock.enrol
    assert after.cohort.minimum == 1000
    assert (after.features, after.label, after.design) == (before.features, before.label, before.design)


def test_a_slow_machine_gets_longer_windows_within_bounds() -> None:
    idle, busy, stuck = (Clock.of(2000, preparing=seconds) for seconds in (5.0, 30.0, 600.0))
    assert idle.enrol < busy.enrol < stuck.enrol <= 3 * idle.enrol
    assert idle.enrol + 3 * idle.settle + idle.binning + idle.collect < 220


def test_through_tor_it_goes_by_how_fast_circuits_are_here() -> None:
    idle, busy, stuck = (Clock.through_tor(300, preparing=8.0, reaching=seconds) for seconds in (6.0, 16.0, 600.0))
    assert 1.9 * idle.collect < busy.collect < stuck.collect <= 3 * idle.collect
    assert idle.collect < Clock.through_tor(300, preparing=18.0, reaching=6.0).collect
    assert idle.enrol + 3 * idle.settle + idle.binning + idle.collect < 480  # with what comes before, under ten minutes


@pytest.mark.soak
def test_a_pilot_on_synthetic_people_as_the_readme_says(tmp_path: Path) -> None:
    def anonml(*words: str) -> str:
        call = [sys.executable, "-m", "anonml", *words]
        return subprocess.run(call, cwd=ROOT, check=True, capture_output=True, text=True, timeout=400).stdout

    study, pilot, figures = tmp_path / "study.toml", tmp_path / "pilot.csv", tmp_path / "out.json"
    anonml("study", "init", str(study))
    anonml("study", "synthesize", str(study), "--output", str(pilot))
    with pilot.open(encoding="utf-8") as stream:
        assert len(list(csv.reader(stream))) == 501
    anonml("demo", str(study), "--data", str(pilot), "--peers", "30", "--json", str(figures))
    found = json.loads(figures.read_text("utf-8"))
    assert (found["enrolled"], found["accepted"], found["lost"]) == (30, 30, 0)
