"""The claim that is tested, and the epsilon that counts of guesses prove.

Each run draws one of two neighbours by a fair coin. A rule guesses from the output which one it was: the first on a
set S, the second on a set S', and neither elsewhere. Let s be the chance of a guess, and t that of a right one among
them. A claim (epsilon, delta) says P(S) <= e^epsilon P'(S) + delta, and the same of S' the other way round. So
t (1 + e^epsilon) <= e^epsilon + d / (2 s), where d is delta for each of the sets that is not empty. Given the number of
guesses, the right ones are then at most binomial: Clopper and Pearson (1934), exactly. Tests of independent counts are
joined as Stouffer's sum, with weights set before. With delta above 0 the number of guesses is a test of each s, joined
in the same way: the claim is refuted where each s is, of those that Clopper and Pearson's interval leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, hypot, inf, log

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, ndtri

from anon.errors import InvalidValue

Floats = NDArray[np.float64]
_SHARE_OF_S = 0.01  # of the error, for the interval of s
_WEIGHT_OF_S, _STEPS, _NEVER = 0.05, 33, -10.0  # a score below -10 has a chance of 1e-23
_LARGEST = 40.0  # far above any epsilon that counts can prove
_HALVINGS = 32
_MARGIN = 6.0  # standard errors of a forecast


@frozen
class PrivacyClaim:
    """The promise of a mechanism. Raises `InvalidValue` for an epsilon below 0 or a delta outside [0, 1)."""

    epsilon: float = field()
    delta: float = field(default=0.0)

    def __attrs_post_init__(self) -> None:
        if not (0 <= self.epsilon < inf and 0 <= self.delta < 1):
            raise InvalidValue("a claim has an epsilon of at least 0 and a delta from 0 to below 1")


@frozen
class EventCounts:
    """How many guesses were right and wrong in so many fresh runs, and in how many directions the rule guesses."""

    right: int
    wrong: int
    runs: int
    sides: int = 1

    def score(self, epsilon: float, delta: float, error: float) -> float:
        """At most the standard normal score of these counts, were a claim true, but for a chance of `error`."""
        guesses = self.right + self.wrong
        if not self.right:
            return -inf
        if not delta:
            return -float(ndtri(betainc(self.right, self.wrong + 1, 1 / (1 + exp(-epsilon)))))
        others = self.runs - guesses
        ends = betaincinv([guesses, guesses + 1], [others + 1, others], [error / 2, 1 - error / 2])
        low, high = np.where(np.isnan(ends), 1.0, ends)
        s = np.linspace(low, high, _STEPS)
        most = np.minimum(1, (exp(epsilon) + delta * self.sides / (2 * s)) / (1 + exp(epsilon)))
        of_t = -ndtri(betainc(self.right, self.wrong + 1, most))  # grows with s
        of_s = np.maximum(-ndtri(betainc(guesses, others + 1, s)), _NEVER)  # falls with s
        both = (of_t[:-1] + _WEIGHT_OF_S * of_s[1:]) / hypot(1, _WEIGHT_OF_S)
        return float(both.min())

    def measured(self, delta: float) -> float:
        """The epsilon that the shares themselves make, without any margin for chance; of no guesses 0."""
        excess = self.right - delta * self.sides * self.runs / 2
        return 0.0 if excess <= 0 else max(0.0, log(excess / self.wrong)) if self.wrong else inf


Parts = Sequence[tuple[int, EventCounts]]
"""Counts, each on runs fresh to its own rule, and their weights, which were set before."""


def refuted(parts: Parts, epsilon: float, delta: float, error: float) -> bool:
    """True if a claim is refuted: a true one is with a chance of at most `error`."""
    weights = np.sqrt([weight for weight, _ in parts])
    of_s = error * _SHARE_OF_S if delta else 0.0
    scores = [counts.score(epsilon, delta, of_s / len(parts)) for _, counts in parts]
    return bool(min(scores) > -inf and weights @ scores > -ndtri(error - of_s) * np.linalg.norm(weights))


def lower_epsilon(parts: Parts, delta: float, error: float) -> float:
    """The largest epsilon up to which all are refuted: the mechanism exceeds it, but for a chance of `error`."""
    low, high = 0.0, _LARGEST
    for _ in range(_HALVINGS if refuted(parts, low, delta, error) else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(parts, middle, delta, error) else (low, middle)
    return low


def forecast(right: Floats, wrong: Floats, runs: float, times: float, sides: int, delta: float) -> Floats:
    """About the epsilons that so many times as many guesses would prove, by Wilson's bound (1927); -inf for none.

    `right` and `wrong` are arrays of counts in so many `runs`. Each right count is taken for half of one less.
    """
    guesses = np.maximum(right + wrong, 1)
    t, n = np.maximum(right - 0.5, 0) / guesses, guesses * times
    square = _MARGIN**2 / n
    low = (t + square / 2 - np.sqrt(square * (t * (1 - t) + square / 4))) / (1 + square)
    allowance = delta * sides * runs / (2 * guesses)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(low > allowance, np.log((low - allowance) / (1 - low)), -inf)


def excess(right: Floats, wrong: Floats, runs: int, sides: int, claim: PrivacyClaim) -> Floats:
    """By how many standard errors the right guesses exceed what the claim allows beside the wrong ones.

    A half of a wrong one more stands for those not yet seen; less of it where delta allows some right ones anyway.
    """
    factor, allowed = exp(claim.epsilon), claim.delta * sides * runs / 2
    least = 0.5 / (1 + allowed)
    return (right - factor * wrong - allowed) / np.sqrt(allowed + (factor + factor**2) * (wrong + least))
