"""The result that a published study can be expected to reach: the manifest itself simulated on made-up people.

They are made from the declared marginals (`aggregator.lab.planning.population`), never from anybody's data, so that the
interval of a forecast is about other studies; docs/staff/class-size.md tells how often a result lay inside it.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from aggregator.lab.planning.outlook import Outlook, outlook_of_belief, outlook_of_plan, planned_epsilon
from aggregator.lab.planning.population import MADE_UP
from aggregator.lab.planning.trials import SEED, collected_in, worlds_of
from aggregator.lab.simulation.linear_sums import is_linear
from aggregator.lab.simulation.run import Plan
from aggregator.lab.simulation.simulate import learn_collected
from aggregator.protocols.installed import PROTOCOLS
from anon.errors import Refused

POPULATIONS = 4
"""So many show what tables score: each of them is scored by few reports, and known no better for more."""


@frozen
class ModelOutlook:
    """The outlook of the whole model, and the mean AUC of its tables as their own scoring reports tell it. None for
    exact sums, of which nothing is kept for scoring."""

    outlook: Outlook
    table_auc: float | None


def forecast(manifest_bytes: bytes, people: int) -> ModelOutlook:
    """Simulate the study with so many people; the outlook is that of `study lint` for as many.

    Raises `Refused` for a linear model and a declared rule.
    """
    manifest = PROTOCOLS.manifest(manifest_bytes)
    if is_linear(manifest):
        raise Refused(
            "made-up people are for models of tables; `anonml simulate` tells on data that you have how well a linear "
            "model ranks"
        )
    if belief := outlook_of_belief(manifest, people):
        told = " ".join(belief.sentences())
        raise Refused(f"made-up people lean as staff expect: a forecast of a declared rule would repeat that. {told}")
    plan, tables = Plan.of(manifest), []
    outlook = outlook_of_plan(plan, manifest, people, planned_epsilon(manifest))
    if manifest.surveys[0].exact:
        return ModelOutlook(outlook, None)
    for number, world in enumerate(worlds_of(manifest, POPULATIONS, MADE_UP)):
        learned = learn_collected(plan, collected_in(plan, world, people, SEED, number))
        tables.append(_mean([(partition.scores.auc, partition.scores.reports) for partition in learned.partitions]))
    return ModelOutlook(outlook, float(np.mean(tables)))


def _mean(scored: list[tuple[float, int]]) -> float:
    total = sum(reports for _, reports in scored)
    return sum(auc * reports for auc, reports in scored) / total if total else 0.5
