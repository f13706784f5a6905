"""The demo's parts that can be looked at without running a study: its clock, its study file, its published reader."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import threading
from importlib import resources
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from aggregator.lab.simulation.simulate import NO_KEYS
from anon.protocols.resolve import resolve
from examples import parties, scenes
from examples.census import data as census_data
from examples.clock import Party
from examples.closing import closing, kept_report
from examples.schedule import THROUGH_TOR, WEEKS, Schedule, scheduled, with_tellers
from examples.serving import until_each_opens
from examples.waiting import waiting
from tests.support.command_line import as_if_started_at
from tests.support.protocols import parse_proposal

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
TEXTS = {
    "template": resources.files("aggregator.study").joinpath("study.toml").read_text("utf-8"),
    "census": (ROOT / "examples/census/study.toml").read_text("utf-8"),
    "paper": (ROOT / "examples/census/paper.toml").read_text("utf-8"),
    "sum": (ROOT / "examples/census/sum.toml").read_text("utf-8"),
    "mooc": (ROOT / "examples/mooc/study.toml").read_text("utf-8"),
    **{name: parties.study_text(name, 2000) for name in parties.RECORDS},
}


@pytest.mark.parametrize("schedule", [WEEKS, THROUGH_TOR], ids=["weeks", "through Tor"])
@pytest.mark.parametrize("name", TEXTS)
def test_every_study_file_takes_the_demos_schedule(name: str, schedule: Schedule) -> None:
    before = parse_proposal(TEXTS[name])
    after = parse_proposal(scheduled(TEXTS[name], schedule, 2000))
    assert after.schedule.enrol == schedule.enrol
    assert after.cohort.minimum == 1000
    assert (after.features, after.label, after.design, after.tellers) == (
        before.features,
        before.label,
        before.design,
        before.tellers,
    )


def test_tellers_get_the_places_where_they_are() -> None:
    proposal = parse_proposal(TEXTS["sum"])
    after = parse_proposal(with_tellers(TEXTS["sum"], proposal, ["127.0.0.1:7001", "127.0.0.1:7002"]))
    assert [(teller.name, teller.address) for teller in after.tellers] == [
        ("Computing Centre", "127.0.0.1:7001"), ("Student Council", "127.0.0.1:7002")
    ]  # fmt: skip
    assert (after.features, after.design, after.schedule) == (proposal.features, proposal.design, proposal.schedule)


@pytest.mark.parametrize("schedule", [WEEKS, THROUGH_TOR], ids=["weeks", "through Tor"])
async def test_the_aggregator_is_due_whenever_a_window_opens(schedule: Schedule) -> None:
    """Peers run further ahead than the margin of a window. No peer passes an instant at which the aggregator is due."""
    proposal = parse_proposal(scheduled(TEXTS["census"], schedule, 300))
    manifest, dues = resolve(proposal, NO_KEYS, 0), list[float]()

    class Recording(Party):
        def __init__(self) -> None:
            """Of no clock."""

        async def until(self, due: float) -> None:
            dues.append(due)

    await until_each_opens(Recording(), manifest)
    assert dues == sorted({survey.window.opens for survey in manifest.surveys}) and len(dues) > 1


@pytest.mark.parametrize("schedule", [WEEKS, THROUGH_TOR], ids=["weeks", "through Tor"])
def test_everybody_comes_while_enrolment_is_open(schedule: Schedule) -> None:
    assert all(0 < come < 0.95 * schedule.enrol for come in schedule.comes(1000, 0.0, seed=3))


FIGURES = {
    "peers": 2000, "joined": 2000, "enrolled": 2000, "packets": 1, "sent": 2000, "accepted": 2000, "included": 2000,
    "title": "Who earns [more]?", "lost": 0,
    "missed": 0, "refused": {}, "audited": True, "most_spent": 2.0, "epsilon_record": 2.0, "local": True,
    "auc": 0.8561, "auc_ceiling_binned": 0.8749, "auc_ceiling_raw": 0.8931, "shown": True,
}


def said(
    figures: dict[str, object], report: Path | None = None, kept: Path | None = None, example: str = "census"
) -> str:
    console = Console(width=200, record=True, file=StringIO())
    console.print(closing({**FIGURES, **figures}, report, example, kept))
    return " ".join(console.export_text().replace("│", " ").split())


def test_the_last_word_is_in_words(tmp_path: Path) -> None:
    text = said({}, tmp_path / "report.html")
    assert text.startswith("╭") and "“Who earns [more]?”: 2,000 people trained one model" in text
    assert "its report lacks this figure" in text
    assert "Collecting the data would add 0.037" in text and "would add" not in said({"auc_ceiling_raw": 0.8561})
    assert "AUC 0.856" in text and "86 times in 100" in text and "AUC 0.893 from everybody's raw data" in text
    assert "epsilon 2." in text and "move by at most a factor of 7.39" in text
    assert str(tmp_path / "report.html") in text and "anonml study init" in text and "{" not in text


def test_the_last_word_has_the_audit_of_a_kept_study() -> None:
    kept = Path("my demo") / "published"
    assert f"anonml aggregator audit '{kept}', or drop" in said({}, kept=kept)
    assert "verify.html" in said({}, kept=kept) and "anonml demo census --keep FOLDER" in said({})
    assert "anonml demo 'my study.toml' --data FILE --keep FOLDER" in said({}, example="my study.toml")


@pytest.mark.parametrize("example", ["census", "sum", "mooc", "averaging"])
def test_the_last_word_offers_the_other_demos(example: str) -> None:
    offered = said({}, example=example).partition("Try next:")[2]
    assert f"demo {example} " not in offered and offered.count(" demo ") == 4


def test_its_commands_can_be_typed_where_the_program_was_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = as_if_started_at(tmp_path / "my env" / "anonml", monkeypatch)
    text = said({})
    assert f"'{program}' demo census --keep FOLDER" in text and f"'{program}' demo mooc" in text
    monkeypatch.setenv("PATH", str(program.parent))
    assert "my env" not in said({})


CONTROLLED = {"control": FIGURES | {"shown": False, "auc": 0.52}}


def test_the_price_of_sums_is_told_with_its_condition() -> None:
    text = said(
        {
            "local": False, "price": "rho 0.1 (central)", "promise": "it holds if one of [bold]Ann[/] and Bo is honest",
            "unit": "person", "noise_of": "the tellers",
        }
    )
    assert "rho 0.1 (central)" in text and "[bold]Ann[/]" in text and "tellers added the noise" in text
    assert "nobody has to be trusted" not in text and "epsilon 2" not in text


@pytest.mark.parametrize("figures", [{"shown": False}, {"shown": False} | CONTROLLED])
def test_no_accuracy_is_told_that_the_report_calls_chance(figures: dict[str, object]) -> None:
    text = said(figures)
    assert "not shown to know anything" in text and "AUC" not in text and "0.8" not in text and "0.52" not in text
    assert "AUC" not in said(CONTROLLED).partition("The control:")[2]


def test_a_report_is_kept_beside_earlier_ones(tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    report.write_text("first", "utf-8")
    kept = [kept_report(report, "demo-census", tmp_path).name for _ in range(3)]
    assert kept == ["anonml-demo-census.html", "anonml-demo-census-2.html", "anonml-demo-census-3.html"]


def test_a_wait_writes_lines_where_nobody_sees_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("examples.waiting.LINE_SECONDS", 0.01)
    console, looks = Console(width=80, record=True, file=StringIO()), iter([1, 3, 4, 9])
    seen = threading.Event()

    def done() -> float:
        value = next(looks, None)
        seen.set() if value is None else None
        return 9 if value is None else value

    with waiting(console, "peers enrol", 4, done):
        assert seen.wait(30)
    assert console.export_text().splitlines()[:4] == [
        f"  peers enrol... {share:>4}" for share in ("25%", "75%", "100%", "100%")
    ]


def test_without_the_census_data_people_are_made_up_and_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(census_data, "WHEEL", "no-such-distribution")
    scene = scenes.census(50, 3, None)
    assert scene.made_up and len(scene.peers) == 50 and len(scene.test) == scenes.CENSUS_TEST_ROWS
    assert scene.peers == scenes.census(50, 3, None).peers != scenes.census(50, 4, None).peers
    assert 0.15 < scene.test.labels.mean() < 0.3


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
