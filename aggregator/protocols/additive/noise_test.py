"""Could noise alone have counted this? A test of the whole study against "no feature goes with the label".

Measurements are effects seen through known noise: v = X w + e, e ~ N(0, N), w ~ N(0, tau^2 K). Take coordinates where N
is the identity and X K X' is diagonal with entries `strengths`. There the average Bayes factor over a grid of tau is a
function of independent z. Without any effect z is standard normal, whatever the study looked like. So the statistic's
distribution under noise alone is known exactly, but for the normal shape of sums of reports. It is drawn, always from
the same numbers, so that equal tallies give an equal answer. A Bayes factor has mean 1 under noise alone. So one of t
or more has a chance of at most 1/t (Ville's inequality). A large one needs no drawing.

Where staff declared a direction d, a part of the average (`DECLARED`) is over w ~ N(mu d, tau^2 K) for several mu, and
over w ~ N(-mu d, tau^2 K). Both ways count almost alike (`WhitenedMeasurements.reversed`). That changes the statistic
and not the noise: the chance is as exact as before, whatever was declared before anybody answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import exp, sqrt

import numpy as np
from attrs import Factory, evolve, field, frozen

from aggregator.protocols.additive.reconstruct import Floats

FALSE_ALARM = 0.02
"""At most so often does a study without any signal publish more than its base rate."""

ABSTAIN_FROM = 0.5
"""Where noise alone counts as much more often than this, nothing is decided by the model (`results.published`)."""

LEVEL = 0.015
"""The level that the test is made for: the rest is left for sums of few reports, which are not quite normal."""

DECLARED = 0.75
"""The part of the prior weight of any effect that lies along what staff declared, one way or the other."""

LEAN, LARGEST_LEAN, OTHERS = 0.02, 0.4, 0.16
"""The prior log-odds that staff declared the right way round: `LEAN` for each standard error by which effects of the
declared direction, of size 1, stand out of the noise and of other effects of the size `OTHERS`; never more than the
largest. A study that cannot tell which way has nothing but its prior, and would turn with the signs. All four numbers
were chosen on packets of their own: docs/decisions/0035-expected-directions.md has the figures."""

_DRAWS = 8000

_CERTAIN = 12.0
"""Log Bayes factors above it are as rare as 1 in 160,000 without a signal."""


@frozen(eq=False)
class WhitenedMeasurements:
    """Measurements in the coordinates where noise is white and prior effects are unrelated.

    `strengths` (M,): prior variance of each z at tau = 1. `gain` (D, M): prior covariance of w with each z at tau = 1.
    `expected` (M,): the mean of each z where the effects are the declared direction d; zeros where nothing is declared.
    `turning` (M, M): z = turning @ values. `noise` (M, M): the covariance that was known.
    """

    z: Floats
    strengths: Floats
    gain: Floats
    expected: Floats = field(default=Factory(lambda self: np.zeros(len(self.z)), takes_self=True))
    turning: Floats = Factory(lambda self: np.eye(len(self.z)), takes_self=True)
    noise: Floats = Factory(lambda self: np.eye(len(self.z)), takes_self=True)

    @staticmethod
    def of(
        values: Floats, design: Floats, kernel: Floats, noise: Floats, direction: Floats | None = None
    ) -> WhitenedMeasurements:
        """`values` (M,) = `design` (M, D) @ effects + noise; `kernel` K (D, D); `direction` d (D,), none for zeros.

        Raises `LinAlgError` for no noise.
        """
        if not len(values):
            return WhitenedMeasurements(np.zeros(0), np.zeros(0), np.zeros((len(kernel), 0)))
        # With N = L L' the inverse of L makes white noise of e.
        whiten = np.linalg.inv(np.linalg.cholesky(noise))
        clear = whiten @ design
        strengths, turned = np.linalg.eigh(clear @ kernel @ clear.T)
        if direction is not None:
            # Of two opposite eigenvectors a machine gives either; the draws below would differ with the choice.
            turned = np.where(turned.T @ (clear @ direction) < 0, -1.0, 1.0) * turned
        turning, gain = turned.T @ whiten, kernel @ clear.T @ turned
        z = turning @ values
        expected = np.zeros(len(z)) if direction is None else turned.T @ (clear @ direction)
        # Rounding leaves eigenvalues of a semidefinite matrix just below 0.
        return WhitenedMeasurements(z, np.maximum(strengths, 0.0), gain, expected, turning, noise)

    def of_others(self, values: Floats) -> WhitenedMeasurements:
        """Other values, (M,), of the same design and noise."""
        return evolve(self, z=self.turning @ values)

    def log_bayes_factor(self, tau: float) -> float:
        """The log Bayes factor of w ~ N(0, tau^2 K) against no effect."""
        return float(_log_factor(self.z[None, :], self.strengths, tau)[0])

    def log_bayes_factors(self, taus: Sequence[float], shifts: Sequence[float]) -> Floats:
        """The same of w ~ N(shift d, tau^2 K) for each shift and tau, shape (shifts, taus)."""
        around_zero = np.array([self.log_bayes_factor(tau) for tau in taus])
        sharply = np.array([self.expected / (1 + tau**2 * self.strengths) for tau in taus])
        size = np.array(shifts)[:, None]
        found: Floats = around_zero + size * (sharply @ self.z) - size**2 / 2 * (sharply @ self.expected)
        return found

    @property
    def directed(self) -> bool:
        """True if a direction is declared of which the measurements can say something."""
        return bool(self.expected.any())

    @property
    def reversed(self) -> float:
        """The prior chance that what staff declared is the wrong way round as a whole; at most one half.

        It hangs on the noise, which is known, and not on z: the test stays exact.
        """
        clear = sqrt(float(self.expected @ (self.expected / (1 + OTHERS**2 * self.strengths))))
        return 1 / (1 + exp(min(LEAN * clear, LARGEST_LEAN)))


def p_value(seen: WhitenedMeasurements, taus: Sequence[float], shifts: Sequence[float] = ()) -> float:
    """The chance that noise alone would explain the average of these effect sizes at least as well: a p-value.

    `shifts`: the sizes mu > 0 along the declared direction, where there is one.
    """
    if not seen.strengths.any() and not seen.directed:
        return 1.0
    found = _average(seen.z[None, :], seen, taus, shifts)[0]
    if found > _CERTAIN:
        return float(np.exp(-found))
    drawn = _drawn(seen.strengths.tobytes(), seen.expected.tobytes(), tuple(taus), tuple(shifts))
    # The study counts among the draws: a p-value is never 0 (Phipson and Smyth 2010).
    return float(1 + np.sum(drawn >= found)) / (1 + _DRAWS)


@lru_cache(maxsize=8)
def _drawn(strengths: bytes, expected: bytes, taus: tuple[float, ...], shifts: tuple[float, ...]) -> Floats:
    """The statistic under noise alone, (draws,). It has nothing of the values in it, so that many fits share it."""
    size = len(strengths) // np.dtype(float).itemsize
    known, mean = np.frombuffer(strengths), np.frombuffer(expected)
    noise = _standard_normal(size)
    return _average(noise, WhitenedMeasurements(noise[0], known, np.zeros((0, size)), mean), taus, shifts)


def _average(z: Floats, seen: WhitenedMeasurements, taus: Sequence[float], shifts: Sequence[float]) -> Floats:
    """The log of the average Bayes factor of each row of z, (draws,): `DECLARED` of it along a declared direction."""
    around_zero = np.column_stack([_log_factor(z, seen.strengths, tau) for tau in taus])
    found = _log_mean(around_zero)
    if not seen.directed or not shifts:
        return found
    along = _along(z, seen, taus, around_zero, shifts)
    both: Floats = np.logaddexp(found + np.log(1 - DECLARED), along + np.log(DECLARED))
    return both


def _along(
    z: Floats, seen: WhitenedMeasurements, taus: Sequence[float], around_zero: Floats, shifts: Sequence[float]
) -> Floats:
    """The log of the average Bayes factor of each row of z over effects around mu d and around -mu d.

    `around_zero`: (draws, taus). One tau at a time, with draws along the last axis: that stays within a cache.
    """
    ways = np.array([*shifts, *(-shift for shift in shifts)])[:, None]
    shares = np.log(np.repeat([1 - seen.reversed, seen.reversed], len(shifts)))[:, None]
    by_tau = []
    for factor, tau in zip(around_zero.T, taus, strict=True):
        seen_sharply = seen.expected / (1 + tau**2 * seen.strengths)
        line, bend = _by_row(z, seen_sharply), float(seen.expected @ seen_sharply)
        gained = ways * line + (shares - ways**2 / 2 * bend)
        top = gained.max(axis=0)
        by_tau.append(factor + top + np.log(np.exp(gained - top).sum(axis=0) / len(shifts)))
    return _log_mean(np.column_stack(by_tau))


def _log_mean(factors: Floats) -> Floats:
    # The largest is taken out first, because exp of a large one overflows.
    top = factors.max(axis=1)
    found: Floats = top + np.log(np.exp(factors - top[:, None]).mean(axis=1))
    return found


def _log_factor(z: Floats, strengths: Floats, tau: float) -> Floats:
    signal = tau**2 * strengths
    found: Floats = 0.5 * (_by_row(z**2, signal / (1 + signal)) - np.log1p(signal).sum())
    return found


def _by_row(rows: Floats, weights: Floats) -> Floats:
    """`rows @ weights`, in which a row's sum has the same last bit alone as among others: a study equals its draw."""
    found: Floats = np.einsum("ij,j->i", rows, weights)
    return found


@lru_cache(maxsize=8)
def _standard_normal(size: int) -> Floats:
    """The draws (draws, size); their seed is part of the method, and nothing secret hangs on it."""
    return np.random.default_rng(size).standard_normal((_DRAWS, size))
