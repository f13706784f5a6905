"""`simulate` of exact sums: real effects are found, shuffled labels show nothing."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from aggregator.lab.planning.forecast import forecast
from aggregator.lab.planning.outlook import outlook_of
from aggregator.lab.simulation.linear_sums import reals_of_people, summed_checks, summed_gradients, summed_products
from aggregator.lab.simulation.people import people_from_values
from aggregator.lab.simulation.ruled_sums import rule_sums
from aggregator.lab.simulation.run import categories
from aggregator.lab.simulation.simulate import NO_KEYS, simulate
from aggregator.lab.simulation.sums import learn_summed
from anon.errors import Refused
from anon.protocols.consent_words import declared
from anon.protocols.contract import Record
from anon.protocols.resolve import resolve
from anon.protocols.sum.design import summed_of
from anon.protocols.sum.rule import residuals, rule_of
from anon.protocols.sum.shared import SumShared
from anon.protocols.sum.standing import RoundSum, told_before
from anon.protocols.sum.vector import vector_of
from anon.protocols.vectors.checks import CheckSums
from anon.protocols.vectors.gradient import GradientSums
from anon.protocols.vectors.moments import MomentSums
from anon.sharing.drafts import drafted
from anon.study.manifest import Manifest
from tests.docs.repository import ROOT
from tests.support.protocols import load_proposal, parse_proposal
from tests.support.sums import GRADIENT, MARGINALS, MOMENTS, RULE, SLEEP, TABLES, sum_study, tellers

STUDY = parse_proposal(sum_study(TABLES, tellers(entries=False)))


def people(count: int, seed: int = 5):
    spring = np.random.default_rng(seed)
    age, sleep = spring.uniform(0, 100, count).tolist(), spring.uniform(0, 12, count).tolist()
    tired = (spring.random(count) < np.where(np.array(sleep) <= 6, 0.8, 0.2)).tolist()
    rows = zip(age, sleep, tired, strict=True)
    return people_from_values(STUDY.label, (({"age": a, "sleep": s, "cups": "some"}, int(t)) for a, s, t in rows))


@pytest.mark.slow
def test_an_effect_is_found_and_the_cost_is_told() -> None:
    found = simulate(STUDY, people(600), 5, 1, people(2000, 6))
    assert 0.75 < found.auc_mean <= 0.82 and found.shown == 1
    assert found.figures()["cost"] == found.cost and "central epsilon 1 at delta" in found.cost
    assert "epsilon_record" not in found.figures()


@pytest.mark.slow
def test_a_study_that_draws_rows_is_simulated_by_the_model_beside_them() -> None:
    found = simulate(parse_proposal(sum_study(MARGINALS, tellers(entries=False))), people(600), 5, 1, people(2000, 6))
    assert 0.75 < found.auc_mean <= 0.82 and found.shown == 1 and "central epsilon 1 at delta" in found.cost


@pytest.mark.slow
def test_shuffled_labels_show_nothing() -> None:
    found = simulate(STUDY, people(600), 40, 1, people(2000, 6), shuffle_labels=True, ceilings=False)
    assert abs(found.auc_mean - 0.5) < 4 * found.auc_se and found.shown < 0.3


@pytest.mark.slow
def test_more_peers_than_people_are_drawn_with_replacement() -> None:
    assert simulate(STUDY, people(200), 2, 1, people(500, 6), peers=900, ceilings=False).peers == 900


def linear(design: str) -> Manifest:
    study = parse_proposal(sum_study(design, tellers(entries=False)))
    return resolve(drafted(study), NO_KEYS, 1)


@pytest.mark.parametrize("design", [f"{MOMENTS}\nnorm = 0.5", GRADIENT])
@pytest.mark.slow
def test_vectors_of_all_people_at_once_are_those_of_members(design: str) -> None:
    """Of products to the bit. Of gradients each entry to the bit for these people, at weights of a later round."""
    study, everyone = linear(design), people(60)
    survey, weights = study.surveys[0], [70_000, -30_000, 50_000][: 1 + len(study.features)]
    records = [
        Record(
            {name: column.values[column.index[at]] for name, column in everyone.columns.items()},
            int(everyone.labels[at]),
        )
        for at in range(len(everyone))
    ]
    vectors = [vector_of(study, survey, record, weights if design == GRADIENT else ()) for record in records]
    summed = summed_of(study, survey)
    if isinstance(summed, MomentSums):
        found = summed_products(summed, study.label.name, everyone)
    else:
        assert isinstance(summed, GradientSums)
        reals = reals_of_people(summed.columns, study.label.name, everyone)
        found = summed_gradients(summed, reals, everyone.labels, weights)
        check = study.surveys[-1]
        design_of_check = summed_of(study, check)
        assert isinstance(design_of_check, CheckSums)
        checked = np.sum([vector_of(study, check, record, weights) for record in records], axis=0)
        assert summed_checks(design_of_check, reals, everyone.labels, weights).tolist() == checked.tolist()
    assert found.tolist() == np.array(vectors).sum(axis=0).tolist() and any(found)


def test_sums_of_a_rule_of_all_people_at_once_are_those_of_members() -> None:
    """To the bit for these people, in each of three rounds, with next to no noise."""
    study, everyone = linear(RULE), people(60)
    records = [
        Record(
            {name: column.values[column.index[at]] for name, column in everyone.columns.items()},
            int(everyone.labels[at]),
        )
        for at in range(len(everyone))
    ]
    held = categories(study.features, everyone, {})
    rows, rule = np.column_stack([held[feature.name] for feature in study.features]), rule_of(study)
    none = [Fraction(1, 10**9)] * 3
    found = rule_sums(rule, residuals(rule.cards), none, 2, rows, everyone.labels, np.random.default_rng(1))
    sums: list[RoundSum] = []
    for survey, one in zip(study.surveys, found, strict=True):
        told = told_before(study, survey, sums)
        vectors = [vector_of(study, survey, record, told) for record in records]
        assert one[0] == tuple(np.array(vectors).sum(axis=0).tolist()) and any(one[0])
        sums.append(RoundSum(*one))


@pytest.mark.slow
def test_a_rule_is_simulated_and_shuffled_labels_show_nothing() -> None:
    """Staff are right about sleep here, and age says nothing. With shuffled labels a model still ranks by belief."""
    study = parse_proposal(sum_study(RULE, tellers(entries=False)))
    found = simulate(study, people(1500), 5, 1, people(2000, 6))
    assert 0.75 < found.auc_mean <= 0.82 and found.shown == 1 and "central epsilon 1" in found.cost
    few = simulate(study, people(60), 5, 1, people(2000, 6), ceilings=False)
    assert few.rule_auc and few.auc_mean > few.rule_auc - 0.01 and few.shown < 0.5
    shuffled = simulate(study, people(1500), 40, 1, people(2000, 6), shuffle_labels=True, ceilings=False)
    assert shuffled.shown is not None and shuffled.shown < 0.15


def test_the_one_figure_of_a_rule_is_the_size_from_which_it_can_be_shown_wrong() -> None:
    """Forecast, plan and consent have the same; no figure of tables stands beside it."""
    study, manifest = parse_proposal(sum_study(RULE, tellers(entries=False))), linear(RULE)
    few, many = outlook_of(study, manifest, 60), outlook_of(study, manifest, 50_000)
    least = f"about {SumShared().enough(manifest):,}"
    said = " ".join(few.sentences()) if few else ""
    assert said.startswith(
        f"With 60 people the model ranks about as your own belief. Its answers may add nothing but noise. From {least}"
    )
    assert "of 100" not in said and "AUC" not in said and few is not None and few.verdict == "small"
    assert many is not None and many.verdict == "enough" and f"That takes {least} people" in " ".join(many.sentences())
    assert least.replace(",", "") in " ".join(map(str, declared(manifest))), "consent says the same"
    with pytest.raises(Refused, match=f"made-up people lean as staff expect.*own belief.*{least} people"):
        forecast(manifest.to_bytes(), 100)


@pytest.mark.slow
@pytest.mark.parametrize("design", [MOMENTS, GRADIENT])
def test_linear_designs_are_simulated(design: str) -> None:
    study = parse_proposal(sum_study(design, tellers(entries=False)))
    found = simulate(study, people(800), 6, 1, people(2000, 6))
    assert 0.7 < found.auc_mean <= found.auc_ceiling_binned + 3 * found.auc_se + 0.01, found
    assert found.shown == 1 and "central epsilon" in found.cost and "shown" in found.figures()
    shuffled = simulate(study, people(800), 30, 1, people(2000, 6), shuffle_labels=True, ceilings=False)
    assert abs(shuffled.auc_mean - 0.5) < 4 * shuffled.auc_se and (shuffled.shown or 0) <= 0.1


def test_a_number_that_is_predicted_is_refused_with_the_next_step() -> None:
    with pytest.raises(Refused, match=r"predicts the number sleep\. Leave out design\.target"):
        simulate(parse_proposal(sum_study(SLEEP, tellers(entries=False))), people(10), 1, 1, people(10))
    with pytest.raises(Refused, match="`anonml simulate` gives the figures"):
        learn_summed(linear(MOMENTS), people(10), np.random.default_rng(1))


@pytest.mark.slow
def test_the_example_can_be_looked_at() -> None:
    study = load_proposal(ROOT / "examples" / "census" / "sums.toml")
    manifest = resolve(drafted(study), NO_KEYS, 1)
    assert [len(manifest.surveys), manifest.surveys[0].m] == [1, 40]
    study = load_proposal(ROOT / "examples" / "census" / "rows.toml")
    survey = resolve(drafted(study), NO_KEYS, 1).surveys[0]
    assert [survey.kind, len(survey.parameters), survey.parameters[0], survey.m] == ["marginals", 9, 2000, 134]
