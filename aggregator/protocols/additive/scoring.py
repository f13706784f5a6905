"""Scores of a partition classifier from the noisy cells of a cohort that took no part in fitting it.

Cross-validation folds cut from one noisy histogram share its noise and flatter the classifier (erratum 16), so a share
of the reports, drawn by their tags after closing, only scores. Cells are used unprojected. A ratio's denominator comes
from the base rate pooled over all surveys rather than from the cells. So noise in it cannot blow up a score.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from aggregator.protocols.additive.reconstruct import Floats, Histogram

Truths = NDArray[np.bool_]


@frozen
class Scores:
    """Each in [0, 1]. Without any scoring report, what a classifier that knows nothing would get.

    `f1_error`, `auc_error`: standard errors by the delta method, of the value before it is kept in [0, 1], at most 1/2.
    """

    f1: float
    auc: float
    accuracy: float
    reports: int
    f1_error: float = 0.5
    auc_error: float = 0.5


def score(log_odds: Sequence[float] | Floats, scoring: Histogram, rate: float) -> Scores:
    """The scores of a classifier with these cell contrasts (positive where above 0) on the scoring cells."""
    contrast = np.asarray(log_odds, dtype=float)
    if scoring.n == 0:
        return Scores(f1=2 * rate / (1 + 2 * rate), auc=0.5, accuracy=0.5, reports=0)
    votes = contrast > 0
    cells = scoring.by_label
    return Scores(
        f1=f1_score(votes, cells, rate),
        auc=auc_score(contrast, cells, rate),
        accuracy=accuracy(votes, cells),
        reports=scoring.n,
        f1_error=_error(_f1_slope(votes, cells, rate), scoring),
        auc_error=_error(_auc_slope(contrast, cells, rate), scoring),
    )


def f1_score(votes: Truths, cells: Floats, rate: float) -> float:
    """2 TP / (predicted positive + positive), kept in [0, 1]; `cells` are shares (cells, 2)."""
    hits = float(cells[votes, 1].sum())
    # Cells that are not projected may sum to less than nothing.
    called = max(float(cells[votes].sum()), 0.0)
    return _unit(2 * hits / (called + rate))


def auc_score(contrast: Floats, cells: Floats, rate: float) -> float:
    """P(contrast of a positive > contrast of a negative) + P(equal)/2, kept in [0, 1]: a sum over pairs of cells.

    1/2 is moved by the reports alone: the sum of (wins - losses)/2 over pairs, divided by rate (1 - rate).
    """
    ahead = np.sign(contrast[:, None] - contrast[None, :])
    return _unit(0.5 + float(cells[:, 1] @ ahead @ cells[:, 0]) / (2 * rate * (1 - rate)))


def accuracy(votes: Truths, cells: Floats) -> float:
    """The share of right votes, kept in [0, 1]."""
    return _unit(float(cells[votes, 1].sum() + cells[~votes, 0].sum()))


def _f1_slope(votes: Truths, cells: Floats, rate: float) -> Floats:
    hits, reached = float(cells[votes, 1].sum()), max(float(cells[votes].sum()), 0.0) + rate
    slope = np.zeros_like(cells)
    slope[votes] -= 2 * hits / reached**2
    slope[votes, 1] += 2 / reached
    return slope


def _auc_slope(contrast: Floats, cells: Floats, rate: float) -> Floats:
    ahead = np.sign(contrast[:, None] - contrast[None, :]) / (2 * rate * (1 - rate))
    return np.column_stack([cells[:, 1] @ ahead, ahead @ cells[:, 0]])


def _error(slope: Floats, scoring: Histogram) -> float:
    flat = slope.reshape(-1)
    return min(sqrt(max(float(flat @ scoring.covariance @ flat), 0.0)), 0.5)


def _unit(value: float) -> float:
    return min(max(value, 0.0), 1.0)
