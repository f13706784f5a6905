"""Regularised logistic regression by a number of steps that is fixed beforehand, enough for every set of records.

The minimum is of (1/n) sum log(1 + exp(-y w.x)) + (lambda / 2) |w|^2, for labels y of -1 and 1 and rows |x| <= 1. It
is lambda-strongly convex, and 1/4 + lambda smooth. Nesterov's steps with constant momentum (2004, theorem 2.2.3) bring
F(w_k) - F* to at most (1 - sqrt(lambda / smooth))^k (F(0) - F* + (lambda / 2) |w*|^2). The bracket is at most log 2. So
no stopping rule looks at the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, exp, fsum, log, log1p, sqrt
from operator import mul
from typing import Final

from anon.errors import InvalidValue

SLACK: Final = Fraction(1, 2**25)
"""The weights that `fit` returns lie within this L2 distance of the exact minimum: half of it is the steps', and half
is left to the rounding of floating point. `fsum` rounds a sum once, however many rows and columns there are. So this
part is some 2e-9 at `LEAST`, and less above."""
LEAST: Final = Fraction(1, 100_000)
LARGEST: Final = Fraction(1000)
"""The ends of lambda. At 1e-7 a single row is known whose weight is rounded by 10 times the slack."""
_STEPS_PART: Final = float(SLACK) / 2
_MOST: Final = Fraction(27_847, 100_000)
"""The largest t / (1 + exp(t)), which is Lambert's W(1 / e), rounded up."""


def steps_for(strength: Fraction) -> int:
    """The steps that bring the weights within half of `SLACK` of the minimum, whatever the records are. `strength`:
    lambda. Raises `InvalidValue` unless it lies from `LEAST` to `LARGEST`.

    >>> steps_for(Fraction(1, 1000)), steps_for(Fraction(1, 10)), steps_for(Fraction(1))
    (664, 51, 17)
    """
    if not LEAST <= strength <= LARGEST:
        raise InvalidValue(f"lambda: expected a number from {LEAST} to {LARGEST}")
    mu = float(strength)
    start = 0.5 * log(2 * log(2) / mu) - log(_STEPS_PART)
    return max(1, ceil(2 * start / -log1p(-sqrt(mu / (0.25 + mu)))))


def longest_weights(strength: Fraction) -> Fraction:
    """An upper bound of |w*|, whatever the records are: 1 / lambda, since the mean gradient has at most length 1, and
    sqrt(W(1 / e) / lambda). For where the slope is 0, lambda |w|^2 is the mean of t / (1 + exp(t)) over margins t.
    Rounded up, and `SLACK` included."""
    squared = _MOST / strength
    shift = 2**24
    root = Fraction(ceil(sqrt(float(squared)) * shift) + 1, shift)
    return min(1 / strength, root) + SLACK


def moved_by_one(strength: Fraction, fewest: int) -> Fraction:
    """The L2 sensitivity of what `fit` returns with `fewest`: a record in place of another, one more, or one less.

    Each moves the mean gradient at the minimum by at most 2 / n, n >= `fewest` (Chaudhuri and Monteleoni 2008), and the
    minimum by 1 / lambda of that. Pathak, Rane and Raj (2010) print the same for lambda |w|^2, for which it is half.
    The slack of both weights is added.
    """
    return 2 / (strength * fewest) + 2 * SLACK


def fit(
    rows: Sequence[Sequence[float]], labels: Sequence[int], strength: Fraction, fewest: int = 1
) -> list[float]:
    """Return the weights for these rows and labels of 0 and 1. Fewer rows than `fewest` are averaged over `fewest`.

    `rows`: one sequence of equal length each, of norm at most 1. Raises `InvalidValue` without a row.
    """
    if not rows or len(rows) != len(labels):
        raise InvalidValue("rows: expected at least one, and a label for each")
    mu, n = float(strength), max(len(rows), fewest)
    smooth = 0.25 + mu
    momentum = (sqrt(smooth) - sqrt(mu)) / (sqrt(smooth) + sqrt(mu))
    columns = list(zip(*rows, strict=True))
    old = [0.0] * len(columns)
    ahead = old
    for _ in range(steps_for(strength)):
        errors = [_logistic(fsum(map(mul, ahead, row))) - label for row, label in zip(rows, labels, strict=True)]
        slopes = (fsum(map(mul, errors, column)) / n for column in columns)
        new = [at - (slope + mu * at) / smooth for at, slope in zip(ahead, slopes, strict=True)]
        ahead = [here + momentum * (here - before) for here, before in zip(new, old, strict=True)]
        old = new
    return old


def _logistic(log_odds: float) -> float:
    return 1 / (1 + exp(-log_odds)) if log_odds >= 0 else 1 - 1 / (1 + exp(log_odds))
