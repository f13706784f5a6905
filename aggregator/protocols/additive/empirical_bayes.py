"""Shares of least squared error for showing: what each cell most likely is, given how all cells are spread.

The unbiased estimates of a survey are the true shares plus noise of known variance. Where the noise is larger than the
shares, the nearest histogram (`projected`) keeps whatever the noise favoured. Here the distribution of the shares over
cells is itself estimated from all of them (Robbins's empirical Bayes), and each cell becomes its posterior mean.
Several descriptions of that distribution are tried. The first is all shares alike. The next are gamma distributions
around that, from nearly alike to very uneven (they make Dirichlet priors). The last is any distribution at all (Kiefer
and Wolfowitz 1956). It fits noise too and pays for its freedom as in Schwarz's criterion. The answer is their average,
weighted by how well they explain what was measured. Biased: never used for learning.
"""

from __future__ import annotations

from math import log

import numpy as np
from scipy.special import gammainc

from aggregator.protocols.additive.reconstruct import Floats
from anon.ldp.simplex import nearest_shares

SHAPES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Of the gamma distributions; the mean is always one share in m. 1 makes all histograms equally likely."""

_ATOMS, _ROUNDS = 120, 150

_FEWEST = 16
"""Fewer cells do not tell how shares are spread in any detail."""

_MOST_OWN = 256
"""With more cells than this their own estimates are not added to the grid, which is fine enough for the noise there."""


def smoothed(shares: Floats, variance: float) -> Floats:
    """Estimated shares, >= 0 and summing to 1, from unbiased ones of one noise variance per cell. Shape as given.

    An infinite variance says that nothing was measured: all shares alike.
    """
    if not np.isfinite(variance):
        return np.full(len(shares), 1 / len(shares))
    if variance <= 0 or len(shares) < 2:
        return np.asarray(nearest_shares(shares.tolist()))
    atoms = _grid(shares)
    exponent = -((shares[:, None] - atoms[None, :]) ** 2) / (2 * variance)
    top = exponent.max(axis=1, keepdims=True)
    likelihood = np.exp(exponent - top)
    priors = [_gamma(atoms, shape, 1 / len(shares)) for shape in SHAPES]
    found = [_posterior_mean(atoms, likelihood, prior) for prior in priors]
    alike = float(np.sum(-((shares - 1 / len(shares)) ** 2) / (2 * variance) - top[:, 0]))
    found.append((alike, np.full(len(shares), 1 / len(shares))))
    if len(shares) >= _FEWEST:
        score, estimate = _posterior_mean(atoms, likelihood, _likeliest(likelihood))
        found.append((score - log(len(shares)), estimate))
    scores = np.array([score for score, _ in found])
    weights = np.exp(scores - scores.max())
    mean = np.sum([weight * estimate for weight, (_, estimate) in zip(weights, found, strict=True)], axis=0)
    return np.asarray(nearest_shares((mean / weights.sum()).tolist()))


def _grid(shares: Floats) -> Floats:
    """Possible shares, finer near 0, and the estimates themselves, so that without noise they stay as they are."""
    largest = float(max(shares.max(), 1 / len(shares)))
    own = np.clip(shares, 0, None) if len(shares) <= _MOST_OWN else np.zeros(0)
    grid: Floats = np.unique(np.concatenate([largest * np.linspace(0.0, 1.0, _ATOMS) ** 2, [1 / len(shares)], own]))
    return grid


def _gamma(atoms: Floats, shape: float, mean: float) -> Floats:
    """The weight of each atom: the chance of a share nearer to it than to the others."""
    ends = np.concatenate([[0.0], (atoms[1:] + atoms[:-1]) / 2, [np.inf]])
    weights: Floats = np.diff(gammainc(shape, ends * shape / mean))
    return weights


def _posterior_mean(atoms: Floats, likelihood: Floats, prior: Floats) -> tuple[float, Floats]:
    """How well a prior explains all cells (a log, but for a constant), and the posterior mean of each."""
    # A prior may leave a cell no chance at all, of which there is no log.
    whole = np.maximum(likelihood @ prior, 1e-300)
    return float(np.log(whole).sum()), (likelihood @ (prior * atoms)) / whole


def _likeliest(likelihood: Floats) -> Floats:
    """The prior of greatest likelihood, by as many rounds of expectation and maximisation as make it nearly so."""
    weights = np.full(likelihood.shape[1], 1 / likelihood.shape[1])
    for _ in range(_ROUNDS):
        posterior = likelihood * weights
        posterior /= posterior.sum(axis=1, keepdims=True)
        weights = posterior.mean(axis=0)
    return weights
