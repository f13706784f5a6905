"""Results of the same people without privacy: logistic regression on the same bins, and on the raw values.

`leaks`: names of features that are left out, since they alone tell the label.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from aggregator.lab.simulation.evaluation import roc_auc
from aggregator.lab.simulation.linear_sums import is_linear, reals_of_people
from aggregator.lab.simulation.people import FeatureColumn, People
from aggregator.lab.simulation.run import Plan, categories, exact_cuts
from aggregator.protocols.additive.reconstruct import Floats
from anon.protocols.categories import Value, clamp
from anon.protocols.histogram.thresholds import Cuts
from anon.protocols.sum.design import column_of
from anon.study.features import Feature
from anon.study.manifest import Manifest


def binned_ceiling(plan: Plan, train: People, test: People, leaks: Collection[str] = ()) -> float:
    """ROC AUC on `test` of logistic regression on one-hot bins with cuts found without noise; of a linear model, on its
    columns."""
    if is_linear(plan.manifest):
        return without_privacy(plan.manifest, [train], test, leaks)[1]
    cuts, features = exact_cuts(plan, train), _without(plan.manifest, leaks)
    return _auc(_bins(features, train, cuts), train, _bins(features, test, cuts), test)


def without_privacy(
    study: Manifest, trains: Sequence[People], test: People, leaks: Collection[str] = ()
) -> tuple[float, float]:
    """Accuracy and ROC AUC on `test` of logistic regression on a study's columns: the means over several groups, each
    of which learns alone. Of one label alone, or without a column, the more common label is said of everybody."""
    features, positive, found = _without(study, leaks), test.labels == 1, list[tuple[float, float]]()
    tested = _columns(study, features, test)
    for train in trains:
        if train.alike or not features:
            found.append((float((test.labels == round(float(train.labels.mean()))).mean()), 0.5))
            continue
        model = LogisticRegression(max_iter=1000).fit(_columns(study, features, train), train.labels)
        ranks: Floats = model.decision_function(tested)
        found.append((float(((ranks > 0) == positive).mean()), roc_auc(ranks, positive)))
    accuracy, auc = np.mean(found, axis=0)
    return float(accuracy), float(auc)


def raw_ceiling(plan: Plan, train: People, test: People, leaks: Collection[str] = ()) -> float:
    """ROC AUC on `test` of logistic regression on standardised numbers and one-hot texts, as the queries return them.

    A missing number is the middle of the range, with an indicator of its own.
    """
    pairs = [
        _raw(feature, train.columns[feature.name], test.columns[feature.name])
        for feature in _without(plan.manifest, leaks)
    ]
    return _auc([pair[0] for pair in pairs], train, [pair[1] for pair in pairs], test)


def _without(study: Manifest, leaks: Collection[str]) -> Sequence[Feature]:
    return [feature for feature in study.features if feature.name not in leaks]


def _auc(trained: Sequence[Floats], train: People, tested: Sequence[Floats], test: People) -> float:
    if not trained or train.alike or test.alike:
        return 0.5
    model = LogisticRegression(max_iter=1000).fit(np.hstack(trained), train.labels)
    return float(roc_auc_score(test.labels, model.decision_function(np.hstack(tested))))


def _columns(study: Manifest, features: Sequence[Feature], people: People) -> Floats:
    """Nothing of no feature."""
    columns = [column_of(feature) for feature in features]
    return reals_of_people(columns, study.label.name, people) if columns else np.zeros((len(people), 0))


def _bins(features: Sequence[Feature], people: People, cuts: Cuts) -> list[Floats]:
    indices = categories(features, people, cuts)
    return [np.eye(feature.cardinality)[indices[feature.name]] for feature in features]


def _raw(feature: Feature, train: FeatureColumn, test: FeatureColumn) -> tuple[Floats, Floats]:
    if feature.kind == "numeric":
        first, second = _numbers(feature, train), _numbers(feature, test)
        centre, scale = first.mean(axis=0), first.std(axis=0) + 1e-9
        return (first - centre) / scale, (second - centre) / scale
    known = {value: index for index, value in enumerate(dict.fromkeys(train.values))}
    return _indicators(known, train), _indicators(known, test)


def _numbers(feature: Feature, column: FeatureColumn) -> Floats:
    low, high = feature.range
    numbers = [float(value) if isinstance(value, (int, float)) else None for value in column.values]
    # As shares of the range: squares of very large numbers overflow.
    table: Sequence[tuple[float, float]] = [
        (0.5, 1.0) if number is None else ((clamp(feature, number) - low) / (high - low), 0.0) for number in numbers
    ]
    matrix: Floats = np.array(table)[column.index]
    return matrix


def _indicators(known: Mapping[Value, int], column: FeatureColumn) -> Floats:
    table = np.zeros((len(column.values), len(known)))
    for row, value in enumerate(column.values):
        if value in known:
            table[row, known[value]] = 1.0
    matrix: Floats = table[column.index]
    return matrix
