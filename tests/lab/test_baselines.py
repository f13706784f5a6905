"""Baselines beside a simulation: the rule of declared directions, the study of that rule, and columns that tell the
label."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from aggregator.lab.cli_simulate import app
from aggregator.lab.planning.trials import plan_of
from aggregator.lab.simulation.leaks import leaking
from aggregator.lab.simulation.people import FeatureColumn, People
from aggregator.lab.simulation.rule import declared_sum, rule_auc
from aggregator.lab.simulation.simulate import simulate
from aggregator.lab.simulation.trusted_party import trusted_party_auc
from anon.ldp import nano
from anon.protocols.categories import feature_category
from anon.protocols.histogram.ruled import DeclaredSums
from anon.study.features import Feature
from tests.support.protocols import parse_proposal
from tests.support.world import directed, study_text

RULE = directed("rule")


def crowd(count: int, going_with: float = 0.8, seed: int = 1) -> People:
    """Sex goes with the label for this share of the people; age says nothing."""
    generator = np.random.default_rng(seed)
    sexes, ages = generator.integers(2, size=count), generator.integers(60, size=count)
    labels = np.where(generator.random(count) < going_with, sexes, generator.integers(2, size=count))
    return People(
        {"sex": FeatureColumn(("Female", "Male"), sexes), "age": FeatureColumn(tuple(range(20, 80)), ages)}, labels
    )


def test_the_rule_is_the_sum_that_the_declared_score_asks_about() -> None:
    features = parse_proposal(RULE).features
    people, sums = crowd(300), DeclaredSums.of(features)
    found = declared_sum(features, people)
    for person in range(300):
        total = 0
        for feature, parts in zip(sums.features, sums.parts, strict=True):
            column = people.columns[feature.name]
            total += parts[feature_category(feature, column.values[column.index[person]], feature.cuts)]
        assert found[person] == pytest.approx(total * len(sums.features) ** 0.5 / sums.unit)


def test_a_number_without_cuts_adds_its_place_in_the_range() -> None:
    linear, log = (
        Feature("n", "numeric", "N.", "SELECT 1", missing, range=(0, 99), bins=4, scale=scale, expects=(-1,))
        for missing, scale in (("own", "linear"), (0.0, "log"))
    )
    people = People({"n": FeatureColumn((0.0, 99.0, 9.0, None, 500.0), np.arange(5))}, np.array([1, 0, 1, 0, 0]))
    assert declared_sum((linear,), people) == pytest.approx([1, -1, 1 - 2 * 9 / 99, 0, -1])
    assert declared_sum((log,), people) == pytest.approx([1, -1, 0, 1, -1])
    assert rule_auc((linear,), people) == 1.0 and rule_auc((), people) is None


@pytest.mark.parametrize(("going_with", "least", "most"), [(0.9, 0.7, 1.0), (0.0, 0.0, 0.2)])
def test_a_study_of_the_rule_is_simulated(going_with: float, least: float, most: float) -> None:
    result = simulate(parse_proposal(RULE), crowd(3000, going_with), 20, 1, ceilings=False)
    assert result.shown is not None and least <= result.shown <= most
    assert result.chance is not None and (result.chance < 0.015) == (going_with > 0)
    assert result.rule_auc is not None and (not going_with or result.auc_mean > result.rule_auc)


@pytest.mark.slow
def test_the_command_says_what_was_tested(tmp_path: Path) -> None:
    people, study = crowd(2000, 0.9), tmp_path / "study.toml"
    rows = [
        f"{people.columns['age'].values[age]},{'Male' if sex else 'Female'},{'>50K' if label else '<=50K'}"
        for age, sex, label in zip(people.columns["age"].index, people.columns["sex"].index, people.labels, strict=True)
    ]
    data = tmp_path / "people.csv"
    data.write_text("age,sex,income\n" + "\n".join(rows) + "\n")
    for text, says in (
        (RULE, "shown to beat a guess in 3 of 3 studies"),
        (study_text("bits"), "shown to beat a guess in"),
    ):
        study.write_text(text)
        arguments = [str(study), "--data", str(data), "--trials", "3", "--seed", "1"]
        said = CliRunner().invoke(app, arguments, env={"COLUMNS": "160"})
        assert says in said.stdout and "p-value" in said.stdout, said.output
        assert ("what you expect, asking nobody: AUC" in said.stdout) == (text is RULE)
        figures = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
        assert ("rule_auc" in figures) == (text is RULE)


@pytest.mark.slow
def test_a_column_that_tells_the_label_is_flagged(tmp_path: Path) -> None:
    """A number that is high for nearly all positives, a text that is the label; the others are not named."""
    generator = np.random.default_rng(2)
    rows = []
    for _ in range(600):
        left = generator.random() < 0.4
        points = generator.integers(50, 100) if left else generator.integers(0, 51)
        rows.append(
            f"{points},{'gone' if left else 'here'},{generator.integers(40) + 10 * left},{'yes' if left else 'no'}"
        )
    data = tmp_path / "people.csv"
    data.write_text("points,place,hours,left\n" + "\n".join(rows) + "\n")
    arguments = [
        "--data",
        str(data),
        "--label",
        "left",
        "--positive",
        "yes",
        "--epsilon",
        "1",
        "--trials",
        "1",
        "--seed",
        "1",
    ]
    found = CliRunner().invoke(app, [*arguments, "--json"])
    figures = json.loads(found.stdout)
    assert figures["leaks"] == ["points", "place"]
    assert 0.5 < figures["auc_ceiling_binned"] < 0.8 and 0.5 < figures["auc_ceiling_raw"] < 0.8
    assert "caution: points alone tells the label" in found.stderr and "hours alone" not in found.stderr


def test_of_few_people_no_column_is_said_to_leak() -> None:
    feature = Feature("sex", "categorical", "S.", "SELECT 1", "Male", categories=("Female", "Male"))
    people = crowd(200, 1.0)
    assert leaking((feature,), people, people) == ("sex",)
    assert leaking((feature,), people, people.take(np.arange(12))) == ()


@pytest.mark.slow
def test_a_trusted_party_comes_near_to_no_privacy_and_learns_nothing_where_nothing_is() -> None:
    study = parse_proposal(study_text("bits").replace("bins = 3", "cuts = [30, 50]"))
    telling, empty = (simulate(study, crowd(3000, share), 2, 1).auc_trusted_party for share in (0.8, 0.0))
    assert telling is not None and empty is not None
    assert 0.85 < telling < 0.92 and 0.45 < empty < 0.55


@pytest.mark.slow
def test_a_trusted_party_adds_noise_for_the_epsilon_it_is_given() -> None:
    study = parse_proposal(study_text("bits").replace("bins = 3", "cuts = [30, 50]"))
    plan, people, test = plan_of(study, 1), crowd(60), crowd(2000, seed=2)
    found = [
        trusted_party_auc(plan, nano(epsilon), people, test, np.random.default_rng(1)) for epsilon in ("0.1", "20")
    ]
    assert found[0] < found[1] - 0.1


@pytest.mark.slow
def test_a_trusted_party_has_as_many_peers_as_the_study() -> None:
    """Peers beyond the people of the file are drawn with replacement, so that the noise is as small beside them."""
    text = study_text("bits").replace("bins = 3", "cuts = [30, 50]").replace("epsilon = 2.0", "epsilon = 0.1")
    test = crowd(2000, seed=2)
    few, many = (
        simulate(parse_proposal(text), crowd(60), 1, 1, test, peers=peers).auc_trusted_party for peers in (60, 60_000)
    )
    assert few is not None and many is not None
    assert few < many - 0.1 and many > 0.85
