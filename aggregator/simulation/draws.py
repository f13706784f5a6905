"""Aggregates of many perturbed reports, drawn exactly in distribution without simulating each report.

The mechanism objects are those of the real client, so what is predicted here is what will happen. Probabilities are
the mechanism's integers over 2**64, as doubles.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aggregator.protocols.histogram.reconstruct import Counts
from anon.ldp import SCALE, Mechanism


def perturbed_counts(mechanism: Mechanism, true_counts: Counts, generator: np.random.Generator) -> Counts:
    """The tally of the reports of peers whose true categories are counted in `true_counts`, shape (m,).

    Unary encodings: Binomial(n_i, p) + Binomial(n - n_i, q), independent across cells. k-RR: for each true category, a
    multinomial over the reported ones.
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
    raise ValueError(f"no exact aggregate is known for mechanism {mechanism.name}")


def assign_rows(
    weights: Sequence[int], peers: int, generator: np.random.Generator, equal_parts: bool = False
) -> Counts:
    """For each peer the position of the row that its tag draws: independent by weight, as in the protocol.

    `equal_parts`: rows get shares as equal to their weights as whole peers allow, as the paper's partitions do.
    """
    bounds = np.cumsum(np.asarray(weights, dtype=float)) / sum(weights)
    points = (generator.permutation(peers) + 0.5) / max(peers, 1) if equal_parts else generator.random(peers)
    return np.minimum(np.searchsorted(bounds, points, side="right"), len(weights) - 1).astype(np.int64)
