"""Could noise alone have made these products? A test of "no feature goes with the target".

All is in columns from -1 to 1. With S the published products of n members, 1 the constant and y the target, the
centred products c = S_xy - a S_1y, a = S_x1 / n, have a mean of 0 where nothing goes with y. With b = S_1y / n their
noise is e_xy - a e_1y - b e_x1, of variances s^2 for features and t^2 for the target: (t^2 + b^2 s^2) I + t^2 a a'. Who
has which target adds the target's variance times the centred products of the features.

The prior effects must not lean on e_x1, which is in c: they are of each feature alone, by its own square.

The products of features have noise of their own, and so has the covariance made of them. At about epsilon 2, with 1,000
people and a target of weight 3, .026 of studies without a signal are shown, where at most .02 is promised.
"""

from __future__ import annotations

import numpy as np

from aggregator.protocols.additive.noise_test import WhitenedMeasurements, p_value
from aggregator.protocols.additive.reconstruct import Floats
from aggregator.protocols.sum.moments import products
from aggregator.protocols.sum.published import NoisySum
from anon.protocols.vectors.moments import MomentSums

TAUS = (0.02, 0.04, 0.08, 0.16, 0.32)
"""Prior standard deviations of an effect, in those of the target for one of the feature."""

LEAST_DEVIATION = 0.1
"""Of a feature, as a part of its largest value: the prior takes a smaller one for this."""

LEAST_CONSTANT = 0.05
"""The least mean square of the constant, which shrunk records make smaller."""

BEYOND_REASON = 20.0
"""Standard deviations of the noise: members make no product that lies farther beyond what so many can."""


def chance_of_products(design: MomentSums, noisy: NoisySum) -> float:
    """How often noise alone counts as much. Each member has one record, the constant comes first and the target last.

    A sum that no members make, as a liar under masks can have it, shows nothing. Raises `Malformed` for a sum of
    another length.
    """
    reach = np.array([column.reach for column in design.columns], dtype=float)
    matrix, deviation = products(design, noisy) / np.outer(reach, reach), float(noisy.variance) ** 0.5
    possible = noisy.units + BEYOND_REASON * deviation / np.outer(reach, reach)
    if len(reach) < 3 or bool((np.abs(matrix) > possible).any()):
        return 1.0
    of_features, of_target = deviation / (reach[1] * reach[0]), deviation / (reach[0] * reach[-1])
    always = design.radius_squared >= sum(design.squares)
    n = float(noisy.units) if always else _between(matrix[0, 0], LEAST_CONSTANT * noisy.units, noisy.units)
    a, b = matrix[1:-1, 0] / n, float(matrix[0, -1]) / n
    noise = (of_target**2 + b**2 * of_features**2) * np.eye(len(a))
    # The square of a noisy mean is too large by its variance.
    kept = max(0.0, 1 - len(a) * (of_features / n) ** 2 / max(float(a @ a), 1e-300))
    noise += (of_target**2 + (0.0 if always else b**2 * of_features**2)) * kept * np.outer(a, a)
    spread = _between(matrix[-1, -1] / n - max(b**2 - (of_target / n) ** 2, 0.0), 0.01, 1.0)
    # A record that was shrunk counts in c by the square of its own factor.
    noise += spread * n / noisy.units * _semidefinite(matrix[1:-1, 1:-1] - n * np.outer(a, a))
    squares = np.clip(np.diag(matrix)[1:-1], LEAST_DEVIATION**2 * n, n)
    seen = WhitenedMeasurements.of(matrix[1:-1, -1] - n * a * b, np.diag(squares), np.diag(spread * n / squares), noise)
    return p_value(seen, TAUS)


def _between(value: float, least: float, most: float) -> float:
    return float(min(max(value, least), most))


def _semidefinite(matrix: Floats) -> Floats:
    """The matrix without negative eigenvalues, and of the trace that it had: noise moves no trace on average."""
    values, vectors = np.linalg.eigh(matrix)
    positive = np.maximum(values, 0.0)
    scale = max(float(np.trace(matrix)), 0.0) / max(float(positive.sum()), 1e-300)
    found: Floats = scale * (vectors * positive) @ vectors.T
    return found
