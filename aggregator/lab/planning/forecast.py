"""The result that a published study can be expected to reach: the manifest itself simulated on made-up people.

They are made from the declared marginals (`aggregator.lab.planning.population`), never from anybody's data, so that the
figures compare designs better than they foretell a result.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from attrs import frozen

from aggregator.lab.planning.population import Assumptions, made_up
from aggregator.lab.simulation.evaluation import evaluate
from aggregator.lab.simulation.run import Plan
from aggregator.lab.simulation.simulate import learn_once
from anon.study.manifest import parse_manifest

POPULATIONS = 4


@frozen
class Expected:
    """Means over made-up populations with the spread (standard deviation) of one study: the whole model's AUC on people
    who took no part, and the mean AUC of its tables as their own scoring reports tell it."""

    people: int
    auc: float
    auc_error: float
    spread: float
    table_auc: float


def forecast(manifest_bytes: bytes, people: int, seed: int = 1, populations: int = POPULATIONS) -> Expected:
    """Simulate the study with so many people. Deterministic in `seed`; about a second per population."""
    manifest = parse_manifest(manifest_bytes)
    plan, generator = Plan.of(manifest), np.random.default_rng(seed)
    aucs, tables = [], []
    for _ in range(populations):
        # `made_up` reads features and learning only, which a manifest has as a proposal has them
        peers, test = made_up(manifest, Assumptions(), generator)
        learned = learn_once(plan, peers, generator, resampled=people)
        aucs.append(evaluate(learned.model, test).auc)
        tables.append(_mean([(partition.scores.auc, partition.scores.reports) for partition in learned.partitions]))
    spread = float(np.std(aucs, ddof=1)) if len(aucs) > 1 else 0.0
    return Expected(people, float(np.mean(aucs)), spread / sqrt(len(aucs)), spread, float(np.mean(tables)))


def _mean(scored: list[tuple[float, int]]) -> float:
    total = sum(reports for _, reports in scored)
    return sum(auc * reports for auc, reports in scored) / total if total else 0.5
