"""`simulate` on a file it has never seen, with more peers than memory would hold, and on data nothing can be learnt
of."""

from __future__ import annotations

import csv
import gzip
import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve
from scipy.stats import chisquare
from typer.testing import CliRunner

from aggregator.estimator import LocallyPrivateClassifier
from aggregator.lab.classes import values_of
from aggregator.lab.cli_simulate import app
from aggregator.lab.planning.candidates import candidates
from aggregator.lab.simulation.evaluation import calibration_error
from aggregator.lab.simulation.inference import design_for, infer_study, people_of
from aggregator.lab.simulation.people import split
from aggregator.lab.simulation.run import Plan, collect
from aggregator.lab.simulation.simulate import NO_KEYS, simulate
from anon.errors import Malformed
from anon.protocols.resolve import resolve
from tests.support.draws import as_seeded
from tests.support.protocols import load_proposal

CENSUS = Path(__file__).parents[2] / "examples" / "census" / "study.toml"
COLUMNS = ("Person Id", "Age", "Town", "Gain", "Same", "Empty", "Grade", "Left")


def write(path: Path, rows: int = 3_000, seed: int = 1, **fixed: str) -> Path:
    """Age and town go with leaving; gain has a long tail, town has missing values."""
    generator = np.random.default_rng(seed)
    with gzip.open(path, "wt", newline="") if path.suffix == ".gz" else path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(COLUMNS)
        for number in range(rows):
            age, town = int(generator.integers(18, 90)), int(generator.integers(0, 9))
            odds = (age - 50) / 15 + (town < 3)
            row = {
                "Person Id": f"p{number}",
                "Age": str(age),
                "Town": "" if town == 8 else f"town {town}",
                "Gain": str(0 if generator.random() < 0.8 else int(np.exp(generator.uniform(5, 11)))),
                "Same": "1",
                "Empty": "",
                "Grade": str(int(generator.integers(1, 4))),
                "Left": "yes" if generator.random() < 1 / (1 + np.exp(-odds)) else "no",
            }
            writer.writerow([(row | fixed)[name] for name in COLUMNS])
    return path


def test_a_study_is_inferred_from_the_file(tmp_path: Path) -> None:
    found = infer_study(write(tmp_path / "a.csv.gz"), "left", ["yes"], 1.0)
    features = {feature.name: feature for feature in found.proposal.features}
    assert set(features) == {"age", "town", "gain", "grade"}
    assert features["age"].kind == "numeric" and features["age"].range == (18.0, 89.0)
    assert features["gain"].scale == "log" and features["age"].scale == "linear"
    assert features["town"].missing == "own" and len(features["town"].categories) == 6
    assert features["grade"].kind == "categorical"
    assert {note.split(":")[0] for note in found.notes} == {"person_id", "same", "empty"}
    assert found.proposal.learning.base_rate in {0.55, 0.6, 0.65}


@pytest.mark.slow
def test_a_long_name_is_cut_and_no_other_has_the_cut_one(tmp_path: Path) -> None:
    begins = "On a scale from 1 to 5, how do you like the course"
    rows = "".join(f"{number % 7},{number % 5 + number / 9},{'yes' if number % 3 else 'no'}\n" for number in range(60))
    file = tmp_path / "asked.csv"
    file.write_text(f'"{begins}?","{begins} on Mondays?","{begins} enough to take it again?"\n{rows}')
    label = f"{begins} enough to take it again?"
    found = infer_study(file, label, ["yes"], 1.0)
    names = [feature.name for feature in found.proposal.features]
    assert found.notes == () and len({*names, found.proposal.label.name}) == 3
    assert all(name.startswith("on_a_scale_from_1_to_5_how_do_y") and len(name) == 40 for name in names)
    assert [*people_of(found.proposal, file).columns] == names


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.slow
def test_it_is_simulated_without_a_study_file(tmp_path: Path, epsilon: float) -> None:
    data, test = write(tmp_path / "a.csv"), write(tmp_path / "b.csv", seed=2)
    arguments = ["--data", str(data), "--label", "left", "--positive", "yes", "--epsilon", str(epsilon),
                 "--test", str(test), "--trials", "3", "--peers", "20000", "--seed", "4", "--json"]  # fmt: skip
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == 0, found.output
    figures = json.loads(found.stdout)
    assert figures["peers"] == 20_000
    assert figures["auc_mean"] > 0.65
    assert figures["epsilon_record"] == pytest.approx(epsilon, abs=1e-8)
    assert "declare" in found.stderr


@pytest.mark.parametrize("missing", [["--label"], ["--positive"], ["--epsilon"]])
def test_what_is_missing_is_named(tmp_path: Path, missing: list[str]) -> None:
    given = {"--label": "left", "--positive": "yes", "--epsilon": "1"}
    arguments = [word for name, value in given.items() if name not in missing for word in (name, value)]
    found = CliRunner().invoke(app, ["--data", str(write(tmp_path / "a.csv", 50)), *arguments])
    assert found.exit_code != 0


