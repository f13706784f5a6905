"""Ridge regression of any column on the others, from a published sum of second moments.

The noisy matrix of the features is the true one plus a symmetric matrix of independent noise of one standard deviation
s. Noise alone has eigenvalues between -2 s sqrt(d) and 2 s sqrt(d) (Wigner 1958). So negative eigenvalues become 0, and
the ridge is s sqrt(d). There the noise in all products, a vector of length s sqrt(d), is as large as the ridge times a
weight of 1.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from aggregator.protocols.additive.reconstruct import Floats
from aggregator.protocols.sum.published import NoisySum
from anon.errors import Malformed
from anon.protocols.vectors.columns import Linear
from anon.protocols.vectors.moments import MomentSums

LEAST_RIDGE = 1e-9
"""Of the largest eigenvalue: columns that sum up to a constant, without noise, still have a solution."""

_DIGITS = 9
"""Of a published weight: the last bits of eigenvectors differ between machines."""


def products(design: MomentSums, noisy: NoisySum) -> Floats:
    """The symmetric matrix (columns, columns) of a published sum. Raises `Malformed` for another length."""
    if len(noisy.values) != design.length:
        raise Malformed(f"sums: expected {design.length} products, got {len(noisy.values)}")
    size = len(design.columns)
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = [float(value) for value in noisy.values]
    found: Floats = matrix + np.triu(matrix, 1).T
    return found


def ridge(design: MomentSums, target: str, noisy: NoisySum) -> Linear:
    """The linear model that predicts column `target` from all others. Raises `Malformed` for an unknown column."""
    names = [column.name for column in design.columns]
    if target not in names or len(names) < 2:
        raise Malformed("target: expected the name of a column, and a column beside it")
    at = names.index(target)
    others = [place for place in range(len(names)) if place != at]
    matrix = products(design, noisy)
    weights = _solved(matrix[np.ix_(others, others)], matrix[others, at], sqrt(noisy.variance))
    columns, aim = tuple(design.columns[place] for place in others), design.columns[at]
    turned = (
        float(f"{weight * column.reach / aim.reach:.{_DIGITS}g}")
        for weight, column in zip(weights, columns, strict=True)
    )
    return Linear(columns, tuple(turned), aim)


def ridge_errors(design: MomentSums, target: str, noisy: NoisySum) -> tuple[float, ...]:
    """The standard error of each weight of `ridge`, by the parties' noise and by who takes part.

    The ridge draws weights towards 0, which no error says. Raises what `ridge` does.
    """
    model = ridge(design, target, noisy)
    names = [column.name for column in design.columns]
    at = names.index(target)
    others = [place for place in range(len(names)) if place != at]
    matrix, aim = products(design, noisy), design.columns[at]
    stretch = np.array([column.reach / aim.reach for column in model.columns])
    weights = np.array(model.weights) / stretch
    positive, vectors, added = _decomposed(matrix[np.ix_(others, others)], sqrt(noisy.variance))
    left = max(float(matrix[at, at] - weights @ matrix[others, at]), 0.0) / noisy.units
    inverse = (vectors / (positive + added)) @ vectors.T
    # One draw of noise stands on both sides of the diagonal.
    twice = np.outer(weights, weights) - np.diag(weights**2)
    moved = float(noisy.variance) * ((1 + weights @ weights) * np.eye(len(others)) + twice)
    covariance = inverse @ (moved + left * (vectors * positive) @ vectors.T) @ inverse
    return tuple(np.sqrt(np.maximum(np.diag(covariance), 0.0)) * stretch)


def _solved(matrix: Floats, right: Floats, deviation: float) -> Floats:
    positive, vectors, added = _decomposed(matrix, deviation)
    found: Floats = vectors @ (vectors.T @ right / (positive + added))
    return found


def _decomposed(matrix: Floats, deviation: float) -> tuple[Floats, Floats, float]:
    """Eigenvalues of at least 0, eigenvectors and the ridge."""
    values, vectors = np.linalg.eigh(matrix)
    positive = np.maximum(values, 0.0)
    return positive, vectors, max(deviation * sqrt(len(matrix)), LEAST_RIDGE * float(positive.max()), 1e-300)
