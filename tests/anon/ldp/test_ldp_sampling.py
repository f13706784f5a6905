"""Reports drawn from seeded and from operating-system bytes follow the stated probabilities."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest
from scipy.stats import chi2

from anon.ldp import MECHANISMS, RandomBytes, RawCategory, build, nano
from tests.support.tries import every

FALSE_ALARM = 1e-7  # of each test below; seeded, so that it is rolled once and for all
DRAWS = 20_000


def chi_square(name: str, m: int, epsilon: float, value: int, random_bytes: RandomBytes) -> tuple[float, int]:
    mechanism, category = build(name, m, nano(epsilon)), RawCategory(value, m)
    seen = Counter(mechanism.perturb(category, random_bytes).data for _ in range(DRAWS))
    statistic, cells, rest_expected, rest_seen = 0.0, 0, float(DRAWS), DRAWS
    for data, count in sorted(seen.items()):
        expected = DRAWS * float(mechanism.likelihood(category, mechanism.parse(data)))
        if expected >= 10:
            statistic, cells = statistic + (count - expected) ** 2 / expected, cells + 1
            rest_expected, rest_seen = rest_expected - expected, rest_seen - count
    if rest_expected >= 5:
        statistic, cells = statistic + (rest_seen - rest_expected) ** 2 / rest_expected, cells + 1
    return statistic, cells - 1


@pytest.mark.parametrize(("epsilon", "m", "name"), every(3, [0.5, 2.0], [2, 5, 8], MECHANISMS))
def test_seeded_reports_fit_the_exact_likelihoods(name: str, m: int, epsilon: float) -> None:
    statistic, freedom = chi_square(name, m, epsilon, m - 1, random.Random(f"{name} {m}").randbytes)
    assert statistic < chi2.isf(FALSE_ALARM, freedom)


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_reports_from_the_operating_system_fit_too(name: str) -> None:
    """Not seeded: false alarm 1e-9 in each run."""
    statistic, freedom = chi_square(name, 4, 1.0, 2, os.urandom)
    assert statistic < chi2.isf(1e-9, freedom)


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_estimates_from_many_peers_scatter_as_variance_says(name: str) -> None:
    """60 cohorts of 300: the standardised squares of a cell sum to a chi-square of 60, two-sided at FALSE_ALARM."""
    m, cohort, rounds = 6, [0] * 150 + [1] * 100 + [5] * 50, 60
    mechanism, source = build(name, m, nano(1)), random.Random(8)
    squares = [0.0] * m
    for _ in range(rounds):
        reports = [mechanism.perturb(RawCategory(value, m), source.randbytes) for value in cohort]
        for cell, estimate in enumerate(mechanism.unbias(mechanism.tally(reports), len(cohort))):
            true = cohort.count(cell)
            squares[cell] += (estimate - true) ** 2 / mechanism.variance(true, len(cohort))
    for total in squares:
        assert chi2.isf(1 - FALSE_ALARM / m / 2, rounds) < total < chi2.isf(FALSE_ALARM / m / 2, rounds)
