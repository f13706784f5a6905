"""Columns that tell the label by themselves: often written down after it, or the label in another spelling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aggregator.lab.simulation.evaluation import roc_auc
from aggregator.lab.simulation.people import FeatureColumn, People
from aggregator.protocols.additive.reconstruct import Counts
from anon.study.features import Feature

TELLS_ALL = 0.98
"""The ROC AUC from which on one column says too much to have been known beforehand."""

_BINS = 50
_FEWEST = 10
"""So many people with each label are needed for saying anything."""


def leaking(features: Sequence[Feature], train: People, test: People) -> tuple[str, ...]:
    """The names of features of which each alone ranks the test people nearly without fault, whichever way it goes."""
    positive = int(test.labels.sum())
    if min(positive, len(test) - positive) < _FEWEST:
        return ()
    return tuple(feature.name for feature in features if _auc(feature, train, test) >= TELLS_ALL)


def _auc(feature: Feature, train: People, test: People) -> float:
    """Of the share of positives among the peers with the same value, or a value near by."""
    known, asked = train.columns[feature.name], test.columns[feature.name]
    ends = _ends(known) if feature.kind == "numeric" else np.zeros(0)
    first, second = (_binned(feature, column, known, ends) for column in (known, asked))
    size = int(max(first.max(), second.max())) + 1
    rate = float(train.labels.mean())
    met = np.bincount(first, minlength=size) + 1
    shares = (np.bincount(first, weights=train.labels, minlength=size) + rate) / met
    return roc_auc(shares[second], test.labels == 1)


def _ends(column: FeatureColumn) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    numbers = column.numbers[column.index]
    numbers = numbers[~np.isnan(numbers)]
    return np.unique(np.quantile(numbers, np.linspace(0, 1, _BINS + 1)[1:-1])) if len(numbers) else np.zeros(0)


def _binned(
    feature: Feature, column: FeatureColumn, known: FeatureColumn, ends: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> Counts:
    """Each person's bin of a number, or the place of a text among the known ones; a last one for anything else."""
    if feature.kind == "numeric":
        table = np.searchsorted(ends, column.numbers).astype(np.int64)
        table[np.isnan(column.numbers)] = len(ends) + 1
        return table[column.index]
    places = {value: place for place, value in enumerate(known.values)}
    table = np.array([places.get(value, len(places)) for value in column.values], dtype=np.int64)
    return table[column.index]
