"""A test that two figures of each peer are independent, given a stratum: distance covariance of ranks, by permutation.

Szekely, Rizzo & Bakirov 2007 (eq. 2.9, 2.10). Zero in the limit only under independence, so any kind of dependence is
found with enough peers. The p-value is that of a permutation test within strata: exact at every sample size for pairs
that are exchangeable within their stratum, so the stated level is the false-alarm rate.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Pairs = Sequence[tuple[float, float]]


def p_value(strata: Sequence[Pairs], permutations: int = 999, seed: int = 1) -> float:
    """The share of shuffles within strata whose distance covariance, summed, is at least as large as the observed."""
    generator = np.random.default_rng(seed)
    centred = [tuple(_centred(np.array(column)) for column in zip(*pairs, strict=True)) for pairs in strata]
    observed = sum(float((one * other).mean()) * len(one) for one, other in centred)
    reached = 0
    for _ in range(permutations):
        shuffled = 0.0
        for one, other in centred:
            order = generator.permutation(len(other))
            shuffled += float((one * other[np.ix_(order, order)]).mean()) * len(one)
        reached += shuffled >= observed
    return (1 + reached) / (1 + permutations)


def worst_distance(values: Sequence[float]) -> float:
    """Kolmogorov's distance of values from the uniform distribution on [0, 1]."""
    ordered = np.sort(np.array(values))
    steps = np.arange(len(ordered) + 1) / len(ordered)
    return float(max(np.max(steps[1:] - ordered), np.max(ordered - steps[:-1])))


def _centred(values: NDArray[np.float64]) -> NDArray[np.float64]:
    ranks = np.argsort(np.argsort(values)) / len(values)
    distances = np.abs(ranks[:, None] - ranks[None, :])
    return distances - distances.mean(0) - distances.mean(1)[:, None] + distances.mean()
