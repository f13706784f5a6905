"""Lint, plan and forecast say in words whether a group is large enough, and one design has one figure in all of
them."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from attrs import evolve
from typer.testing import CliRunner

from aggregator.desk.editor import lint_text, with_outlook
from aggregator.lab import cli_plan
from aggregator.lab.planning import trials
from aggregator.lab.planning.forecast import forecast
from aggregator.lab.planning.outlook import BeliefOutlook, Outlook, outlook_of
from aggregator.lab.planning.population import Assumptions, tells
from aggregator.lab.planning.trials import worlds_of
from aggregator.lab.simulation.simulate import NO_KEYS
from anon.errors import Refused
from anon.protocols.histogram.ruled import enough_for
from anon.protocols.resolve import resolve
from anon.study.manifest import Manifest
from anonml import application, wiring
from tests.support.protocols import load_proposal, parse_proposal
from tests.support.world import directed

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "aggregator" / "study" / "study.toml"


@pytest.fixture(autouse=True)
def few_populations(monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of the populations: the figures are coarser, and still the same wherever they are told."""
    monkeypatch.setattr(trials, "POPULATIONS", 10)


def published(text: str) -> Manifest:
    return resolve(parse_proposal(text), NO_KEYS, 0, lambda below: 0)


def _json(*words: str) -> dict[str, object]:
    done = CliRunner().invoke(application("study"), [*words, "--json"], obj=wiring(), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_lint_names_the_texts_that_a_language_lacks(tmp_path: Path) -> None:
    file, text = tmp_path / "study.toml", EXAMPLE.read_text("utf-8")
    file.write_text(text.replace("version = 1\n", 'version = 1\nlanguage = "en"\n', 1) + '\n[texts.de]\ntitle = "X"\n')
    said = CliRunner().invoke(application("study"), ["lint", str(file)], obj=wiring(), env={"COLUMNS": "200"}).stdout
    assert "texts.de: left out: purpose," in said and "who reads de gets the main text there" in said


def test_lint_says_in_words_that_a_group_is_too_small_and_how_many_would_do() -> None:
    few = CliRunner().invoke(application("study"), ["lint", str(EXAMPLE)], obj=wiring(), env={"COLUMNS": "200"}).stdout
    assert "100 people are too few for this study at epsilon 2." in few and "people would be enough" in few
    assert "can be published" in few.splitlines()[0] and "are too few" in few.splitlines()[1]
    assert "the odds about somebody move by at most a factor of 7.39" in few
    enough = _json("lint", str(EXAMPLE))["people_enough"]
    assert isinstance(enough, int) and 200 <= enough <= 15_000
    assert _json("lint", str(EXAMPLE), "--cohort", "130")["people_enough"] == enough, (
        "a figure of the study, not of the size asked about"
    )
    many = (
        CliRunner()
        .invoke(
            application("study"), ["lint", str(EXAMPLE), "--cohort", str(enough)], obj=wiring(), env={"COLUMNS": "200"}
        )
        .stdout
    )
    assert f"{enough:,} people are enough for this study at epsilon 2." in many and "too few" not in many


def test_a_planned_design_has_one_figure_in_plan_lint_and_forecast(tmp_path: Path) -> None:
    target = tmp_path / "planned.toml"
    planned = _json("plan", str(EXAMPLE), "--epsilon", "2", "--cohort", "400", "--only", "--write", str(target))
    best, outlook = planned["best"], planned["outlook"]
    assert isinstance(best, dict) and isinstance(outlook, dict) and best["auc"] == outlook["expected_auc"]
    linted = _json("lint", str(target), "--cohort", "400")
    same = ("people", "expected_auc", "expected_low", "expected_high", "shown", "verdict", "people_enough")
    assert {key: linted[key] for key in same} == outlook
    found = lint_text(target.read_text("utf-8"))
    assert found.manifest is not None
    assert forecast(found.manifest.to_bytes(), 400).outlook.figures() == outlook


def test_the_grid_of_a_plan_repeats_the_figure_of_the_asked_design(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_plan, "EPSILONS", (2.0,))
    planned = _json("plan", str(EXAMPLE), "--epsilon", "2", "--cohort", "400", "--populations", "1")
    around, best = planned["around"], planned["best"]
    words = ["plan", str(EXAMPLE), "--epsilon", "2", "--cohort", "400", "--populations", "1", "--only"]
    said = CliRunner().invoke(application("study"), words, obj=wiring(), env={"COLUMNS": "200"}).stdout
    assert isinstance(best, dict) and [line.split("│")[1].strip() for line in said.splitlines() if "│ →" in line] == [
        f"→ {best['design']}"
    ]
    assert said.index(cli_plan.WHY[:60]) < said.index("made-up studies")
    assert isinstance(around, list) and isinstance(best, dict)
    assert [one for one in around if (one["cohort"], one["epsilon"]) == (400, 2)] == [best]


def test_the_desk_finds_the_same_and_can_have_it_from_another_process() -> None:
    judged = with_outlook(pickle.loads(pickle.dumps(lint_text(EXAMPLE.read_text("utf-8")))))
    proposal = load_proposal(EXAMPLE)
    assert judged.manifest is not None and judged.outlook == outlook_of(proposal, judged.manifest)


def test_people_are_made_up_only_where_there_is_something_to_find() -> None:
    """Of two features one in nine populations has none that goes with the label."""
    proposal = load_proposal(EXAMPLE)
    assert all(tells(world.people[0]) for world in worlds_of(proposal, 40, Assumptions()))
    silent = evolve(proposal, features=(evolve(proposal.features[1], categories=("never",), missing="own"),))
    assert len(worlds_of(silent, 2, Assumptions(people=500, test=100))) == 2


@pytest.mark.parametrize(("shown", "enough", "says"), [
    (0.9, 100, "100 people are enough"), (0.6, 200, "100 people may be too few"),
    (0.85, 70, "This group is at the edge: at about 70 people"), (0.1, 800, "About 800 people would be enough"),
    (0.0, None, "No group that we tried was large enough"),
])
def test_the_verdict_in_words(shown: float, enough: int | None, says: str) -> None:
    said = " ".join(Outlook(100, 1.0, 0.6, 0.5, 0.7, shown, enough).sentences())
    assert says in said and ("raise epsilon" in said) == (shown < 0.9)


def test_lint_says_of_a_local_rule_the_size_that_consent_says(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(directed("rule"), "utf-8")
    linted, manifest = with_outlook(lint_text(file.read_text("utf-8"))), published(directed("rule"))
    enough = enough_for(manifest)
    assert linted.outlook == BeliefOutlook(manifest.cohort.minimum, 2.0, enough)
    assert _json("lint", str(file))["people_enough"] == enough
    with pytest.raises(Refused, match=f"From about {enough:,} people on"):
        forecast(manifest.to_bytes(), 2)
