"""Partition classifiers: closed forms, the limits of no noise and of nothing but noise, and balance."""

from __future__ import annotations

import subprocess
import sys
from math import log

import numpy as np
import pytest

from aggregator.protocols.additive.reconstruct import Histogram, SurveyTally, reconstruct
from aggregator.protocols.histogram.classifiers import (
    CLASSIFIERS,
    cell_shares,
    equivalent_reports,
    label_contrast,
    logistic,
    soft,
    tree,
    weighted_rows,
)
from anon.ldp import build, nano


def histogram(shares, variance, n=1000, cards=None):
    cells = np.array(shares, dtype=float).reshape(-1)
    return Histogram(("x",), cards or (len(cells) // 2,), n, cells, np.eye(len(cells)) * variance)


CLEAR = [[0.50, 0.05], [0.20, 0.25]]  # rate 0.3; odds 1:10 and 5:4 against 7:3


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_without_noise_the_contrast_is_the_true_one(name):
    n = 10_000_000
    shares = np.array(CLEAR).reshape(-1)
    sampling = (np.diag(shares) - np.outer(shares, shares)) / n
    found = CLASSIFIERS[name](Histogram(("x",), (2,), n, shares, sampling), 0.3, frozenset())
    wanted = [log(0.05 / 0.50 / (3 / 7)), log(0.25 / 0.20 / (3 / 7))]
    assert found == pytest.approx(wanted, abs=0.01)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_noise_shrinks_the_contrast(name):
    quiet, loud = (CLASSIFIERS[name](histogram(CLEAR, v), 0.3, frozenset()) for v in (1e-6, 1.0))
    assert np.max(np.abs(quiet)) > 1
    assert np.max(np.abs(loud)) < 0.25


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_survey_without_reports_says_nothing(name):
    silent = Histogram(("x",), (2,), 0, np.full(4, 0.25), np.full((4, 4), np.inf))
    assert CLASSIFIERS[name](silent, 0.5, frozenset()).tolist() == [0, 0]


def test_soft_is_the_posterior_mean_in_closed_form():
    """With variance v per cell and cells of share 1/2: d = s N w / (s N^2 g^2 + V) per cell, V = (.49 + .09) v."""
    shares, variance, rate = [[0.40, 0.10], [0.30, 0.20]], 0.01, 0.3
    contrast = (1 - rate) * 0.10 - rate * 0.40
    gain = rate * (1 - rate) * 0.5
    weight = gain * contrast / (gain**2 + 0.58 * variance)
    moved = rate + rate * (1 - rate) * weight
    expected = log(moved / (1 - moved)) - log(3 / 7)
    found = soft(histogram(shares, variance), rate, frozenset())
    assert found[0] == pytest.approx(expected)
    assert found[1] == pytest.approx(-found[0], rel=0.2)


def test_negative_estimates_are_information():
    """The positive cell of the first category came out below zero: clipping it first would say less."""
    raw = histogram([[0.55, -0.10], [0.25, 0.30]], 0.004)
    clipped = histogram([[0.55, 0.0], [0.25, 0.20]], 0.004)
    assert soft(raw, 0.25, frozenset())[0] < soft(clipped, 0.25, frozenset())[0] < 0


def test_labels_are_balanced():
    """A rare label (5 %): without balance no cell would vote positive (erratum 15)."""
    rare = histogram([[0.60, 0.01], [0.35, 0.04]], 1e-9, n=100_000_000)
    for classifier in CLASSIFIERS.values():
        assert (classifier(rare, 0.05, frozenset()) > 0).tolist() == [False, True]
    rows = weighted_rows(rare, 0.05)
    assert rows is not None
    assert rows[::2].sum() == pytest.approx(rows[1::2].sum())


def test_equivalent_reports_count_what_noise_leaves():
    n = 1000
    shares = np.array(CLEAR).reshape(-1)
    sampling = (np.diag(shares) - np.outer(shares, shares)) / n
    assert equivalent_reports(Histogram(("x",), (2,), n, shares, sampling), 0.3) == pytest.approx(n, rel=0.01)
    # Told by the noise where the feature says nothing; here it says +-0.115 per cell, so sampling alone varies less.
    expected = n / 25 * 0.21 / (0.21 - 2 * 0.115**2)
    assert equivalent_reports(Histogram(("x",), (2,), n, shares, sampling * 25), 0.3) == pytest.approx(expected)


def test_label_contrast_by_hand():
    found, noise = label_contrast(histogram(CLEAR, 0.01), 0.3)
    assert found == pytest.approx([0.7 * 0.05 - 0.3 * 0.50, 0.7 * 0.25 - 0.3 * 0.20])
    assert noise == pytest.approx(np.eye(2) * 0.58 * 0.01)


def test_cell_shares_are_positive_and_shrink_with_noise():
    wild = histogram([[0.9, 0.4], [-0.2, -0.1]], 0.5)
    assert cell_shares(wild) == pytest.approx([0.5, 0.5])
    assert np.all(cell_shares(histogram([[1.0, 0.1], [-0.05, -0.05]], 1e-4)) > 0)


def test_logistic_is_additive_over_features_and_tree_is_not():
    """Exclusive or of two features: no additive contrast exists, but a tree or a table finds it."""
    both = histogram([[0.2, 0.05], [0.05, 0.2], [0.05, 0.2], [0.2, 0.05]], 1e-8, n=10**8, cards=(2, 2))
    both = Histogram(("a", "b"), (2, 2), both.n, both.shares, both.covariance)
    assert np.max(np.abs(logistic(both, 0.5, frozenset()))) < 1e-6
    assert (tree(both, 0.5, frozenset()) > 0).tolist() == [False, True, True, False]
    assert (soft(both, 0.5, frozenset()) > 0).tolist() == [False, True, True, False]


def test_one_label_or_a_constant_feature_end_in_nothing_to_say():
    mechanism = build("krr", 4, nano(3.0))
    only_negative = reconstruct(SurveyTally(0, ("x",), (2,), mechanism, np.array([500, 0, 500, 0]), 1000))
    constant = histogram([[0.7, 0.3], [0.0, 0.0]], 1e-6)
    for classifier in CLASSIFIERS.values():
        assert np.all(np.isfinite(classifier(only_negative, 0.01, frozenset())))
        assert abs(classifier(constant, 0.3, frozenset())[0]) < 0.05


@pytest.mark.slow
def test_the_default_learns_without_scikit_learn():
    """Loading it takes longer than to learn, and 145 MB in each process that learns."""
    program = (
        "import sys, numpy; from aggregator.protocols.additive.reconstruct import Histogram;"
        "from aggregator.protocols.histogram.cohorts import learn_study;"
        "from aggregator.protocols.histogram.classifiers import CLASSIFIERS;"
        "shares = numpy.array([.5, .05, .2, .25]); cells = Histogram(('x',), (2,), 100, shares, numpy.eye(4) / 1e4);"
        "CLASSIFIERS['soft'](cells, .3, frozenset()); assert 'sklearn' not in sys.modules;"
        "CLASSIFIERS['tree'](cells, .3, frozenset()); assert 'sklearn' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
