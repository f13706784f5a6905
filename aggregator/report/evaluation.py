"""How the published model does on people whose labels staff know: ROC curve, calibration and errors by subgroup.

The test people are public, synthetic or last year's; the study itself never gives such data to anyone.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log, sqrt

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from aggregator.protocols.histogram.reconstruct import Floats
from aggregator.report.names import bin_names
from aggregator.simulate import evaluate, model_scores, roc_auc
from aggregator.simulation.people import People
from aggregator.simulation.run import categories
from anon.model import Model

Truths = NDArray[np.bool_]
FEWEST = 20
"""Subgroups smaller than this are marked: their rates say little."""


@frozen
class Subgroup:
    """The errors among people in one category of one feature. Rates are None where nobody could be wrong that way."""

    name: str
    people: int
    positive: float
    error: float
    false_positive: float | None
    false_negative: float | None
    auc: float | None

    @property
    def margin(self) -> float:
        """Half the width of the error's 95 % interval (Wald)."""
        return 1.96 * sqrt(self.error * (1 - self.error) / self.people)


@frozen
class Evaluation:
    """On `people` test people, of whom the share `positive` is: scores, points (false positive rate, true positive
    rate) of the ROC curve, and (mean prediction, share of positives) of tenths by prediction."""

    people: int
    positive: float
    auc: float
    auc_error: float
    f1: float
    accuracy: float
    ece: float
    roc: tuple[tuple[float, float], ...]
    calibration: tuple[tuple[float, float], ...]
    subgroups: tuple[Subgroup, ...]


def evaluate_model(model: Model, test: People) -> Evaluation:
    """Everything at once. Deterministic."""
    ranks, positive = np.round(model_scores(model, test), 9), test.labels == 1
    chances = probabilities(model, ranks)
    called = chances >= model.threshold - 1e-12
    scores = evaluate(model, test)
    return Evaluation(
        people=len(test),
        positive=float(positive.mean()),
        auc=scores.auc,
        auc_error=_auc_error(scores.auc, int(positive.sum()), int((~positive).sum())),
        f1=scores.f1,
        accuracy=scores.accuracy,
        ece=scores.ece,
        roc=roc_points(ranks, positive),
        calibration=_calibration(chances, positive),
        subgroups=tuple(_subgroups(model, test, ranks, positive, called)),
    )


def probabilities(model: Model, ranks: Floats) -> Floats:
    """`Model.probability` of everybody from their ranks (`model_scores`)."""
    if model.ensemble == "soft":
        soft: Floats = 1 / (1 + np.exp(-(log(model.base_rate / (1 - model.base_rate)) + ranks)))
        return soft
    weight = sum(table.weight for table in model.tables)
    vote: Floats = np.clip((1 + ranks / weight) / 2, 0, 1) if weight > 0 else np.full(len(ranks), model.base_rate)
    return vote


def roc_points(ranks: Floats, positive: Truths) -> tuple[tuple[float, float], ...]:
    """From (0, 0) to (1, 1), a point after each different rank; only the diagonal's ends without both labels."""
    plus, minus = int(positive.sum()), int((~positive).sum())
    if not plus or not minus:
        return ((0.0, 0.0), (1.0, 1.0))
    values, index = np.unique(-ranks, return_inverse=True)
    hits = np.cumsum(np.bincount(index[positive], minlength=len(values))) / plus
    misses = np.cumsum(np.bincount(index[~positive], minlength=len(values))) / minus
    return ((0.0, 0.0), *((float(x), float(y)) for x, y in zip(misses, hits, strict=True)))


def _auc_error(auc: float, plus: int, minus: int) -> float:
    """Hanley and McNeil (1982)."""
    if not plus or not minus:
        return 0.5
    one, two = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    spread = auc * (1 - auc) + (plus - 1) * (one - auc**2) + (minus - 1) * (two - auc**2)
    return sqrt(max(spread, 0.0) / (plus * minus))


def _calibration(chances: Floats, positive: Truths) -> tuple[tuple[float, float], ...]:
    order = np.argsort(chances, kind="stable")
    parts = [part for part in np.array_split(order, 10) if len(part)]
    return tuple((float(chances[part].mean()), float(positive[part].mean())) for part in parts)


def _subgroups(model: Model, test: People, ranks: Floats, positive: Truths, called: Truths) -> Iterator[Subgroup]:
    cuts = {one.feature: one.cuts for one in model.cuts}
    found = categories(model.features, test, cuts)
    for feature in model.features:
        own = 1 if feature.missing == "own" else 0
        card = feature.cardinality if feature.kind == "categorical" else len(cuts[feature.name]) + 1 + own
        for category, name in enumerate(bin_names(feature, cuts.get(feature.name, ()), card)):
            inside = found[feature.name] == category
            if inside.any():
                yield _subgroup(name, ranks[inside], positive[inside], called[inside])


def _subgroup(name: str, ranks: Floats, positive: Truths, called: Truths) -> Subgroup:
    both = bool(positive.any()) and bool((~positive).any())
    return Subgroup(
        name=name,
        people=len(positive),
        positive=float(positive.mean()),
        error=float(np.mean(called != positive)),
        false_positive=float(called[~positive].mean()) if (~positive).any() else None,
        false_negative=float((~called[positive]).mean()) if positive.any() else None,
        auc=roc_auc(ranks, positive) if both else None,
    )
