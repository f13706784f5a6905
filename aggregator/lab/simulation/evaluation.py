"""How well a model does on people whose labels are known: scores, ROC curve, calibration and errors by subgroup.

The test people are public, synthetic or last year's; the study itself never gives such data to anyone. This is the one
evaluation: simulation, planning, report, desk and notebook all score by it. The metrics equal scikit-learn's, which
checks its input anew for each of the many runs of a plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log, sqrt

import numpy as np
from attrs import frozen
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.metrics import roc_curve

from aggregator.lab.simulation.people import People
from aggregator.lab.simulation.run import categories, cells
from aggregator.protocols.additive.reconstruct import Floats
from aggregator.report.evaluation import Subgroup, TestEvaluation
from anon.protocols.models.ensemble import EnsembleModel
from anon.protocols.models.linear import TOLERANCE, LinearModel
from anon.protocols.models.published import PublishedModel
from anon.protocols.models.tables import THRESHOLD_TOLERANCE, Model, demand_tables
from anon.protocols.names import bin_names

Truths = NDArray[np.bool_]
_DECIMALS = 9
"""Of a score: sums of the same table entries in another order count as ties."""


@frozen
class TestScores:
    """A model on test people. `ece`: the expected calibration error over tenths of equal size."""

    auc: float
    f1: float
    accuracy: float
    ece: float


def evaluate(model: Model | LinearModel | EnsembleModel, test: People) -> TestScores:
    """The scores of a model; decisions are those of `Model.decide`, or of `predict` of the other forms."""
    return _scored(*_judged(model, test), test.labels == 1)


def _judged(model: Model | LinearModel | EnsembleModel, test: People) -> tuple[Floats, Floats, Truths]:
    """Ranks, probabilities and decisions."""
    if isinstance(model, Model):
        ranks = model_scores(model, test)
        chances = probabilities(model, ranks)
        return ranks, chances, _decided(model, chances)
    if isinstance(model, LinearModel):
        ranks = linear_scores(model, test)
        chances = _logistic(ranks)
    else:
        ranks = chances = np.mean([_logistic(linear_scores(each, test)) for each in model.linear], axis=0)
    return ranks, chances, chances >= model.threshold - TOLERANCE


def _logistic(log_odds: Floats) -> Floats:
    chances: Floats = 1 / (1 + np.exp(-np.clip(log_odds, -700, 700)))
    return chances


def evaluate_model(published: PublishedModel, test: People) -> TestEvaluation:
    """The scores, the curves and the subgroups at once. Deterministic. Raises `Refused` for a model of a number."""
    model = published
    if not isinstance(model, LinearModel | EnsembleModel) or (isinstance(model, LinearModel) and model.target):
        model = demand_tables(published)
    positive, (ranks, chances, decided) = test.labels == 1, _judged(model, test)
    scores = _scored(ranks, chances, decided, positive)
    return TestEvaluation(
        people=len(test),
        positive=float(positive.mean()),
        auc=scores.auc,
        auc_error=_auc_error(scores.auc, int(positive.sum()), int((~positive).sum())),
        f1=scores.f1,
        accuracy=scores.accuracy,
        ece=scores.ece,
        roc=roc_points(ranks, positive),
        calibration=tuple((predicted, share) for _count, predicted, share in _tenths(chances, positive)),
        subgroups=tuple(_subgroups(model, test, ranks, positive, decided)),
    )


def _scored(ranks: Floats, chances: Floats, decided: Truths, positive: Truths) -> TestScores:
    return TestScores(
        auc=roc_auc(ranks, positive),
        f1=_f1(decided, positive),
        accuracy=float((decided == positive).mean()),
        ece=calibration_error(chances, positive),
    )


def model_scores(model: Model, people: People) -> Floats:
    """Return scores that order people as `Model.probability` does, shape (people,)."""
    indices = categories(model.features, people, {cuts.feature: cuts.cuts for cuts in model.cuts})
    total = np.zeros(len(people))
    for table in model.tables:
        if model.ensemble == "soft":
            values = np.array(table.log_odds)
        else:
            values = table.weight * (2.0 * np.array(table.votes) - 1)
        total += values[cells(indices, table.features, table.cards)]
    return total


def linear_scores(model: LinearModel, people: People) -> Floats:
    """The log-odds of each person by a model without a target, shape (people,)."""
    total = np.full(len(people), model.intercept)
    for column, weight in zip(model.columns, model.weights, strict=True):
        held = people.columns[column.name]
        total += weight * np.array([*map(column.real, held.values)], dtype=np.float64)[held.index]
    return total


def probabilities(model: Model, ranks: Floats) -> Floats:
    """`Model.probability` of each person from the ranks of `model_scores`."""
    if model.ensemble == "soft":
        soft: Floats = 1 / (1 + np.exp(-(log(model.base_rate / (1 - model.base_rate)) + ranks)))
        return soft
    weight = sum(table.weight for table in model.tables)
    vote: Floats = np.clip((1 + ranks / weight) / 2, 0, 1) if weight > 0 else np.full(len(ranks), model.base_rate)
    return vote


def _decided(model: Model, chances: Floats) -> Truths:
    decided: Truths = chances >= model.threshold - THRESHOLD_TOLERANCE
    return decided


def _f1(decided: Truths, positive: Truths) -> float:
    """The harmonic mean of precision and recall; 0 where nobody is positive and nobody is decided to be."""
    named = int(decided.sum()) + int(positive.sum())
    return 2 * int((decided & positive).sum()) / named if named else 0.0


def roc_auc(ranks: Floats, positive: Truths) -> float:
    """The area under the ROC curve, by the Mann-Whitney statistic; 1/2 without both labels."""
    if not _has_both(positive):
        return 0.5
    hits = int(positive.sum())
    above = float(rankdata(np.round(ranks, _DECIMALS))[positive].sum()) - hits * (hits + 1) / 2
    return above / (hits * (len(positive) - hits))


def roc_points(ranks: Floats, positive: Truths) -> tuple[tuple[float, float], ...]:
    """From (0, 0) to (1, 1), a point after each different rank; only the diagonal's ends without both labels."""
    if not _has_both(positive):
        return ((0.0, 0.0), (1.0, 1.0))
    misses, hits, _thresholds = roc_curve(positive, np.round(ranks, _DECIMALS), drop_intermediate=False)
    return tuple((float(x), float(y)) for x, y in zip(misses, hits, strict=True))


