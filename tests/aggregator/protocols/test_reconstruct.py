"""Histograms from tallies: figures worked out by hand, and covariances against real perturbation of every peer."""

from __future__ import annotations

import random

import numpy as np
import pytest

from aggregator.protocols.additive.reconstruct import (
    Histogram,
    SurveyTally,
    base_rate,
    pool,
    pool_by_subset,
    projected,
    reconstruct,
)
from anon.ldp import SCALE, RawCategory, build, from_spec, nano
from tests.support.tries import every


def tally_of(mechanism, counts, n, features=("sex",), cards=(2,), survey=0):
    return SurveyTally(survey, features, cards, mechanism, np.array(counts, dtype=np.int64), n)


def test_shares_are_those_worked_out_by_hand():
    # p = 1/2, q = 1/6 and n = 600: a cell of 200 is (200/600 - 1/6) / (1/3) = 1/2; 60 is (0.1 - 1/6) * 3 = -0.2.
    mechanism = from_spec("pq", 4, SCALE // 2, SCALE // 6)
    found = reconstruct(tally_of(mechanism, [200, 60, 100, 140], 600))
    assert found.shares == pytest.approx([0.5, -0.2, 0.0, 0.2], abs=1e-12)
    # Var of the first: (1/3)(2/3)/600 * 9.
    assert found.covariance[0, 0] == pytest.approx(9 * 2 / 9 / 600)
    # Bits are independent given the category, so cells covary by sampling alone: the projection of the shares is
    # (.5, 0, 0, .2) + .1 each on its three largest = (.6, 0, .1, .3).
    assert found.covariance[0, 3] == pytest.approx(-0.6 * 0.3 / 600)


def test_krr_cells_are_negatively_correlated():
    mechanism = build("krr", 4, nano(1.0))
    found = reconstruct(tally_of(mechanism, [400, 300, 200, 100], 1000))
    gap = (mechanism.p - mechanism.q) / SCALE
    assert found.covariance[0, 1] == pytest.approx(-0.4 * 0.3 / 1000 / gap**2)
    assert found.shares.sum() == pytest.approx(1)
    assert abs(found.covariance.sum()) < 1e-12  # the shares of k-RR sum to 1 without error


@pytest.mark.parametrize("name", every(3, ["krr", "rappor", "pq"]))
@pytest.mark.slow
def test_covariance_is_that_of_real_reports(name):
    """600 cohorts of 60 real peers; a variance estimate is off by 5.8 % (1 s.d.), 5 s.d. allowed: false alarm <
    1e-5."""
    mechanism = build(name, 4, nano(2.0))
    generator = random.Random(11)
    truth = [0.5, 0.1, 0.3, 0.1]
    n, runs = 60, 600
    estimates, stated = [], []
    for _ in range(runs):
        people = generator.choices(range(4), weights=truth, k=n)
        reports = [mechanism.perturb(RawCategory(one, 4), generator.randbytes) for one in people]
        found = reconstruct(tally_of(mechanism, mechanism.tally(reports), n))
        estimates.append(found.shares)
        stated.append(found.covariance)
    measured, claimed = np.cov(np.array(estimates).T), np.mean(stated, axis=0)
    scale = np.sqrt(np.outer(np.diag(measured), np.diag(measured)))
    assert np.max(np.abs(measured - claimed) / scale) < 5 * (2 / runs) ** 0.5
    error = np.sqrt(np.diag(measured) / runs)
    assert np.all(np.abs(np.mean(estimates, axis=0) - truth) < 5 * error)


def test_pool_weights_by_precision():
    first = Histogram(("sex",), (1,), 10, np.array([0.4, 0.6]), np.eye(2) * 1.0)
    second = Histogram(("sex",), (1,), 30, np.array([0.8, 0.2]), np.eye(2) * 3.0)
    found = pool([first, second])  # weights 3/4 and 1/4
    assert found.shares == pytest.approx([0.5, 0.5])
    assert np.diag(found.covariance) == pytest.approx([9 / 16 + 3 / 16] * 2)
    assert found.n == 40


def test_pool_ignores_an_empty_survey_and_refuses_other_features():
    mechanism = build("krr", 4, nano(1.0))
    full, empty = tally_of(mechanism, [40, 30, 20, 10], 100), tally_of(mechanism, [0, 0, 0, 0], 0)
    assert pool([reconstruct(empty), reconstruct(full)]).shares == pytest.approx(reconstruct(full).shares)
    assert pool([reconstruct(empty)]).n == 0
    with pytest.raises(ValueError, match="one feature subset"):
        pool([reconstruct(full), reconstruct(tally_of(mechanism, [40, 30, 20, 10], 100, features=("age",)))])


def test_subsets_are_pooled_across_mechanisms():
    one = reconstruct(tally_of(build("krr", 4, nano(1.0)), [40, 30, 20, 10], 100))
    two = reconstruct(tally_of(build("pq", 4, nano(1.0)), [50, 50, 30, 30], 100))
    found = pool_by_subset([one, two])
    assert list(found) == [("sex",)]
    assert found["sex",].n == 200


def test_projection_is_the_nearest_point_of_the_simplex():
    histogram = Histogram(("sex",), (2,), 9, np.array([0.9, 0.3, -0.1, -0.1]), np.eye(4))
    assert projected(histogram) == pytest.approx([0.8, 0.2, 0.0, 0.0])


def test_base_rate_pools_surveys_and_stays_inside():
    one = Histogram(("sex",), (1,), 10, np.array([0.7, 0.3]), np.eye(2) * 0.01)
    two = Histogram(("age",), (1,), 10, np.array([0.9, 0.1]), np.eye(2) * 0.03)
    assert base_rate([one, two]) == pytest.approx(0.75 * 0.3 + 0.25 * 0.1)
    assert base_rate([Histogram(("age",), (1,), 10, np.array([1.2, -0.2]), np.eye(2))]) == 0.01
    assert base_rate([]) == 0.5


def test_a_tally_that_cannot_be_is_refused():
    mechanism = build("krr", 4, nano(1.0))
    with pytest.raises(ValueError, match="4 counts"):
        tally_of(mechanism, [1, 2, 3], 6)
    with pytest.raises(ValueError, match="between 0 and n"):
        tally_of(mechanism, [7, 0, 0, 0], 6)
    with pytest.raises(ValueError, match="cardinality"):
        tally_of(mechanism, [1, 2, 3, 0], 6, cards=(3,))
