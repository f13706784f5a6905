"""The fast form of the paper's pipeline equals the library: its estimators exactly, its trials in distribution."""

from __future__ import annotations

import math

import numpy as np
import pytest
from attrs import evolve

from aggregator.lab.simulation.draws import perturbed_counts
from aggregator.lab.simulation.evaluation import evaluate
from aggregator.lab.simulation.run import Plan
from aggregator.lab.simulation.simulate import NO_KEYS, learn_once
from aggregator.protocols.additive import results as learned
from aggregator.protocols.additive import scoring
from aggregator.protocols.additive.reconstruct import Histogram, SurveyTally, base_rate, projected, reconstruct
from aggregator.protocols.histogram import classifiers
from anon.ldp import build, nano
from anon.protocols.resolve import resolve
from benchmarks.paper import fitting
from benchmarks.paper.pipeline import Setting, auc_and_f1, find_medians, random_layout, run
from benchmarks.paper.studies import at_record_level
from tests.lab.paper_people import made_up

pytestmark = pytest.mark.slow


def tallies(name: str, bits: int, surveys: int, seed: int) -> list[SurveyTally]:
    generator = np.random.default_rng(seed)
    m = 2 ** (bits + 1)
    mechanism = build(name, m, nano(1.0))
    found = []
    for survey in range(surveys):
        truth = generator.multinomial(int(generator.integers(200, 3000)), generator.dirichlet(np.ones(m)))
        counts = perturbed_counts(mechanism, truth.astype(np.int64), generator)
        names = tuple(f"f{place}" for place in range(bits))
        found.append(SurveyTally(survey, names, (2,) * bits, mechanism, counts, int(truth.sum())))
    return found


@pytest.mark.parametrize("name", ["krr", "rappor", "pq"])
@pytest.mark.parametrize("bits", [1, 3])
def test_estimators_equal_the_librarys(name: str, bits: int) -> None:
    given = tallies(name, bits, 6, seed=bits)
    histograms = [reconstruct(tally) for tally in given]
    noise = fitting.Noise.of(given[0].mechanism)
    counts = np.array([[tally.counts for tally in given]])
    found = fitting.estimate(noise, counts, np.array([[tally.n for tally in given]]))
    rate = base_rate(histograms)
    assert fitting.base_rates(found) == pytest.approx([rate], abs=1e-9)
    weight = fitting.equivalent(found, np.array([rate]))
    shares = fitting.project(found.shares)
    contrast = fitting.logistic(shares[0], weight[0])
    for place, histogram in enumerate(histograms):
        assert found.shares[0, place] == pytest.approx(histogram.shares, abs=1e-12)
        assert shares[0, place] == pytest.approx(projected(histogram), abs=1e-12)
        assert weight[0, place] == pytest.approx(classifiers.equivalent_reports(histogram, rate), rel=1e-6)
        expected = classifiers.logistic(histogram, rate, frozenset())
        # Scikit-learn stops at a gradient of 1e-4.
        assert contrast[place] == pytest.approx(expected, rel=5e-3, abs=2e-3)
        cells = histogram.by_label
        votes = expected > 0
        at = np.array(rate)
        assert fitting.f1_of(votes, cells, at) == pytest.approx(scoring.f1_score(votes, cells, rate))
        assert fitting.auc_of(expected, cells, at) == pytest.approx(scoring.auc_score(expected, cells, rate))
        assert fitting.accuracy_of(votes, cells) == pytest.approx(scoring.accuracy(votes, cells))


def test_draws_have_the_librarys_mean_and_variance() -> None:
    """20,000 draws of each: means within 5 and variances within 6 standard errors; about 1 false alarm in 10,000."""
    truth = np.array([500, 20, 0, 180])
    generator = np.random.default_rng(3)
    for name in ("krr", "rappor", "pq"):
        mechanism = build(name, 4, nano(0.8))
        ours = fitting.perturbed(fitting.Noise.of(mechanism), np.tile(truth, (20_000, 1)), generator)
        theirs = np.array([perturbed_counts(mechanism, truth, generator) for _ in range(20_000)])
        deviation = np.sqrt((ours.var(axis=0) + theirs.var(axis=0)) / 20_000)
        assert np.all(np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) < 5 * deviation)
        assert ours.var(axis=0) == pytest.approx(theirs.var(axis=0), rel=6 * math.sqrt(4 / 20_000))


