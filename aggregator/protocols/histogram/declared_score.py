"""Is it true here, what staff expect? One bit about all declared directions at once, and a one-sided test.

b(x) is the sign of the sum of the declared directions (`Feature.expects`) over a person's categories: +1 for who should
be positive, -1 for the others and where the directions cancel out. Some members answer a one-bit packet about b (y -
a), with the label y and the public guess a of its rate (`anon.protocols.histogram.one_bit`). With c = max(a, 1 - a) and
k of n reports a plus, T = c (2 k/n - 1) / tanh(epsilon/2) estimates E[b (y - a)]. Its variance is at most c^2 / (n
tanh^2(epsilon/2)).

Where b says nothing of the label, E[b (y - a)] is E[b] (rate - a): not 0 when the guess is off and b is lopsided. So a
few members answer about the label alone, and a few about b alone, and the product of these two estimates is taken off.
Its error enters the test's. Everything that the test takes for the error is an upper bound but for terms of its third
order, so that a false guess raises no false alarm.

One number comes of it and no model: it needs far fewer people than a model does. Nothing here asks anybody yet: no
design of a study file names this survey.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen
from scipy.special import ndtr

from aggregator.protocols.histogram.noise_test import LEVEL
from aggregator.protocols.histogram.reconstruct import Counts, Floats
from anon.ldp import SCALE, Mechanism

SHARES = (0.8, 0.1, 0.1)
"""Of the members: those asked about b and the label, about the label alone, and about b alone."""


@frozen(eq=False)
class Estimate:
    """Values of repeated studies, or one of a single study, and the variance of each, at most. Shapes alike."""

    value: Floats
    variance: Floats


@frozen(eq=False)
class ScoreTest:
    """`value`: the estimated covariance of b with the label. `error`: its standard error, at least.

    `chance`: how often a b that says nothing of the label would look as good, a one-sided p-value.
    """

    value: Floats
    error: Floats
    chance: Floats

    @property
    def shown(self) -> Floats:
        """1 where what staff expect is said to be true here, else 0."""
        found: Floats = (self.chance <= LEVEL).astype(float)
        return found


def mean_sign(mechanism: Mechanism, plus: Counts, n: int, scale: float = 1.0) -> Estimate:
    """`scale` times the mean of the signs before random response, of `plus` reports of a plus among n.

    Of no report the value is 0 and the variance infinite.
    """
    counted = np.asarray(plus, dtype=float)
    if n < 1:
        return Estimate(np.zeros_like(counted), np.full_like(counted, np.inf))
    gap = (mechanism.p - mechanism.q) / SCALE
    value: Floats = scale * (2 * counted / n - 1) / gap
    return Estimate(value, np.full_like(value, scale**2 / (n * gap**2)))


def score_test(scored: Estimate, label: Estimate, score: Estimate) -> ScoreTest:
    """`scored`: of b (y - a); `label`: of y - a; `score`: of b. One of them without a report makes a chance of 1."""
    known = np.isfinite(scored.variance) & np.isfinite(label.variance) & np.isfinite(score.variance)
    off, lean = np.clip(label.value, -1, 1), np.clip(score.value, -1, 1)
    value = scored.value - lean * off
    with np.errstate(invalid="ignore"):
        error = np.sqrt(scored.variance + lean**2 * label.variance + off**2 * score.variance)
    error = np.where(known, error, np.inf)
    return ScoreTest(value, error, np.where(known, ndtr(-value / error), 1.0))
