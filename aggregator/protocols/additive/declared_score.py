"""Is it true here, what staff expect? One bit about all declared directions at once, and a one-sided test.

b(x) is +1 for a person whose features point to a yes, else -1 (`anon.protocols.histogram.declared`). Most members
answer a one-bit packet about b (y - a), with the label y and the public guess a of its rate. With c = max(a, 1 - a) and
k of n reports a plus, T = c (2 k/n - 1) / tanh(epsilon/2) estimates E[b (y - a)]. Its variance is at most c^2 / (n
tanh^2(epsilon/2)).

Where b says nothing of the label, E[b (y - a)] is E[b] (rate - a): not 0 when the guess is off and b is lopsided. So a
few members answer around a centre far from a. E[b (y - a)] is a line in a, and two points of it are known. A few
answer about the label alone, so that the line can be read at the estimated rate. There it is the covariance of b with
the label. The errors of all three enter the test's, each with an upper bound, so that a false guess raises no false
alarm.

One number comes of it and no model. Where many expectations are true, it needs far fewer people than a model does.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np
from attrs import frozen
from scipy.special import ndtr

from aggregator.protocols.additive.moments import BitTally
from aggregator.protocols.additive.noise_test import LEVEL
from aggregator.protocols.additive.reconstruct import Counts, Floats
from anon.ldp import SCALE, Mechanism
from anon.protocols.models.tables import ScoreResult


@frozen(eq=False)
class ScoreEstimate:
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


@frozen
class DeclaredScore:
    """The test of one study, as in `ScoreTest`, and how many reports it read."""

    value: float
    error: float
    chance: float
    reports: int

    @property
    def shown(self) -> bool:
        """True if what staff expect is said to be true here."""
        return self.chance <= LEVEL

    def published(self) -> ScoreResult:
        """The result as the model document says it."""
        error = self.error if isfinite(self.error) else None
        return ScoreResult(self.value, error, self.chance, self.shown, self.reports)


def mean_sign(mechanism: Mechanism, plus: Counts, n: int, scale: float) -> ScoreEstimate:
    """`scale` times the mean of the signs before random response, of `plus` reports of a plus among `n` >= 1."""
    gap = (mechanism.p - mechanism.q) / SCALE
    value: Floats = scale * (2 * np.asarray(plus, dtype=float) / n - 1) / gap
    return ScoreEstimate(value, np.full_like(value, scale**2 / (n * gap**2)))


def score_test(near: ScoreEstimate, far: ScoreEstimate, label: ScoreEstimate, apart: float) -> ScoreTest:
    """`near`, `far`: of b (y - centre), the far centre larger by `apart`; `label`: of y less the near centre."""
    off = np.clip(label.value, -1, 1)
    lean, part = np.clip((near.value - far.value) / apart, -1, 1), off / apart
    value = near.value + part * (far.value - near.value)
    error = np.sqrt((1 - part) ** 2 * near.variance + part**2 * far.variance + lean**2 * label.variance)
    return ScoreTest(value, error, ndtr(-value / error))


def declared_score(bits: Sequence[BitTally]) -> DeclaredScore | None:
    """The test of a study; None where it was not asked. Without reports of any of its surveys the chance is 1."""
    asked = [bit for bit in bits if bit.several]
    labels = [bit for bit in bits if bit.asks_label_alone and not bit.several]
    if len(asked) != 2 or not labels:
        return None
    (near, far), label = asked, labels[0]
    reports = near.n + far.n + label.n
    if 0 in (near.n, far.n, label.n):
        return DeclaredScore(0.0, float("inf"), 1.0, reports)
    read = [mean_sign(bit.mechanism, bit.counts[1], bit.n, bit.scale) for bit in (near, far, label)]
    off = ScoreEstimate(read[2].value + label.centre - near.centre, read[2].variance)
    found = score_test(read[0], read[1], off, far.centre - near.centre)
    return DeclaredScore(float(found.value), float(found.error), float(found.chance), reports)