@pytest.mark.parametrize("size", [1, 2])
def test_trials_are_distributed_as_the_librarys(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Means of 120 and 400 trials within 4 standard errors of each other: 1 false alarm in 16,000.

    The paper publishes its vote whatever chance says of it."""
    monkeypatch.setattr(learned, "ABSTAIN_FROM", 2.0)
    data = made_up()
    design = evolve(data.papers_study.design, partitions=4, subset_size=size, mechanism="krr")
    study = at_record_level(evolve(data.papers_study, design=design), 4.0)
    plan = Plan.of(resolve(study, NO_KEYS, 0, lambda below: 0))
    people, test = data.papers_people
    generator = np.random.default_rng(11)
    theirs = np.array(
        [evaluate(learn_once(plan, people, generator, equal_parts=True).model, test).auc for _ in range(120)]
    )
    places = {feature.name: place for place, feature in enumerate(study.features)}
    kinds = {survey.survey: survey for survey in plan.manifest.surveys}
    layout = [
        [tuple(places[name] for name in kinds[row.survey].features) for row in slot.rows]
        for slot in plan.manifest.slots
        if kinds[slot.rows[0].survey].kind == "histogram"
    ]
    setting = Setting(4, size, 2, epsilon=1.0, mechanism="krr")
    ours = run(data.population, setting, 400, 12, layout).auc
    error = math.hypot(theirs.std(ddof=1) / math.sqrt(len(theirs)), ours.std(ddof=1) / math.sqrt(len(ours)))
    assert abs(theirs.mean() - ours.mean()) < 4 * error
    assert ours.std() == pytest.approx(theirs.std(), rel=0.4)


def test_algorithm_1_finds_the_median_where_there_is_no_noise_to_speak_of() -> None:
    population = made_up().population
    exact = find_medians(population, Setting(), np.random.default_rng(1))
    found = find_medians(population, Setting(epsilon=12.0), np.random.default_rng(1))
    assert set(found) == {0, 1}
    assert found[0] == pytest.approx(exact[0], abs=0.5)
    assert found[1] == pytest.approx(exact[1], abs=0.15)


def test_subsets_of_a_partition_do_not_overlap_and_are_drawn_anew() -> None:
    generator = np.random.default_rng(2)
    first, second = (random_layout(11, Setting(20, 3, 2), generator) for _ in range(2))
    assert first != second
    for one, other in zip(*first, strict=True):
        assert not set(one) & set(other)
        assert len(one) == len(other) == 3


def test_more_epsilon_learns_more_and_none_is_the_most() -> None:
    population = made_up().population
    means = [run(population, Setting(4, 1, 2, e), 60, 4).auc.mean() for e in (0.05, 0.5, 4.0, None)]
    assert 0.45 < means[0] < means[1] < means[2]
    assert means[2] == pytest.approx(means[3], abs=0.03)


def test_ties_count_half() -> None:
    auc, f1 = auc_and_f1(np.array([1.0, 1.0, -1.0]), np.array([1, 1, 0]), np.array([0, 1, 2]))
    assert auc == pytest.approx((2 * 2 + 2 * 0.5) / 6)
    assert f1 == pytest.approx(2 * 2 / (3 + 2))


@pytest.mark.parametrize("subsets", [1, 2])
def test_accountings_are_those_of_the_library(subsets: int) -> None:
    data = made_up(60)
    study = evolve(data.papers_study, design=evolve(data.papers_study.design, subsets_per_partition=subsets))
    plan = resolve(at_record_level(study, 0.5 * (subsets + 2)), NO_KEYS, 0, lambda below: 0)
    setting = Setting(20, 1, subsets, epsilon=0.5)
    assert setting.epsilon_record(2) == pytest.approx(plan.epsilon / 1e9, abs=1e-6)
    assert setting.epsilon_eq6(2) == pytest.approx(plan.epsilon_per_attribute / 1e9, abs=1e-6)


def test_a_feature_of_three_categories_is_refused() -> None:
    data = made_up(60)
    with pytest.raises(ValueError, match="two categories"):
        type(data.population).of(data.our_study, *data.our_people)


def test_histogram_needs_no_peers() -> None:
    empty = fitting.estimate(
        fitting.Noise(0.7, 0.3, True), np.zeros((1, 2, 4), dtype=np.int64), np.zeros((1, 2), dtype=np.int64)
    )
    assert fitting.base_rates(empty) == pytest.approx([0.5])
    assert not fitting.equivalent(empty, np.array([0.5])).any()
    assert isinstance(
        reconstruct(SurveyTally(0, ("a",), (2,), build("krr", 4, nano(1.0)), np.zeros(4, dtype=np.int64), 0)), Histogram
    )
