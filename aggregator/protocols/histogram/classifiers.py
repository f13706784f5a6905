"""Partition classifiers: what one feature subset's noisy histogram says about the label, cell by cell.

Every classifier returns a shrunk log-odds contrast for each cell of its subset: ln odds of the positive label in the
cell minus ln odds overall. Classes are balanced in each (erratum 15): a cell votes positive where its contrast is above
0. All are regularised by the noise's known covariance, never by folds of the noisy data itself (erratum 16).

scikit-learn is imported by the two classifiers that use it: it takes longer to load than a study of thousands to learn.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from aggregator.protocols.additive.reconstruct import Floats, Histogram, projected

PRIOR_VARIANCE = 1.0
"""Of a cell's log-odds contrast before any report: one unit of log-odds, a factor of 2.7 in the odds."""

EXTREME = 0.02
"""Rates nearer to 0 or 1 than this are not believed from noisy cells; it bounds a contrast."""

Classifier = Callable[[Histogram, float, frozenset[str]], Floats]
"""(histogram, base rate, numeric features) -> log-odds contrast of each cell, shape (cells,)."""


def soft(histogram: Histogram, rate: float, numeric: frozenset[str]) -> Floats:
    """The posterior mean of each cell's contrast under a normal prior and the known noise covariance.

    With d_b = (1 - rate) t_b1 - rate t_b0 from the unprojected shares t, d is rate (1 - rate) N_b w_b plus noise of
    covariance V = A Cov A'. A generalised ridge: w = s G (G s G + V)^-1 d with G = diag(rate (1 - rate) N_b) and prior
    variance s. A cell nobody can tell apart from noise gets 0.
    """
    if histogram.n == 0:
        return np.zeros(len(histogram.shares) // 2)
    contrast, noise = label_contrast(histogram, rate)
    gain = np.diag(rate * (1 - rate) * cell_shares(histogram))
    slope = PRIOR_VARIANCE * gain @ np.linalg.inv(gain @ gain * PRIOR_VARIANCE + noise)
    return _log_odds(rate + rate * (1 - rate) * (slope @ contrast), rate)


def logistic(histogram: Histogram, rate: float, numeric: frozenset[str]) -> Floats:
    """Balanced logistic regression on weighted rows, one per cell and label, with one-hot features.

    The rows' total weight is the number of noiseless reports that would tell as much about the contrast. So the penalty
    1/`PRIOR_VARIANCE` grows against the data as the noise does. Weights are the projected shares.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    rows = weighted_rows(histogram, rate)
    if rows is None:
        return np.zeros(len(histogram.shares) // 2)
    # Where the rows weigh less than the prior, the columns are scaled down with the penalty: the same optimum, but the
    # solver's steps stay far above rounding.
    scale = min(1.0, float(np.sqrt(PRIOR_VARIANCE * rows.sum())))
    design = one_hot(histogram.cards) * scale
    model = LogisticRegression(C=PRIOR_VARIANCE / scale**2, solver="newton-cholesky")
    with warnings.catch_warnings():
        # With hardly any contrast the first step is already the optimum to the last bit, and the solver says so.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(np.repeat(design, 2, axis=0), np.tile([0, 1], len(design)), sample_weight=rows)
    contrast: Floats = model.decision_function(design)
    return contrast


def tree(histogram: Histogram, rate: float, numeric: frozenset[str]) -> Floats:
    """A balanced decision tree on the same weighted rows; a leaf is no lighter than twice a cell's standard error.

    Numeric features are ordered; others are one-hot. A leaf's odds have one prior row of each label added.
    """
    from sklearn.tree import DecisionTreeClassifier

    rows = weighted_rows(histogram, rate)
    if rows is None:
        return np.zeros(len(histogram.shares) // 2)
    design = _tree_columns(histogram, numeric)
    error = float(np.sqrt(np.mean(np.diag(label_contrast(histogram, rate)[1])))) / (rate * (1 - rate)) ** 0.5
    # scikit-learn permutes the features at each split, so ties fall by chance without a fixed state.
    model = DecisionTreeClassifier(min_weight_fraction_leaf=min(2 * error, 0.5), random_state=0)
    model.fit(np.repeat(design, 2, axis=0), np.tile([0, 1], len(design)), sample_weight=rows)
    leaves = model.apply(design)
    heavy = np.array([rows.reshape(-1, 2)[leaves == leaf].sum(axis=0) for leaf in leaves])
    odds: Floats = np.log((heavy[:, 1] + 1) / (heavy[:, 0] + 1))
    return odds


CLASSIFIERS: Mapping[str, Classifier] = {"soft": soft, "logistic": logistic, "tree": tree}
"""By the name a study gives them."""


def cell_shares(histogram: Histogram) -> Floats:
    """The share of each feature cell, shrunk to equal shares by its noise, kept positive; they sum to 1. (cells,)."""
    shares = histogram.by_label.sum(axis=1)
    cells = len(shares)
    variance = _fold(histogram.covariance, np.ones(2))
    noise = np.maximum(np.diag(variance), 0)
    spread = float(np.sum((shares - 1 / cells) ** 2))
    kept = max(0.0, 1 - float(noise.sum()) / spread) if spread > 0 else 0.0
    smooth = np.maximum(1 / cells + kept * (shares - 1 / cells), np.maximum(np.sqrt(noise) / 2, 1e-3))
    positive: Floats = smooth / smooth.sum()
    return positive


def label_contrast(histogram: Histogram, rate: float) -> tuple[Floats, Floats]:
    """(1 - rate) t_b1 - rate t_b0 of each feature cell, unprojected, and its covariance: (cells,), (cells, cells)."""
    weights = np.array([-rate, 1 - rate])
    return histogram.by_label @ weights, _fold(histogram.covariance, weights)


def equivalent_reports(histogram: Histogram, rate: float) -> float:
    """How many noiseless reports of a feature that says nothing would have this noise in the contrast; at most n."""
    if histogram.n == 0:
        return 0.0
    noise = float(np.trace(label_contrast(histogram, rate)[1]))
    return min(float(histogram.n), rate * (1 - rate) / noise) if noise > 0 else float(histogram.n)


def weighted_rows(histogram: Histogram, rate: float) -> Floats | None:
    """Exact weights of the rows (cell, label), each label's together half of `equivalent_reports`, shape (m,).

    None when the histogram knows nothing or knows one label only.
    """
    if histogram.n == 0:
        return None
    shares = projected(histogram).reshape(-1, 2)
    totals = shares.sum(axis=0)
    if np.any(totals <= 0):
        return None
    weights: Floats = (equivalent_reports(histogram, rate) / 2 * shares / totals).reshape(-1)
    return weights


def one_hot(cards: tuple[int, ...]) -> Floats:
    """One row per cell and one column per category of each feature, shape (cells, sum of cards)."""
    return np.concatenate([np.eye(card)[index] for card, index in zip(cards, _indices(cards), strict=True)], axis=1)


def _tree_columns(histogram: Histogram, numeric: frozenset[str]) -> Floats:
    columns: list[Any] = []
    for name, card, index in zip(histogram.features, histogram.cards, _indices(histogram.cards), strict=True):
        columns.append(index[:, None].astype(float) if name in numeric else np.eye(card)[index])
    return np.concatenate(columns, axis=1)


def _indices(cards: tuple[int, ...]) -> list[Any]:
    return list(np.unravel_index(np.arange(int(np.prod(cards))), cards))


def _fold(covariance: Floats, weights: Floats) -> Floats:
    cells = len(covariance) // 2
    folded: Floats = np.einsum("aibj,i,j->ab", covariance.reshape(cells, 2, cells, 2), weights, weights)
    return folded


def _log_odds(rates: Floats, rate: float) -> Floats:
    low = min(EXTREME, rate / 2, (1 - rate) / 2)
    believed = np.clip(rates, low, 1 - low)
    contrast: Floats = np.log(believed / (1 - believed)) - np.log(rate / (1 - rate))
    return contrast
