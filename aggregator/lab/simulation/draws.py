"""Aggregates of many perturbed reports, drawn exactly in distribution without simulating each report.

The mechanism objects are those of the real client, so what is predicted here is what will happen. Probabilities are
the mechanism's integers over 2**64, as doubles.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aggregator.protocols.additive.reconstruct import Counts, Floats
from anon.ldp import SCALE, Mechanism
from anon.ldp.subset import SubsetSelection

_ONE_BY_ONE = 60_000
"""Up to so many positions, of all peers together, it is faster to draw each peer's set."""


def perturbed_counts(mechanism: Mechanism, true_counts: Counts, generator: np.random.Generator) -> Counts:
    """The tally of the reports of peers whose true categories are counted in `true_counts`, shape (m,).

    Unary encodings: Binomial(n_i, p) + Binomial(n - n_i, q), independent across cells. k-RR: for each true category, a
    multinomial over the reported ones. Subset selection: see `_set_counts`.
    """
    n = int(true_counts.sum())
    keep, other = mechanism.p / SCALE, mechanism.q / SCALE
    if mechanism.name == "krr":
        chances = np.full((mechanism.m, mechanism.m), other)
        np.fill_diagonal(chances, 1 - (mechanism.m - 1) * other)
        moved: Counts = generator.multinomial(true_counts, chances).sum(axis=0).astype(np.int64)
        return moved
    if mechanism.name in ("rappor", "pq"):
        drawn: Counts = generator.binomial(true_counts, keep) + generator.binomial(n - true_counts, other)
        return drawn
    if isinstance(mechanism, SubsetSelection):
        small = n * mechanism.m <= _ONE_BY_ONE
        return (_sets_one_by_one if small else _set_counts)(mechanism, true_counts, generator)
    raise ValueError(f"no exact aggregate is known for mechanism {mechanism.name}")


def _sets_one_by_one(mechanism: SubsetSelection, true_counts: Counts, generator: np.random.Generator) -> Counts:
    """The same with a set for each peer: the w positions whose random keys are least, the true one's decided before."""
    truth = np.repeat(np.arange(mechanism.m), true_counts)
    keys = generator.random((len(truth), mechanism.m))
    hit = generator.random(len(truth)) < mechanism.p / SCALE
    keys[np.arange(len(truth)), truth] = np.where(hit, -1.0, 2.0)
    last = np.partition(keys, mechanism.w - 1, axis=1)[:, mechanism.w - 1]
    chosen: Counts = np.count_nonzero(keys <= last[:, None], axis=0).astype(np.int64)
    return chosen


def _set_counts(mechanism: SubsetSelection, true_counts: Counts, generator: np.random.Generator) -> Counts:
    """The tally of subset selection: positions are visited in turn, and only how many of a peer's w are left matters.

    A peer whose true category still lies ahead chooses among one position less. Those ahead with equally many left are
    alike, so who of them is at the true category now is a hypergeometric draw. Time grows with m w, not with peers.
    """
    m, w = mechanism.m, mechanism.w
    hits = generator.binomial(true_counts, mechanism.p / SCALE)
    ahead = {1: np.zeros(w + 1, dtype=np.int64), 0: np.zeros(w + 1, dtype=np.int64)}
    ahead[1][w - 1], ahead[0][w] = hits.sum(), (true_counts - hits).sum()
    passed = np.zeros(w + 1, dtype=np.int64)
    counts = hits.astype(np.int64)
    left = np.arange(w + 1)
    for position in range(m):
        chance = np.minimum(left / (m - position), 1.0)
        passed, chosen = _choosing(passed, chance, generator)
        counts[position] += chosen
        for hit, pool in ahead.items():
            here = int(hits[position] if hit else true_counts[position] - hits[position])
            leaving = generator.multivariate_hypergeometric(pool, here, method="marginals")
            chance = np.minimum(left / max(m - position - 1, 1), 1.0)
            ahead[hit], chosen = _choosing(pool - leaving, chance, generator)
            counts[position] += chosen
            passed = passed + leaving
    return counts


def _choosing(pool: Counts, chance: Floats, generator: np.random.Generator) -> tuple[Counts, int]:
    """Peers by how many positions they have left to choose, after one position; and how many chose it."""
    chosen = generator.binomial(pool, chance)
    after = pool - chosen
    after[:-1] += chosen[1:]
    return after, int(chosen.sum())


def assign_rows(
    weights: Sequence[int], peers: int, generator: np.random.Generator, equal_parts: bool = False
) -> Counts:
    """For each peer the position of the row that its tag draws: independent by weight, as in the protocol.

    `equal_parts`: rows get shares as equal to their weights as whole peers allow, as the paper's partitions do.
    """
    bounds = np.cumsum(np.asarray(weights, dtype=float)) / sum(weights)
    points = (generator.permutation(peers) + 0.5) / max(peers, 1) if equal_parts else generator.random(peers)
    return np.minimum(np.searchsorted(bounds, points, side="right"), len(weights) - 1).astype(np.int64)
