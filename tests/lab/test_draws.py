"""Aggregates drawn at once against every peer's own perturbation, and rows drawn against the tags' own draw.

Each chi-square test has a fixed seed and a false-alarm rate of 1e-4.
"""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chi2_contingency, chisquare

from aggregator.lab.simulation.draws import assign_rows, perturbed_counts
from anon.ldp import SCALE, RawCategory, build, from_spec, nano
from anon.protocols.sortition import draw
from anon.study.slots import Row, Slot

pytestmark = pytest.mark.slow

FALSE_ALARM = 1e-4
TRUTH = (3, 1, 2)
RUNS = 20_000


def real_counts(mechanism, generator):
    reports = [
        mechanism.perturb(RawCategory(category, 3), generator.randbytes)
        for category, count in enumerate(TRUTH)
        for _ in range(count)
    ]
    return tuple(mechanism.tally(reports))


def same_distribution(first, second):
    """The p-value of two samples of outcomes having one distribution; outcomes seen fewer than 20 times are merged."""
    together = first + second
    common = [outcome for outcome, count in together.items() if count >= 20]
    table = np.array([[sample[outcome] for outcome in common] for sample in (first, second)])
    rest = np.array([[sum(sample.values())] for sample in (first, second)]) - table.sum(axis=1, keepdims=True)
    table = np.hstack([table, rest]) if rest.sum() >= 20 else table
    return chi2_contingency(table).pvalue


@pytest.mark.parametrize("name", ["krr", "rappor", "pq"])
def test_aggregates_have_the_distribution_of_real_reports(name):
    """The joint tally of six peers over three categories: all cells at once, so correlations count too."""
    mechanism = build(name, 3, nano(1.5))
    generator, drawn = random.Random(3), np.random.default_rng(4)
    real = Counter(real_counts(mechanism, generator) for _ in range(RUNS))
    truth = np.array(TRUTH, dtype=np.int64)
    simulated = Counter(tuple(int(c) for c in perturbed_counts(mechanism, truth, drawn)) for _ in range(RUNS))
    assert same_distribution(real, simulated) > FALSE_ALARM


def test_the_comparison_can_fail():
    """A mechanism whose p is a tenth larger is told apart."""
    honest, drawn = build("pq", 3, nano(1.5)), np.random.default_rng(4)
    other = from_spec("pq", 3, honest.p * 11 // 10, honest.q)
    truth = np.array(TRUTH, dtype=np.int64)
    samples = [
        Counter(tuple(int(c) for c in perturbed_counts(mechanism, truth, drawn)) for _ in range(RUNS))
        for mechanism in (honest, other)
    ]
    assert same_distribution(*samples) < FALSE_ALARM


def test_krr_reports_add_up_and_unary_bits_have_their_mean():
    drawn = np.random.default_rng(1)
    truth = np.array([70_000, 20_000, 10_000], dtype=np.int64)
    krr, unary = build("krr", 3, nano(1.0)), build("pq", 3, nano(1.0))
    assert perturbed_counts(krr, truth, drawn).sum() == 100_000
    counts = perturbed_counts(unary, truth, drawn)
    expected = truth * (unary.p / SCALE) + (100_000 - truth) * (unary.q / SCALE)
    assert np.all(np.abs(counts - expected) < 5 * (100_000 * 0.25) ** 0.5)


def test_rows_are_drawn_as_tags_draw_them():
    weights = (500_000, 300_000, 200_000)
    slot = Slot(0, tuple(Row(survey, weight) for survey, weight in enumerate(weights)))
    generator = random.Random(9)
    by_tag = Counter(draw(slot, b"s" * 32, generator.randbytes(48)) for _ in range(20_000))
    at_once = np.bincount(assign_rows(weights, 20_000, np.random.default_rng(2)), minlength=3)
    for counts in ([by_tag[row] for row in range(3)], at_once):
        assert chisquare(counts, [10_000, 6_000, 4_000]).pvalue > FALSE_ALARM


def test_equal_parts_are_equal():
    parts = np.bincount(assign_rows([1] * 20, 1_000, np.random.default_rng(2), equal_parts=True))
    assert parts.tolist() == [50] * 20
