"""The study's report: one HTML page without scripts and without any request, whole in itself.

Privacy statement, model card, estimates with their errors, methods and threats. Accuracy on people with known labels
(ROC curve, calibration, errors by subgroup) is in it where staff give a test set; the study itself has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from math import expm1

from attrs import frozen
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from aggregator.counters import Traffic
from aggregator.protocols.histogram.ensemble import HOSTILE_SHARE, LearnedStudy, PartitionResult
from aggregator.report.charts import Interval, bars, curve, intervals
from aggregator.report.evaluation import FEWEST, Evaluation
from aggregator.report.names import cell_names, with_label
from anon.accounting import Batch, account, batch_of_reports, in_words
from anon.fingerprint import words
from anon.ldp import format_epsilon
from anon.study.manifest import Manifest

_MOST_ROWS = 64


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


def render(
    manifest: Manifest,
    learned: LearnedStudy,
    traffic: Traffic,
    accepted: Mapping[int, int],
    evaluation: Evaluation | None = None,
) -> str:
    """The page. `accepted`: packets per survey; `evaluation`: on a test set, if there is one."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(files("aggregator.report").joinpath("templates/report.html").read_text("utf-8"))
    partitions = [
        {"result": result, "cells": _cells(manifest, learned, result), "categories": len(result.shares)}
        for result in learned.partitions
    ]
    return template.render(
        manifest=manifest,
        learned=learned,
        model=learned.model,
        partitions=partitions,
        traffic=traffic,
        accepted=sum(accepted.values()),
        fingerprint=words(manifest.study_id),
        epsilon=format_epsilon(manifest.epsilon),
        epsilon_per_attribute=format_epsilon(manifest.epsilon_per_attribute),
        odds=_odds(manifest.epsilon),
        slots=[_slot(manifest, number) for number in range(len(manifest.slots))],
        hostile=f"{HOSTILE_SHARE:.0%}",
        influence=max((one.influence for one in learned.partitions), default=0.0),
        anonymous=manifest.cohort.admission != "open",
        accounting=in_words(account(manifest, _batch(manifest, accepted))),
        scores_chart=_scores_chart(learned),
        effects=_effects(manifest, learned),
        evaluation=evaluation,
        roc=_roc(evaluation),
        calibration=_calibration(evaluation),
        fewest=FEWEST,
        retention=_length(manifest.release.retention),
    )


def _scores_chart(learned: LearnedStudy) -> Markup | None:
    scored = [one for one in learned.partitions if one.scores.reports]
    rows = [
        Interval(
            " × ".join(one.features),
            one.scores.auc,
            max(one.scores.auc - 1.96 * one.scores.auc_error, 0),
            min(one.scores.auc + 1.96 * one.scores.auc_error, 1),
        )
        for one in scored[:_MOST_ROWS]
    ]
    return intervals(rows, "AUC of each table with its 95 % interval; 0.5 is chance", 0.5) if rows else None


def _effects(manifest: Manifest, learned: LearnedStudy) -> list[tuple[str, Markup]]:
    """What each cell of each table adds to the log-odds of a prediction; only the soft ensemble adds them."""
    model, drawn = learned.model, []
    for table in model.tables if model.ensemble == "soft" else ():
        cuts = [model.cuts_of(name) for name in table.features]
        names = cell_names(manifest, table.features, table.cards, cuts)
        rows = list(zip(names, table.log_odds, strict=True))[:_MOST_ROWS]
        subset = " × ".join(table.features)
        drawn.append((subset, bars(rows, f"log-odds that each category of {subset} adds")))
    return drawn


def _roc(evaluation: Evaluation | None) -> Markup | None:
    if evaluation is None:
        return None
    said = f"ROC curve, area {evaluation.auc:.3f}"
    return curve(evaluation.roc, said, "false positive rate", "true positive rate", steps=True)


def _calibration(evaluation: Evaluation | None) -> Markup | None:
    if evaluation is None:
        return None
    said = f"calibration in tenths, expected error {evaluation.ece:.3f}"
    return curve(evaluation.calibration, said, "predicted", "share of positives")


def _batch(manifest: Manifest, accepted: Mapping[int, int]) -> Batch:
    return batch_of_reports(manifest, [accepted.get(one.survey, 0) for one in manifest.surveys])


def _length(seconds: int) -> str:
    return f"{seconds / 86400:.3g} days" if seconds >= 86400 else f"{seconds / 3600:.2g} hours"


def _odds(epsilon: int) -> str:
    return f"{expm1(epsilon / 1e9) + 1:.3g}"


def _slot(manifest: Manifest, number: int) -> dict[str, object]:
    surveys = [manifest.surveys[row.survey] for row in manifest.slots[number].rows]
    kinds = sorted({one.kind for one in surveys})
    mechanisms = sorted({one.mechanism for one in surveys})
    dearest = format_epsilon(max(one.epsilon for one in surveys))
    return {"number": number, "surveys": len(surveys), "kinds": kinds, "mechanisms": mechanisms, "epsilon": dearest}


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
