"""The report's part on a histogram study: its tables, what moves a prediction, and the estimates behind both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from aggregator.protocols.additive.results import HOSTILE_SHARE, LearnedStudy, PartitionResult
from aggregator.rules.counters import STEP
from anon.protocols.names import cell_names, with_label
from anon.study.manifest import Manifest

_MOST_ROWS = 64
_SEEN, _SEEN_SHARE = 0.005, 0.00005
"""Smaller weights and shares are shown as zero, without a bar."""
Figure = tuple[str, float, float, float]
"""A named value with the ends of its interval."""
Share = tuple[str, float, float, float]
"""A category with its most likely share, the unbiased estimate and its error."""


@frozen
class Cell:
    """One category as the page shows it: the most likely share, the unbiased estimate and its error. The bar (of the
    first) and the whisker (of the others) are percent of the width."""

    name: str
    likely: float
    estimate: float
    error: float
    bar: float
    low: float
    high: float


def values_of(manifest: Manifest, learned: LearnedStudy) -> Mapping[str, object]:
    """The values of the template."""
    drawn = [(result, _shares(manifest, learned, result)) for result in learned.partitions]
    widest = _widest([rows for result, rows in drawn if result.n >= STEP] or [rows for _, rows in drawn])
    partitions = [
        {"result": result, "cells": [_cell(row, widest) for row in rows], "categories": len(result.shares)}
        for result, rows in drawn
    ]
    few = [partition for partition in learned.partitions if partition.scores.reports < STEP]
    return {
        "partitions": partitions,
        "many": [part for part in partitions if part["result"] not in few],
        "few": [part for part in partitions if part["result"] in few],
        "small": [part for part, (result, _) in zip(partitions, drawn, strict=True) if result.n < STEP],
        "step": STEP,
        "widest": widest,
        "hostile": f"{HOSTILE_SHARE:.0%}",
        "influence": max((partition.influence for partition in learned.partitions), default=0.0),
        "scores": _scores(learned, STEP),
        "clearest": _clearest(learned),
        "belief": learned.model.belief.sentences() if learned.model.belief else (),
        **_weights(manifest, learned),
    }


def _clearest(learned: LearnedStudy) -> list[str]:
    """The tables of enough reports whose interval lies above a guess, the surest three, in words."""
    above = sorted((row for row in _scores(learned, STEP) if row[2] > 0.5), key=lambda row: -row[2])
    return [f"{name} (AUC {auc:.2f}, 95 % interval {low:.2f} to {high:.2f})" for name, auc, low, high in above[:3]]


def _weights(manifest: Manifest, learned: LearnedStudy) -> Mapping[str, object]:
    """The tables that move a prediction, the names of those that do not, and the strongest term of all."""
    effects = _effects(manifest, learned)
    moving = [(name, rows) for name, rows in effects if any(abs(value) >= _SEEN for _, value in rows)]
    named = {name for name, _ in moving}
    return {
        "effects": moving,
        "silent": [name for name, _ in effects if name not in named],
        "strongest": max((abs(value) for _, rows in moving for _, value in rows), default=1.0),
    }


def scores_of(learned: LearnedStudy) -> list[Figure]:
    """The AUC of each table that was scored, with its 95 % interval."""
    return _scores(learned, 1)


def _scores(learned: LearnedStudy, fewest: int) -> list[Figure]:
    """The same of tables with at least so many scoring reports."""
    scored = [partition for partition in learned.partitions if partition.scores.reports >= fewest]
    return [
        (
            " × ".join(partition.features),
            partition.scores.auc,
            max(partition.scores.auc - 1.96 * partition.scores.auc_error, 0),
            min(partition.scores.auc + 1.96 * partition.scores.auc_error, 1),
        )
        for partition in scored[:_MOST_ROWS]
    ]


def _effects(manifest: Manifest, learned: LearnedStudy) -> list[tuple[str, list[tuple[str, float]]]]:
    """Each cell's term in the log-odds of a prediction, per table; only the soft ensemble adds them."""
    model, drawn = learned.model, []
    for table in model.tables if model.ensemble == "soft" else ():
        cuts = [model.cuts_of(name) for name in table.features]
        names = cell_names(manifest, table.features, table.cards, cuts)
        drawn.append((" × ".join(table.features), list(zip(names, table.log_odds, strict=True))[:_MOST_ROWS]))
    return drawn


def _shares(manifest: Manifest, learned: LearnedStudy, result: PartitionResult) -> list[Share]:
    cuts = [learned.model.cuts_of(name) for name in result.features]
    names = with_label(manifest, cell_names(manifest, result.features, result.cards, cuts))
    columns = [[float(value) for value in column] for column in (result.likely, result.shares, result.standard_errors)]
    return list(zip(names, *columns, strict=True))[:_MOST_ROWS]


def _widest(tables: Sequence[Sequence[Share]]) -> float:
    """The share that fills the width of every drawing, at most one."""
    rows = [row for table in tables for row in table]
    return min(max((max(likely, estimate + error) for _, likely, estimate, error in rows), default=1.0), 1.0) or 1.0


def _cell(row: Share, widest: float) -> Cell:
    name, likely, estimate, error = row
    bar, low, high = (100 * min(max(value / widest, 0), 1) for value in (likely, estimate - error, estimate + error))
    return Cell(name, likely, estimate, error, bar if likely >= _SEEN_SHARE else 0.0, low, high)
