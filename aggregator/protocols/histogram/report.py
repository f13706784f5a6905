"""The report's part on a histogram study: its tables, what moves a prediction, and the estimates behind both."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from aggregator.protocols.histogram.results import HOSTILE_SHARE, LearnedStudy, PartitionResult
from anon.protocols.names import cell_names, with_label
from anon.study.manifest import Manifest

_MOST_ROWS = 64
Figure = tuple[str, float, float, float]
"""A named value with the ends of its interval."""


@frozen
class Cell:
    """One category as the page shows it: the most likely share, the unbiased estimate and its error; bar (of the first)
    and whisker (of the others) are percent of the width."""

    name: str
    likely: float
    estimate: float
    error: float
    bar: float
    low: float
    high: float


def values_of(manifest: Manifest, learned: LearnedStudy) -> Mapping[str, object]:
    """The values of the template."""
    partitions = [
        {"result": result, "cells": _cells(manifest, learned, result), "categories": len(result.shares)}
        for result in learned.partitions
    ]
    return {
        "partitions": partitions,
        "hostile": f"{HOSTILE_SHARE:.0%}",
        "influence": max((one.influence for one in learned.partitions), default=0.0),
        "scores": scores_of(learned),
        "effects": _effects(manifest, learned),
    }


def scores_of(learned: LearnedStudy) -> list[Figure]:
    """The AUC of each table, with its 95 % interval."""
    scored = [one for one in learned.partitions if one.scores.reports]
    return [
        (
            " × ".join(one.features),
            one.scores.auc,
            max(one.scores.auc - 1.96 * one.scores.auc_error, 0),
            min(one.scores.auc + 1.96 * one.scores.auc_error, 1),
        )
        for one in scored[:_MOST_ROWS]
    ]


def _effects(manifest: Manifest, learned: LearnedStudy) -> list[tuple[str, list[tuple[str, float]]]]:
    """Each cell's term in the log-odds of a prediction, per table; only the soft ensemble adds them."""
    model, drawn = learned.model, []
    for table in model.tables if model.ensemble == "soft" else ():
        cuts = [model.cuts_of(name) for name in table.features]
        names = cell_names(manifest, table.features, table.cards, cuts)
        drawn.append((" × ".join(table.features), list(zip(names, table.log_odds, strict=True))[:_MOST_ROWS]))
    return drawn


def _cells(manifest: Manifest, learned: LearnedStudy, result: PartitionResult) -> list[Cell]:
    cuts = [learned.model.cuts_of(name) for name in result.features]
    names = with_label(manifest, cell_names(manifest, result.features, result.cards, cuts))
    errors = [float(error) for error in result.standard_errors]
    estimates = [float(share) for share in result.shares]
    likely = [float(share) for share in result.likely]
    widest = max((*likely, *(abs(e) + s for e, s in zip(estimates, errors, strict=True) if s < 10)), default=1.0) or 1.0
    rows = list(zip(names, likely, estimates, errors, strict=True))[:_MOST_ROWS]
    return [
        Cell(
            name,
            shown,
            estimate,
            error,
            100 * shown / widest,
            100 * max(estimate - error, 0) / widest,
            100 * min(max(estimate + error, 0) / widest, 1),
        )
        for name, shown, estimate, error in rows
    ]