def test_wrong_labels_are_refused_with_a_reason(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 50)
    with pytest.raises(Malformed, match="no column"):
        infer_study(path, "gone", ["yes"], 1.0)
    with pytest.raises(Malformed, match="--positive"):
        infer_study(path, "left", ["maybe"], 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "fixed", "lowest", "highest"), [
    (1.0, {"Left": "yes"}, 0.5, 0.5), (4.0, {"Left": "no"}, 0.0, 0.0), (0.001, {}, 0.35, 0.65),
    (1.0, {"Town": ""}, 0.55, 0.85), (4.0, {"Grade": "2", "Town": "x"}, 0.7, 0.85),
])
def test_degenerate_files_end_in_a_model_or_a_refusal(
    tmp_path: Path, epsilon: float, fixed: dict[str, str], lowest: float, highest: float
) -> None:
    """The AUC of seed 1, with room for another version's draws; age alone reaches .78 without noise."""
    path = write(tmp_path / "a.csv", 500, **fixed)
    if fixed.get("Left") == "no":
        with pytest.raises(Malformed, match="--positive"):
            infer_study(path, "left", ["yes"], epsilon)
        return
    proposal = infer_study(path, "left", ["yes"], epsilon).proposal
    people = people_of(proposal, path)
    result = simulate(proposal, people, 3, 1, people, ceilings=False)
    assert lowest <= result.auc_mean <= highest
    if fixed.get("Left") == "yes":
        assert result.ece_mean < 0.2
    if epsilon == 0.001:
        assert result.ece_mean < 0.25, "a confident model of noise"


