"""Smoothed shares: a histogram, closer to the truth than the nearest one where noise rules, and harmless where none is."""

from __future__ import annotations

import numpy as np
import pytest

from aggregator.protocols.histogram.smoothing import smoothed
from anon.protocols.histogram.binning import nearest_shares


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
    assert smoothed(few, 0.01).tolist() == pytest.approx(list(nearest_shares(few.tolist())))
