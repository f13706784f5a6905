"""Could noise alone have counted this? A test of the whole study against "no feature goes with the label".

Measurements are effects seen through known noise: v = X w + e, e ~ N(0, N), w ~ N(0, tau^2 K). Take coordinates where N
is the identity and X K X' is diagonal with entries `strengths`. There the average Bayes factor over a grid of tau is a
function of independent z. Without any effect z is standard normal, whatever the study looked like. So the statistic's
distribution under noise alone is known exactly, but for the normal shape of sums of reports. It is drawn, always from
the same numbers, so that equal tallies give an equal answer. A Bayes factor has mean 1 under noise alone. So one of t
or more has a chance of at most 1/t (Ville's inequality). A large one needs no drawing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from attrs import frozen

from aggregator.protocols.histogram.reconstruct import Floats

FALSE_ALARM = 0.02
"""At most so often does a study without any signal publish more than its base rate."""

ABSTAIN_FROM = 0.5
"""Where noise alone counts as much more often than this, nothing is decided by the model (`results.published`)."""

LEVEL = 0.015
"""The level that the test is made for: the rest is left for sums of few reports, which are not quite normal."""

_DRAWS = 8000

_CERTAIN = 12.0
"""Log Bayes factors above it are as rare as 1 in 160,000 without a signal."""


@frozen(eq=False)
class WhitenedMeasurements:
    """Measurements in the coordinates where noise is white and prior effects are unrelated.

    `strengths` (M,): prior variance of each z at tau = 1. `gain` (D, M): prior covariance of w with each z at tau = 1.
    """

    z: Floats
    strengths: Floats
    gain: Floats

    @staticmethod
    def of(values: Floats, design: Floats, kernel: Floats, noise: Floats) -> WhitenedMeasurements:
        """`values` (M,) = `design` (M, D) @ effects + noise; `kernel` K (D, D). Raises `LinAlgError` for no noise."""
        if not len(values):
            return WhitenedMeasurements(np.zeros(0), np.zeros(0), np.zeros((len(kernel), 0)))
        whiten = np.linalg.inv(np.linalg.cholesky(noise))
        clear = whiten @ design
        strengths, turned = np.linalg.eigh(clear @ kernel @ clear.T)
        return WhitenedMeasurements(turned.T @ whiten @ values, np.maximum(strengths, 0.0), kernel @ clear.T @ turned)

    def log_bayes_factor(self, tau: float) -> float:
        """The log Bayes factor of effects of this size against none."""
        return float(_log_factor(self.z[None, :], self.strengths, tau)[0])


def p_value(seen: WhitenedMeasurements, taus: Sequence[float]) -> float:
    """The chance that noise alone would explain the average of these effect sizes at least as well: a p-value."""
    if not seen.strengths.any():
        return 1.0
    found = _average(seen.z[None, :], seen.strengths, taus)[0]
    if found > _CERTAIN:
        return float(np.exp(-found))
    drawn = _average(_standard_normal(len(seen.z)), seen.strengths, taus)
    return float(1 + np.sum(drawn >= found)) / (1 + _DRAWS)


def _average(z: Floats, strengths: Floats, taus: Sequence[float]) -> Floats:
    factors = np.column_stack([_log_factor(z, strengths, tau) for tau in taus])
    top = factors.max(axis=1)
    found: Floats = top + np.log(np.exp(factors - top[:, None]).mean(axis=1))
    return found


def _log_factor(z: Floats, strengths: Floats, tau: float) -> Floats:
    signal = tau**2 * strengths
    found: Floats = 0.5 * (z**2 @ (signal / (1 + signal)) - np.log1p(signal).sum())
    return found


@lru_cache(maxsize=8)
def _standard_normal(size: int) -> Floats:
    """The draws (draws, size); their seed is part of the method, and nothing secret hangs on it."""
    return np.random.default_rng(size).standard_normal((_DRAWS, size))
