"""`study plan`: made-up people as stated, the right design at small and large budgets, a file that reads back."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from attrs import evolve
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from typer.testing import CliRunner

from aggregator.cli.study import app
from aggregator.planning.candidates import candidates
from aggregator.planning.plan import choose_design, survey_of_choices
from aggregator.planning.population import Assumptions, made_up
from aggregator.planning.writing import chart, to_toml
from aggregator.simulation.run import categories
from anon.errors import Malformed
from anon.study import load_proposal, parse_proposal
from anon.study.proposal import OnePacket

CENSUS = Path(__file__).parents[2] / "examples" / "census"
STUDY = load_proposal(CENSUS / "study.toml")
MANY = Assumptions(people=20_000, test=5_000)
FEW = Assumptions(people=4_000, test=2_000)


@pytest.mark.parametrize("name", ["study.toml", "paper.toml"])
def test_a_written_study_reads_back(name: str) -> None:
    proposal = load_proposal(CENSUS / name)
    assert parse_proposal(to_toml(proposal)) == proposal


def test_made_up_people_are_as_declared() -> None:
    """Shares within 5 standard errors of 20,000 people; the best ranking within .03 of the stated signal."""
    features = tuple(evolve(one, shares=(0.3, 0.7)) if one.name == "sex" else one for one in STUDY.features)
    proposal = evolve(STUDY, features=features, learning=evolve(STUDY.learning, base_rate=0.2))
    aucs = []
    for seed in range(4):
        people, others = made_up(proposal, MANY, np.random.default_rng(seed))
        assert len(people) == 20_000
        assert people.labels.mean() == pytest.approx(0.2, abs=0.015)
        found = categories(proposal.features, people, {"age": (50.0,), "hours_per_week": (50.0,)})
        assert np.mean(found["sex"] == 0) == pytest.approx(0.3, abs=0.017)
        ranks = np.column_stack([others.columns[one.name].index for one in proposal.features])
        fitted = LogisticRegression(max_iter=500).fit(ranks[:2500], others.labels[:2500])
        aucs.append(roc_auc_score(others.labels[2500:], fitted.decision_function(ranks[2500:])))
    assert np.mean(aucs) == pytest.approx(Assumptions().signal, abs=0.03)


def test_bits_for_small_budgets_and_tables_for_large_ones() -> None:
    small = choose_design(STUDY, 20_000, 0.3, 1, 8, FEW)
    large = choose_design(STUDY, 20_000, 6.0, 1, 3, FEW)
    bits = {one.design: one.auc for one in small.forecasts}
    assert max(auc for name, auc in bits.items() if "bit" in name) > max(
        auc for name, auc in bits.items() if "8 bins" in name
    )
    assert "tables" in large.best.design
    assert large.best.auc > small.best.auc
    assert isinstance(large.proposal.design, OnePacket)
    assert large.proposal.learning.classifier == "additive"


def test_it_is_deterministic_and_never_tries_pairs_on_a_small_budget() -> None:
    first, second = (choose_design(STUDY, 1_000, 0.25, 5, 1, FEW) for _ in range(2))
    assert first == second
    assert not any("two features" in one.name for one in candidates(STUDY, 0.25))
    assert any("two features" in one.name for one in candidates(STUDY, 1.0))


def test_impossible_numbers_are_refused() -> None:
    with pytest.raises(Malformed):
        choose_design(STUDY, 1, 1.0, 1)


def test_the_chart_is_well_formed() -> None:
    drawn = chart(survey_of_choices(STUDY, [500, 2_000], [0.25, 0.5], 1, 1))
    root = ElementTree.fromstring(drawn)
    assert sum(one.tag.endswith("polyline") for one in root.iter()) == 2
    assert sum(one.tag.endswith("circle") for one in root.iter()) == 4


def test_the_command_writes_a_study_that_lints(tmp_path: Path) -> None:
    target = tmp_path / "planned.toml"
    arguments = ["plan", str(CENSUS / "study.toml"), "--epsilon", "0.5", "--cohort", "2000", "--only",
                 "--populations", "1", "--write", str(target)]  # fmt: skip
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == 0, found.output
    planned = load_proposal(target)
    assert isinstance(planned.design, OnePacket)
    assert planned.design.epsilon == 0.5
    assert CliRunner().invoke(app, ["lint", str(target)]).exit_code == 0
    assert CliRunner().invoke(app, arguments).exit_code != 0, "it never overwrites"
