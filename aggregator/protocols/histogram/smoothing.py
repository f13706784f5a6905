"""Shares of least squared error for showing: what each cell most likely is, given how all cells are spread.

The unbiased estimates of a survey are the true shares plus noise of known variance. Where the noise is larger than the
shares, the nearest histogram (`projected`) keeps whatever the noise favoured. Here the distribution of the shares over
cells is itself estimated from all of them by maximum likelihood (Kiefer & Wolfowitz 1956; Robbins's empirical Bayes),
and each cell becomes its posterior mean. Biased: never used for learning.
"""

from __future__ import annotations

import numpy as np

from aggregator.protocols.histogram.reconstruct import Floats
from anon.protocols.histogram.binning import nearest_shares

_ATOMS, _ROUNDS = 120, 150

_FEWEST = 16
"""Fewer cells do not tell how shares are spread; there the nearest histogram is taken."""


def smoothed(shares: Floats, variance: float) -> Floats:
    """Estimated shares, >= 0 and summing to 1, from unbiased ones of one noise variance per cell. Shape as given."""
    if variance <= 0 or len(shares) < _FEWEST:
        return np.asarray(nearest_shares(shares.tolist()))
    largest = float(max(shares.max(), 1 / len(shares)))
    atoms = np.concatenate([[0.0], largest * np.linspace(0.0, 1.0, _ATOMS)[1:] ** 2, [1 / len(shares)]])
    exponent = -((shares[:, None] - atoms[None, :]) ** 2) / (2 * variance)
    likelihood = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    weights = np.full(len(atoms), 1 / len(atoms))
    for _ in range(_ROUNDS):
        posterior = likelihood * weights
        posterior /= posterior.sum(axis=1, keepdims=True)
        weights = posterior.mean(axis=0)
    return np.asarray(nearest_shares((posterior @ atoms).tolist()))

