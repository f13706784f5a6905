"""Smoothed shares: a histogram, closer to the truth than the nearest one where noise rules, and harmless where none
is."""

from __future__ import annotations

import numpy as np
import pytest

from aggregator.lab.simulation.draws import perturbed_counts
from aggregator.protocols.additive.empirical_bayes import smoothed
from anon.ldp import choose, nano
from anon.ldp.simplex import nearest_shares

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("m", [16, 128])
@pytest.mark.parametrize("kind", ["even", "by rank", "few"])
def test_the_error_falls_where_noise_is_larger_than_the_shares(m: int, kind: str) -> None:
    """Means over 40 seeded trials; the gain is many standard errors."""
    generator = np.random.default_rng(3)
    shares = {
        "even": np.ones(m),
        "by rank": 1 / np.arange(1, m + 1),
        "few": np.r_[np.full(2, 2.0 * m), np.ones(m - 2)],
    }[kind]
    shares = shares / shares.sum()
    errors = []
    for _ in range(40):
        noisy = shares + generator.normal(0, 0.04, m)
        found = smoothed(noisy, 0.04**2)
        assert found.min() >= 0 and found.sum() == pytest.approx(1)
        errors.append([((one - shares) ** 2).sum() for one in (found, np.array(nearest_shares(noisy.tolist())))])
    ours, nearest = np.mean(errors, axis=0)
    assert ours < nearest


def test_without_noise_nothing_is_smoothed() -> None:
    shares = np.random.default_rng(1).dirichlet(np.ones(32))
    assert smoothed(shares, 0.0) == pytest.approx(shares)
    assert smoothed(shares, 1e-10) == pytest.approx(shares, abs=5e-3)
    few = np.array([0.7, 0.4, -0.1])
    assert smoothed(few, 0.01).tolist() == pytest.approx(list(nearest_shares(few.tolist())), abs=0.03)


def test_nothing_measured_is_all_alike() -> None:
    assert smoothed(np.array([0.5, 0.1, 0.2, 0.2]), float("inf")).tolist() == [0.25] * 4


SPREADS = {
    "even": lambda m: np.ones(m),
    "by rank": lambda m: 1 / np.arange(1, m + 1),
    "geometric": lambda m: 0.7 ** np.arange(m),
    "half empty": lambda m: np.r_[np.ones(m // 2), np.zeros(m // 2)],
}
COHORT = 10_000
TRIALS = {4: 300, 16: 150, 128: 16, 1024: 3}


@pytest.mark.parametrize("kind", SPREADS)
@pytest.mark.parametrize("m", TRIALS)
def test_no_worse_than_what_others_do(m: int, kind: str) -> None:
    """Others' estimates from 10,000 reports by optimised unary encoding, clipped at zero and divided by their sum
    (multi-freq-ldpy) or projected, against ours from as many reports of the mechanism that `choose` names. False
    alarms: a mean above by more than 3 standard errors, about 1 in 1,000 where errors are alike."""
    generator = np.random.default_rng(m)
    shares = SPREADS[kind](m)
    for epsilon in ("0.5", "1", "4"):
        errors = np.array([_errors(shares / shares.sum(), epsilon, generator) for _ in range(TRIALS[m])])
        for other in (1, 2):
            gap = errors[:, 0] - errors[:, other]
            assert gap.mean() <= 3 * gap.std() / len(gap) ** 0.5, (epsilon, errors.mean(axis=0))


def _errors(shares: np.ndarray, epsilon: str, generator: np.random.Generator) -> list[float]:
    true, m = generator.multinomial(COHORT, shares), len(shares)
    mechanism = choose(m, nano(epsilon))
    counts = perturbed_counts(mechanism, true, generator)
    unbiased = np.array(mechanism.unbias(counts.tolist(), COHORT)) / COHORT
    q = 1 / (np.exp(float(epsilon)) + 1)
    theirs = (generator.binomial(true, 0.5) + generator.binomial(COHORT - true, q)) / COHORT
    theirs = (theirs - q) / (0.5 - q)
    clipped = np.maximum(theirs, 0)
    ours = smoothed(unbiased, mechanism.variance(COHORT / m, COHORT) / COHORT**2)
    estimates = (ours, clipped / clipped.sum(), np.array(nearest_shares(theirs.tolist())))
    return [float(((one - true / COHORT) ** 2).sum()) for one in estimates]
