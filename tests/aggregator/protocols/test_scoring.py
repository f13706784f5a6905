"""Scores from noisy cells: by hand, against scikit-learn on rows, and the trap of shared noise (erratum 16)."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score, roc_auc_score

from aggregator.lab.simulation.draws import perturbed_counts
from aggregator.protocols.additive.reconstruct import Histogram, SurveyTally, reconstruct
from aggregator.protocols.additive.scoring import score
from aggregator.protocols.histogram.classifiers import soft
from anon.ldp import build, nano


def exact(counts):
    counts = np.array(counts, dtype=float)
    shares = counts.reshape(-1) / counts.sum()
    return Histogram(("x",), (len(counts),), int(counts.sum()), shares, np.eye(len(shares)) * 1e-9)


def test_scores_equal_those_of_rows():
    counts = [[50, 10], [20, 30], [5, 25]]
    contrast = np.array([-1.0, 0.3, 1.2])
    labels = [label for row in counts for label, count in enumerate(row) for _ in range(count)]
    ranks = [contrast[cell] for cell, row in enumerate(counts) for count in row for _ in range(count)]
    found = score(contrast, exact(counts), 65 / 140)
    assert found.auc == pytest.approx(roc_auc_score(labels, ranks))
    assert found.f1 == pytest.approx(f1_score(labels, [rank > 0 for rank in ranks]))
    assert found.accuracy == pytest.approx((50 + 30 + 25) / 140)


def test_a_cohort_of_nobody_scores_as_knowing_nothing():
    found = score(np.array([1.0, -1.0]), Histogram(("x",), (2,), 0, np.full(4, 0.25), np.eye(4)), 0.25)
    assert (found.f1, found.auc, found.reports) == (pytest.approx(2 * 0.25 / 1.5), 0.5, 0)


def test_scores_stay_in_range_when_noise_dominates():
    wild = Histogram(("x",), (2,), 5, np.array([3.0, -2.5, -2.0, 2.5]), np.eye(4))
    found = score(np.array([-1.0, 1.0]), wild, 0.3)
    assert all(0 <= value <= 1 for value in (found.f1, found.auc, found.accuracy))


def test_shared_noise_flatters_and_a_disjoint_cohort_does_not():
    """A feature that says nothing, 300 runs of 500 reports each: the disjoint mean is 1/2 within 5 s.e. (< 1e-6)."""
    mechanism = build("krr", 8, nano(0.5))
    generator = np.random.default_rng(5)
    truth = np.array([75, 50, 75, 50, 75, 50, 75, 50], dtype=np.int64)
    shared, disjoint = [], []
    for _ in range(300):
        cohorts = [
            reconstruct(SurveyTally(0, ("x",), (4,), mechanism, perturbed_counts(mechanism, truth, generator), 500))
            for _ in range(2)
        ]
        contrast = soft(cohorts[0], 0.4, frozenset())
        shared.append(score(contrast, cohorts[0], 0.4).auc)
        disjoint.append(score(contrast, cohorts[1], 0.4).auc)
    error = np.std(disjoint) / len(disjoint) ** 0.5
    assert abs(np.mean(disjoint) - 0.5) < 5 * error
    assert np.mean(shared) > 0.5 + 10 * error


@pytest.mark.parametrize("name", ["krr", "pq"])
def test_stated_errors_are_those_of_repeated_cohorts(name):
    """400 cohorts of 20,000: a standard deviation is known to 3.5 % (1 s.d.); 5 of them allowed, false alarm < 1e-5.

    The true counts are held fixed while each cohort would be a sample, which adds less than 1 % here.
    """
    mechanism = build(name, 6, nano(1.0))
    generator = np.random.default_rng(6)
    truth = np.array([7000, 1000, 4000, 3000, 2000, 3000], dtype=np.int64)
    contrast = np.array([-1.0, 0.5, 1.0])
    found = [
        score(
            contrast,
            reconstruct(
                SurveyTally(0, ("x",), (3,), mechanism, perturbed_counts(mechanism, truth, generator), 20_000)
            ),
            0.35,
        )
        for _ in range(400)
    ]
    for key in ("auc", "f1"):
        measured = np.std([getattr(one, key) for one in found])
        stated = np.mean([getattr(one, f"{key}_error") for one in found])
        assert stated == pytest.approx(measured, rel=5 * 0.035)
