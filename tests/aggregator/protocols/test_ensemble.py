"""From tallies to a model: scores, the two ensembles, degenerate inputs, and what liars can move."""

from __future__ import annotations

import numpy as np
import pytest

from aggregator.lab.simulation.draws import perturbed_counts
from aggregator.protocols.additive.reconstruct import SurveyTally
from aggregator.protocols.histogram.ensemble import Subject, learn
from anon.ldp import build, nano
from anon.protocols.models.tables import from_json
from anon.study.features import Feature, Label, Learning

LABEL = Label("left", "You left.", "SELECT left FROM log", (1,), (0,), "negative")
FEATURES = (
    Feature("age", "numeric", "Your age.", "SELECT age FROM log", "own", range=(0.0, 100.0), bins=2),
    Feature("sex", "categorical", "Your sex.", "SELECT sex FROM log", "f", categories=("f", "m")),
)
SUBJECT = Subject("ab" * 32, "Who leaves?", LABEL, FEATURES, {"age": (40.0,)})
TRUTH = {("age",): [40, 5, 20, 25, 8, 2], ("sex",): [45, 5, 23, 27]}
CARDS = {"age": 3, "sex": 2}


def tallies(epsilon, n, seed, names=(("age",), ("sex",)), mechanism="krr"):
    generator = np.random.default_rng(seed)
    found = []
    for survey, features in enumerate(names):
        truth = np.array(TRUTH[features], dtype=np.int64) * n // 100
        built = build(mechanism, len(truth), nano(epsilon))
        counts = perturbed_counts(built, truth, generator)
        cards = tuple(CARDS[name] for name in features)
        found.append(SurveyTally(survey, features, cards, built, counts, int(truth.sum())))
    return found


@pytest.mark.parametrize("ensemble", ["soft", "vote"])
@pytest.mark.parametrize("classifier", ["soft", "logistic", "tree"])
def test_a_clear_study_is_learned_and_survives_json(ensemble, classifier):
    learned = learn(
        SUBJECT, tallies(6.0, 20_000, 1), tallies(6.0, 5_000, 2), Learning(classifier, ensemble, "auc", 0.2)
    )
    model = from_json(learned.model.to_json())
    assert model == learned.model
    assert learned.base_rate == pytest.approx(0.32, abs=0.02)
    assert model.decide({"age": 1, "sex": 1})
    assert not model.decide({"age": 0, "sex": 0})
    assert model.probability({"age": 1, "sex": 1}) > model.probability({"age": 1, "sex": 0})
    # sex: P(m | left) = 27/32, P(m | stayed) = 23/68, so AUC = 1/2 + (27/32 - 23/68)/2.
    assert learned.partitions[1].scores.auc == pytest.approx(0.5 + (27 / 32 - 23 / 68) / 2, abs=0.03)
    assert learned.partitions[0].shares == pytest.approx([0.4, 0.05, 0.2, 0.25, 0.08, 0.02], abs=0.03)


def test_the_vote_is_equation_2():
    learned = learn(SUBJECT, tallies(6.0, 20_000, 1), tallies(6.0, 5_000, 2), Learning("logistic", "vote", "f1", 0.2))
    first, second = learned.model.tables
    assert (first.votes[1], second.votes[0]) == (1, 0)
    expected = (1 + (first.f1 - second.f1) / (first.f1 + second.f1)) / 2
    assert learned.model.probability({"age": 1, "sex": 0}) == pytest.approx(expected)
    assert learned.model.decide({"age": 1, "sex": 0}) == (first.f1 >= second.f1)


def test_soft_pools_surveys_of_a_subset_and_the_vote_keeps_them_apart():
    train = tallies(3.0, 5_000, 1, names=(("age",), ("sex",), ("age",)))
    pooled = learn(SUBJECT, train, [], Learning("soft", "soft", "f1", 0.2))
    voting = learn(SUBJECT, train, [], Learning("soft", "vote", "f1", 0.2))
    assert [part.surveys for part in pooled.partitions] == [(0, 2), (1,)]
    assert [part.surveys for part in voting.partitions] == [(0,), (1,), (2,)]
    assert pooled.partitions[0].n == 10_000


@pytest.mark.parametrize("mechanism", ["krr", "pq", "rappor"])
def test_the_same_tallies_give_the_same_bytes(mechanism):
    once, again = (
        learn(
            SUBJECT, tallies(1.0, 3_000, 3, mechanism=mechanism), tallies(1.0, 800, 4, mechanism=mechanism), Learning()
        )
        for _ in range(2)
    )
    assert once.model.to_json() == again.model.to_json()


@pytest.mark.parametrize("ensemble", ["soft", "vote"])
@pytest.mark.parametrize("classifier", ["soft", "logistic", "tree"])
def test_degenerate_inputs_end_in_the_base_rate(ensemble, classifier):
    learning = Learning(classifier, ensemble, "f1", 0.2)
    nobody = learn(SUBJECT, tallies(1.0, 0, 1), tallies(1.0, 0, 2), learning)
    assert nobody.base_rate == 0.5
    assert nobody.model.probability({"age": 0, "sex": 0}) <= 0.5
    assert learn(SUBJECT, [], [], learning).model.probability({"age": 0, "sex": 0}) == 0.5
    built = build("krr", 4, nano(8.0))
    one_class = SurveyTally(0, ("sex",), (2,), built, np.array([600, 0, 400, 0]), 1000)
    found = learn(SUBJECT, [one_class], [one_class], learning)
    assert found.base_rate == 0.01
    assert found.model.to_json()


def test_liars_move_a_small_survey_more_where_epsilon_is_small():
    moved = {
        epsilon: learn(SUBJECT, tallies(epsilon, 20_000, 1), [], Learning()).partitions[1].influence
        for epsilon in (1.0, 4.0)
    }
    # 1 % of liars weigh about 1/(p - q) honest ones: 3.3 at epsilon 1 and 1.07 at epsilon 4 (m = 4).
    assert moved[1.0] > 1.5 * moved[4.0] > 0
    clean = learn(SUBJECT, tallies(4.0, 20_000, 1), [], Learning()).model.tables[1].log_odds
    assert moved[4.0] < max(abs(value) for value in clean)


def test_scores_come_from_the_scoring_cohort_alone():
    """A scoring cohort in which sex means the opposite: the classifier looks as bad there as it is."""
    train = tallies(6.0, 20_000, 1)[1]
    built = train.mechanism
    opposite = perturbed_counts(built, np.array([2300, 2700, 4500, 500]), np.random.default_rng(2))
    learned = learn(SUBJECT, [train], [SurveyTally(1, ("sex",), (2,), built, opposite, 10_000)], Learning())
    assert learned.partitions[0].scores.auc == pytest.approx(1 - (0.5 + (27 / 32 - 23 / 68) / 2), abs=0.03)
    assert learned.partitions[0].scores.reports == 10_000
    assert learn(SUBJECT, [train], [], Learning()).partitions[0].scores.auc == 0.5