@pytest.mark.slow
def test_ten_million_peers_take_no_memory(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", 2_000)
    proposal = infer_study(path, "left", ["yes"], 1.0).proposal
    people = people_of(proposal, path)
    tracemalloc.start()
    result = simulate(proposal, people, 1, 1, people, peers=10_000_000, ceilings=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.peers == 10_000_000
    assert result.auc_mean > 0.75
    assert peak < 20_000_000


def test_resampled_peers_are_spread_over_surveys_as_weights_say(tmp_path: Path) -> None:
    """Chi-square over surveys at a false-alarm rate of 1e-6, and every peer asked exactly once."""
    path = write(tmp_path / "a.csv", 2_000)
    proposal = infer_study(path, "left", ["yes"], 1.0).proposal
    people = people_of(proposal, path)
    plan = Plan.of(resolve(proposal, NO_KEYS, 0, lambda below: 0))
    found = collect(plan, people, np.random.default_rng(5), resampled=100_000)
    weights = {row.survey: row.weight for row in plan.manifest.slots[0].rows}
    asked = {one.survey: one.n for one in found.train}
    expected = np.array([weights[survey] for survey in asked], dtype=float)
    seen = np.array(list(asked.values()), dtype=float)
    assert seen.sum() == pytest.approx(100_000 * expected.sum() / sum(weights.values()), rel=0.01)
    assert chisquare(seen, expected / expected.sum() * seen.sum()).pvalue > 1e-6


def test_calibration_error_by_hand() -> None:
    """Ten tenths of one person each: |.5 - 0| and |.5 - 1| average to .5; right chances give 0."""
    truth = np.array([False, True] * 5)
    assert calibration_error(np.full(10, 0.5), truth) == pytest.approx(0.5)
    assert calibration_error(truth.astype(float), truth) == 0.0


def spread(path: Path, head: str, rows: list[str]) -> Path:
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


def test_nothing_is_inferred_from_rows_that_are_scored_on(tmp_path: Path) -> None:
    """Ranges, categories, a missing value and the base rate that the held out rows alone show, whatever the seed."""
    for seed in range(5):
        held = set(split(200, 0.3, as_seeded(seed))[1].tolist())
        rows = [
            f"{1000 if row in held else row % 50},{'rare' if row in held else 'abc'[row % 3]},"
            f"{'' if row in held else row % 40 + 0.5},{'yes' if row in held or row % 4 == 0 else 'no'}"
            for row in range(200)
        ]
        path = spread(tmp_path / f"{seed}.csv", "hours,town,grade,left", rows)
        found = infer_study(path, "left", ["yes"], 1.0, 0.3, seed)
        hours, town, grade = found.proposal.features
        assert (
            hours.range[1] < 50 and "rare" not in town.categories and town.missing != "own" and grade.missing != "own"
        )
        assert found.proposal.learning.base_rate in {0.2, 0.25, 0.3}
        assert found.held_out is not None and len(found.held_out) == 60 and found.held_out.labels.all()
        everything = infer_study(path, "left", ["yes"], 1.0)
        assert everything.proposal.features[0].range[1] == 1000 and everything.held_out is None


def test_the_command_infers_after_the_split(tmp_path: Path) -> None:
    """One row has a range of its own; where it is held out, its number is clamped and not learned from."""
    path = spread(
        tmp_path / "a.csv", "hours,left", [f"{row % 20},{'yes' if row % 20 > 9 else 'no'}" for row in range(100)]
    )
    arguments = [
        "--data",
        str(path),
        "--label",
        "left",
        "--positive",
        "yes",
        "--epsilon",
        "8",
        "--trials",
        "1",
        "--seed",
        "3",
        "--json",
    ]
    half = CliRunner().invoke(app, [*arguments, "--test-share", "0.5"])
    assert json.loads(half.stdout)["peers"] == 50 and json.loads(half.stdout)["scored"] == 50


@pytest.mark.parametrize(("name", "numbers"), [
    ("member", [*range(1, 201)]), ("student", [17 + 7919 * row % 100_003 for row in range(200)]),
    ("user_id", [row // 2 * 31 for row in range(200)]), ("nr", [*range(5000, 5060)]),
])
def test_numbers_that_name_people_are_no_feature(tmp_path: Path, name: str, numbers: list[int]) -> None:
    rows = [f"{number},{row % 7},{'yes' if row % 3 else 'no'}" for row, number in enumerate(numbers)]
    found = infer_study(spread(tmp_path / "a.csv", f"{name},day,left", rows), "left", ["yes"], 1.0)
    assert [one.name for one in found.proposal.features] == ["day"]
    assert any(note.startswith(f"{name}: left out (its numbers tell rows apart") for note in found.notes)


@pytest.mark.parametrize("numbers", [
    [row * row % 97 for row in range(200)], [row + 0.5 for row in range(200)], [1000 * row for row in range(40)],
])
def test_other_numbers_stay_features(tmp_path: Path, numbers: list[float]) -> None:
    rows = [f"{number},{'yes' if row % 3 else 'no'}" for row, number in enumerate(numbers)]
    found = infer_study(spread(tmp_path / "a.csv", "hours,left", rows), "left", ["yes"], 1.0)
    assert [one.name for one in found.proposal.features] == ["hours"]


def test_one_of_many_numbers_is_no_label_and_a_bound_is(tmp_path: Path) -> None:
    rows = [f"{row % 7},{row % 300}" for row in range(600)]
    path = spread(tmp_path / "a.csv", "day,score", rows)
    with pytest.raises(Malformed, match="one number against 299 others; --positive '>=100'"):
        infer_study(path, "score", ["100"], 1.0)
    for spelled, share in ((">=100", 200 / 300), ("> 100", 199 / 300), ("<100", 100 / 300), ("<=100", 101 / 300)):
        found = infer_study(path, "score", [spelled], 1.0)
        assert found.people.labels.mean() == pytest.approx(share)
        assert people_of(found.proposal, path, found.bound).labels.tolist() == found.people.labels.tolist()
    with pytest.raises(Malformed, match="or one bound"):
        infer_study(path, "score", [">=100", "7"], 1.0)
    few = infer_study(path, "day", ["3"], 1.0)
    assert few.people.labels.mean() == pytest.approx(1 / 7, abs=0.01)
    assert infer_study(path, "score", ["100", "101"], 1.0).people.labels.sum() == 4
    words = spread(tmp_path / "b.csv", "day,town", ["1,a", "2,b", "3,a"])
    with pytest.raises(Malformed, match="column of numbers"):
        infer_study(words, "town", [">=2"], 1.0)


def test_pairs_are_asked_by_one_rule_everywhere() -> None:
    """Without a study file, by the planner and by the estimator: not of more than 150 pairs."""
    for features in (1, 2, 17, 18, 19, 36):
        few = 1 < features <= 17
        assert (design_for(features, 4.0).subset_size == 2) == few
        assert LocallyPrivateClassifier(4.0)._design(features, 4.0).subset_size == design_for(features, 4.0).subset_size
        study = load_proposal(CENSUS)
        many = evolve(study, features=tuple(evolve(study.features[0], name=f"f{number}") for number in range(features)))
        assert any("two features" in one.name for one in candidates(many, 1.0)) == few
    assert design_for(5, 3.9).subset_size == 1


@pytest.mark.slow
def test_a_label_of_several_values_is_a_study_for_each(tmp_path: Path) -> None:
    """They divide the people, and hold out the same ones. A grade that age decides ranks people in each study."""
    drawn = np.random.default_rng(5)
    rows = [(age, "ABC"[min(age // 30, 2)]) for age in map(int, drawn.integers(0, 90, 900))]
    data = tmp_path / "grades.csv"
    data.write_text("age,Grade\n" + "".join(f"{age},{grade}\n" for age, grade in rows), "utf-8")
    arguments = ["--data", str(data), "--label", "Grade", "--classes", "--epsilon", "4", "--trials", "2", "--seed", "1"]
    found = CliRunner().invoke(app, [*arguments, "--json"])
    assert found.exit_code == 0, found.output
    figures = json.loads(found.stdout)
    assert set(figures["classes"]) == {"A", "B", "C"}
    assert {one["peers"] for one in figures["classes"].values()} == {210} and figures["auc_macro"] > 0.6
    assert {one["scored"] for one in figures["classes"].values()} == {270}
    said = CliRunner().invoke(app, arguments)
    assert "3 studies of 210 peers each" in said.stdout and "values' mean AUC" in said.stdout
    wrong = CliRunner().invoke(app, [*arguments, "--positive", "A"])
    assert wrong.exit_code == 2 and "--classes" in wrong.output
    with pytest.raises(Malformed, match="--classes expects 2 to 20 values, got 90"):
        values_of(data, "age")
