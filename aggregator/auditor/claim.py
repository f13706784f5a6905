"""The claim that is tested, and the epsilon that counts of an event prove.

Each run draws one of two neighbours by a fair coin. Of the runs whose output lies in an event S, the first neighbour's
share has the chance t = P / (P + P'). A claim (epsilon, delta) says P <= e^epsilon P' + delta, so that with
s = (P + P') / 2 it says t (1 + e^epsilon) <= e^epsilon + delta / (2 s). Clopper and Pearson (1934) bound t given
the number of runs in S, exactly; with delta above 0 they bound s as well, at a tenth of the error.
"""

from __future__ import annotations

from math import inf, log

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray
from scipy.special import betaincinv

from anon.errors import InvalidValue

Floats = NDArray[np.float64]
_SHARE_OF_S = 0.1
_ROUNDING = 1e-9  # far above the errors of betaincinv


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
    """How many of `runs` fresh runs fell into an event: those of the likelier neighbour, and those of the other one."""

    likelier: int
    other: int
    runs: int

    def epsilon(self, delta: float, error: float) -> float:
        """An epsilon that the mechanism exceeds, but for a chance of `error`; at least 0."""
        found = lower_epsilons(np.array([self.likelier]), np.array([self.other]), self.runs, delta, error)
        return max(0.0, float(found[0]) - _ROUNDING)

    def promise(self, delta: float, error: float, times: int) -> float:
        """The bound that the same shares would prove with so many times the runs.

        The likelier has half a run less, and the other half a run more.
        """
        k, m = np.array([max(self.likelier - 0.5, 0)]), np.array([self.other + 0.5])
        return float(lower_epsilons(k * times, m * times, self.runs * times, delta, error)[0])

    def measured(self, delta: float) -> float:
        """The epsilon that the shares themselves make, without any margin for chance; of empty events 0."""
        if not self.likelier:
            return 0.0
        excess = self.likelier - delta * self.runs / 2
        return inf if not self.other else max(0.0, log(excess / self.other)) if excess > 0 else 0.0


def lower_epsilons(likelier: Floats, other: Floats, runs: float, delta: float, error: float) -> Floats:
    """The lower bounds for arrays of counts. EventCounts may be fractions, as those of a forecast are; -inf proves
    nothing."""
    k, m = np.asarray(likelier, float), np.asarray(other, float)
    of_t = error * (1 - _SHARE_OF_S) if delta else error
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(k > 0, betaincinv(np.maximum(k, 1e-9), m + 1, of_t), 0.0)
        if delta:
            inside = k + m
            s = betaincinv(np.maximum(inside, 1e-9), np.maximum(runs - inside, 0) + 1, error * _SHARE_OF_S)
            t = np.where(inside > 0, t - delta / (2 * s), 0.0)
            rest = 1 - t - delta / (2 * s)
        else:
            rest = 1 - t
        return np.where(t > 0, np.log(t / rest), -inf)