def calibration_error(chances: Floats, positive: Truths) -> float:
    """The expected calibration error: people in ten equal parts by probability, |mean probability - share| averaged."""
    gaps = [abs(predicted - share) * count for count, predicted, share in _tenths(chances, positive)]
    return sum(gaps) / len(chances)


def _tenths(chances: Floats, positive: Truths) -> list[tuple[int, float, float]]:
    """Of each tenth by probability: how many people, their mean probability and their share of positives."""
    order = np.argsort(chances, kind="stable")
    parts = [part for part in np.array_split(order, 10) if len(part)]
    return [(len(part), float(chances[part].mean()), float(positive[part].mean())) for part in parts]


def _has_both(positive: Truths) -> bool:
    return bool(positive.any()) and not bool(positive.all())


def _auc_error(auc: float, plus: int, minus: int) -> float:
    """The standard error of an AUC by Hanley and McNeil (1982)."""
    if not plus or not minus:
        return 0.5
    positives, negatives = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    spread = auc * (1 - auc) + (plus - 1) * (positives - auc**2) + (minus - 1) * (negatives - auc**2)
    return sqrt(max(spread, 0.0) / (plus * minus))


def _subgroups(
    model: Model | LinearModel | EnsembleModel, test: People, ranks: Floats, positive: Truths, decided: Truths
) -> Iterator[Subgroup]:
    """Of a linear model by declared cuts: it knows no others."""
    if isinstance(model, Model):
        features, cuts = model.features, {cut.feature: cut.cuts for cut in model.cuts}
    else:
        features = tuple(feature for feature in model.features if feature.cuts)
        cuts = {feature.name: feature.cuts for feature in features}
    indices = categories(features, test, cuts)
    for feature in features:
        own = 1 if feature.missing == "own" else 0
        card = feature.cardinality if feature.kind == "categorical" else len(cuts[feature.name]) + 1 + own
        for category, name in enumerate(bin_names(feature, cuts.get(feature.name, ()), card)):
            inside = indices[feature.name] == category
            if inside.any():
                yield _subgroup(name, ranks[inside], positive[inside], decided[inside])


def _subgroup(name: str, ranks: Floats, positive: Truths, decided: Truths) -> Subgroup:
    return Subgroup(
        name=name,
        people=len(positive),
        positive=float(positive.mean()),
        error=float(np.mean(decided != positive)),
        false_positive=float(decided[~positive].mean()) if (~positive).any() else None,
        false_negative=float((~decided[positive]).mean()) if positive.any() else None,
        auc=roc_auc(ranks, positive) if _has_both(positive) else None,
    )
