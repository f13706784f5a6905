"""The simulation's noise has the law of the parties' own. Tests at 1e-3 with fixed seeds."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from scipy.stats import chi2

from aggregator.lab.simulation.sum_noise import cumulative, simulated_noise
from anon.noise import DiscreteGaussian
from tests.support.tries import every

LEVEL = 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("sigma_squared", [Fraction(1, 3), Fraction(9, 2), Fraction(393), Fraction(10**8, 3)])
def test_the_cumulative_sum_is_that_of_the_law(sigma_squared: Fraction) -> None:
    ends = cumulative(sigma_squared)
    reach = len(ends) // 2
    weights = {k: math.exp(-k * k / (2 * float(sigma_squared))) for k in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    assert ends[-1] == 1
    assert np.diff(ends, prepend=0.0) == pytest.approx(np.array(list(weights.values())) / total, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parties", "sigma_squared"), every(3, [1, 2], [Fraction(18001, 1024), Fraction(1, 3), Fraction(393)])
)
def test_the_same_distribution_as_the_exact_sampler(sigma_squared: Fraction, parties: int) -> None:
    """Chi-squared of two samples, each of the sum of all parties' values."""
    count = 20_000
    ours = simulated_noise(sigma_squared, parties, count, np.random.default_rng(1)).tolist()
    exact = DiscreteGaussian(sigma_squared).vector(count * parties, Random(2).randbytes)
    assert alike(ours, [sum(exact[at::count]) for at in range(count)])
    assert not alike(ours, [sum(exact[at::count]) * 9 // 10 for at in range(count)])


def alike(first: list[int], second: list[int]) -> bool:
    """Values are merged until both samples together have 200 in a cell."""
    one, other = Counter(first), Counter(second)
    cells, pending = [], [0, 0]
    for value in sorted({*one, *other}):
        pending = [pending[0] + one[value], pending[1] + other[value]]
        if sum(pending) >= 200:
            cells.append(pending)
            pending = [0, 0]
    cells[-1] = [cells[-1][0] + pending[0], cells[-1][1] + pending[1]]
    return sum((a - b) ** 2 / (a + b) for a, b in cells) < chi2.isf(LEVEL, len(cells) - 1)


def test_entries_are_independent_and_repeat_with_their_seed() -> None:
    drawn = simulated_noise(Fraction(50), 2, (400, 50), np.random.default_rng(3))
    assert drawn.shape == (400, 50)
    assert (drawn == simulated_noise(Fraction(50), 2, (400, 50), np.random.default_rng(3))).all()
    related = np.corrcoef(drawn.T)[np.triu_indices(50, 1)]
    assert (related**2).sum() * 400 < chi2.isf(LEVEL, len(related))
