"""The linear model of votes on public rows, by Newton's steps: a convex loss with a small ridge, in few columns."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from aggregator.protocols.additive.reconstruct import Floats

_STEPS = 100
"""Newton's steps with halving come to rest in some ten."""
_DIGITS = 9
"""Of a published weight: the last bits of a solution differ between machines."""


def transferred(public: Sequence[Sequence[float]], votes: Sequence[float], strength: Fraction) -> list[float]:
    """The w of least (1 / N) sum log(2 cosh(w.x / 2)) - w.s + (lambda / 2) |w|^2: of public rows x, and the mean votes
    s (`anon.protocols.vectors.transfer`). Noise can make s one that no votes have; the minimum is there all the same.
    """
    rows, mean, ridge = np.array(public), np.array(votes), float(strength)
    weights = np.zeros(rows.shape[1])
    for _ in range(_STEPS):
        halves = np.tanh(rows @ weights / 2)
        slope = rows.T @ halves / (2 * len(rows)) - mean + ridge * weights
        curvature = (rows.T * (1 - halves**2)) @ rows / (4 * len(rows)) + ridge * np.eye(len(weights))
        step = np.linalg.solve(curvature, slope)
        length, loss = 1.0, _loss(rows, mean, ridge, weights)
        while _loss(rows, mean, ridge, weights - length * step) > loss and length > 2**-40:
            length /= 2
        weights = weights - length * step
        if float(np.abs(slope).max()) < 1e-14:
            break
    return [float(f"{weight:.{_DIGITS}g}") for weight in weights]


def _loss(rows: Floats, mean: Floats, ridge: float, weights: Floats) -> float:
    halves = rows @ weights / 2
    return float(np.logaddexp(halves, -halves).mean() - mean @ weights + ridge * (weights @ weights) / 2)
