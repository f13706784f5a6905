"""The study's report: one HTML page without scripts and without any request, the estimates with their errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import pairwise
from math import expm1

from attrs import frozen
from jinja2 import Environment, StrictUndefined

from aggregator.counters import Traffic
from aggregator.protocols.histogram.ensemble import HOSTILE_SHARE, LearnedStudy, PartitionResult
from anon.accounting import Batch, account, batch_of_reports, in_words
from anon.fingerprint import words
from anon.ldp import format_epsilon
from anon.study.manifest import Manifest
from anon.study.parts import Feature

_MOST_ROWS = 64


@frozen
class Cell:
    """One category as the page shows it: estimate and error are shares, bar and whisker percent of the width."""

    name: str
    estimate: float
    error: float
    bar: float
    low: float
    high: float


def render(manifest: Manifest, learned: LearnedStudy, traffic: Traffic, accepted: Mapping[int, int]) -> str:
    """The page. `accepted`: packets per survey."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(files("aggregator").joinpath("templates/report.html").read_text("utf-8"))
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
    )


def _batch(manifest: Manifest, accepted: Mapping[int, int]) -> Batch:
    return batch_of_reports(manifest, [accepted.get(one.survey, 0) for one in manifest.surveys])


def _odds(epsilon: int) -> str:
    return f"{expm1(epsilon / 1e9) + 1:.3g}"


def _slot(manifest: Manifest, number: int) -> dict[str, object]:
    surveys = [manifest.surveys[row.survey] for row in manifest.slots[number].rows]
    kinds = sorted({one.kind for one in surveys})
    mechanisms = sorted({one.mechanism for one in surveys})
    dearest = format_epsilon(max(one.epsilon for one in surveys))
    return {"number": number, "surveys": len(surveys), "kinds": kinds, "mechanisms": mechanisms, "epsilon": dearest}


def _cells(manifest: Manifest, learned: LearnedStudy, result: PartitionResult) -> list[Cell]:
    names = _names(manifest, learned, result)
    errors = [float(error) for error in result.standard_errors]
    estimates = [float(share) for share in result.shares]
    widest = max((abs(e) + s for e, s in zip(estimates, errors, strict=True) if s < 10), default=1.0) or 1.0
    rows = list(zip(names, estimates, errors, strict=True))[:_MOST_ROWS]
    return [
        Cell(
            name,
            estimate,
            error,
            100 * max(estimate, 0) / widest,
            100 * max(estimate - error, 0) / widest,
            100 * min(max(estimate + error, 0) / widest, 1),
        )
        for name, estimate, error in rows
    ]


def _names(manifest: Manifest, learned: LearnedStudy, result: PartitionResult) -> list[str]:
    names = [""]
    for feature_name, card in zip(result.features, result.cards, strict=True):
        feature = manifest.feature(feature_name)
        bins = _bins(feature, learned.model.cuts_of(feature_name), card)
        names = [f"{name}{one}, " for name in names for one in bins]
    return [f"{name}{manifest.label.name} {sign}" for name in names for sign in ("no", "yes")]


def _bins(feature: Feature, cuts: Sequence[float], card: int) -> list[str]:
    if feature.kind == "categorical":
        found = [f"{feature.name} {category}" for category in feature.categories]
    else:
        edges = [f"{cut:.6g}" for cut in cuts]
        found = [f"{feature.name} ≤ {edge}" for edge in edges[:1]]
        found += [f"{low} < {feature.name} ≤ {high}" for low, high in pairwise(edges)]
        found += [f"{feature.name} > {edges[-1]}"] if edges else [feature.name]
    return [*found, f"{feature.name} missing"][:card]
