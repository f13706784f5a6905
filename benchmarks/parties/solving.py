"""Minima of regularised losses by numpy: local models of one or many parties, and models published from s."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log, sqrt

import numpy as np
from attrs import frozen

from benchmarks.parties.noise import Array

CLOSE = 1e-9
"""The gradient's norm over lambda at which Newton's steps end: the distance from the minimum at most."""
_STEPS, _FEWER = 60, 1e-5


def logistic(log_odds: Array) -> Array:
    """The chance of these log-odds, without overflow."""
    return 0.5 + 0.5 * np.tanh(log_odds / 2)


def newton(rows: Array, labels: Array, strength: float, weights: Array | None = None) -> Array:
    """The minimum of the mean of log(1 + exp(-y w.x)) plus (strength / 2) |w|^2, for labels y of -1 and 1.

    `weights`: of the rows, which sum up to 1. Raises `ArithmeticError` without an answer within `CLOSE`.
    """
    of_rows: Array = np.full(len(rows), 1 / len(rows)) if weights is None else weights
    w: Array = np.zeros(rows.shape[1])

    def value(at: Array) -> float:
        return float(of_rows @ np.logaddexp(0, -labels * (rows @ at)) + strength / 2 * at @ at)

    for _ in range(_STEPS):
        wrong = logistic(-labels * (rows @ w))
        slope = strength * w - rows.T @ (of_rows * labels * wrong)
        if np.linalg.norm(slope) <= CLOSE * strength:
            return w
        bend = (rows * (of_rows * wrong * (1 - wrong))[:, None]).T @ rows + strength * np.eye(len(w))
        step, now = np.linalg.solve(bend, slope), value(w)
        while value(w - step) > now + 1e-13:
            step /= 2
        w = w - step
    raise ArithmeticError("no minimum was found")


@frozen
class Loss:
    """A loss whose mean over public rows is linear in the votes: mean of f(W x) minus W.s, s = mean of votes times x.

    `slope`: the gradient of f, from scores (rows, ..., outputs). `bend`: no second derivative of f is larger. `moved`:
    the square of the length by which one party's votes on a row of norm 1 move its part of s. A vote of one output is
    -1/2 or 1/2. A vote among classes is 1 at the class: replaced, two entries change by 1, so the square is 2.
    """

    bend: float
    moved: int
    slope: Callable[[Array], Array]

    def right(self, scores: Array, labels: Array) -> Array:
        """Of scores (rows, draws, outputs): where the largest, or the sign of the only one, is the label."""
        found = scores[..., 0] > 0 if scores.shape[-1] == 1 else scores.argmax(axis=-1)
        return np.asarray(found == labels[:, None])


def _softmax(scores: Array) -> Array:
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares: Array = raised / raised.sum(axis=-1, keepdims=True)
    return shares


def _half_tanh(scores: Array) -> Array:
    return np.tanh(scores / 2) / 2


BINARY = Loss(0.25, 1, _half_tanh)
"""f = log(2 cosh(w.x / 2)): the logistic loss of votes 0 and 1 is f - (v - 1/2) w.x."""
CLASSES = Loss(0.5, 2, _softmax)
"""f = log of the sum over classes of exp(w_k.x)."""


def published(loss: Loss, rows: Array, weights: Array, sums: Array, strength: float) -> Array:
    """The minimum of the mean loss plus (strength / 2) |W|^2 for each of many s, of shape (draws, columns, outputs).

    Nesterov's steps with constant momentum, so many that the distance is some 1e-5 of the first.
    """
    draws, length, outputs = sums.shape
    wide = np.ascontiguousarray(sums.transpose(1, 0, 2).reshape(length, -1), dtype=np.float32)
    thin, share = rows.astype(np.float32), weights.astype(np.float32)[:, None]
    steepest = loss.bend * float(np.linalg.eigvalsh((thin * share).T @ thin)[-1]) * 1.001 + strength
    root = sqrt(strength / steepest)
    momentum = (1 - root) / (1 + root)
    old: Array = np.zeros_like(wide)
    ahead = old
    for _ in range(ceil(-log(_FEWER) / root) + 1):
        slope = loss.slope((thin @ ahead).reshape(len(rows), draws, outputs)).reshape(len(rows), -1)
        new = ahead - (thin.T @ (share * slope) - wide + strength * ahead) / steepest
        ahead, old = new + momentum * (new - old), new
    return old.reshape(length, draws, outputs).transpose(1, 0, 2).astype(float)


def own_models(loss: Loss, rows: Array, labels: Array, strength: float, steps: int = 300) -> Array:
    """Each party's weights (parties, columns, outputs) from its rows (parties, records, columns).

    `labels`: votes (parties, records, outputs), as the loss has them. The minimum lies in the span of the rows.
    """
    inner = np.matmul(rows, rows.transpose(0, 2, 1)).astype(float)
    records = rows.shape[1]
    steepest = loss.bend + strength
    root = sqrt(strength / steepest)
    momentum = (1 - root) / (1 + root)
    old: Array = np.zeros(labels.shape)
    ahead = old
    for _ in range(steps):
        new = ahead - ((loss.slope(np.matmul(inner, ahead)) - labels) / records + strength * ahead) / steepest
        ahead, old = new + momentum * (new - old), new
    weights: Array = np.matmul(rows.transpose(0, 2, 1), old)
    return weights
