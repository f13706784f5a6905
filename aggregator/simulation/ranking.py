"""How well one run's model ranks people, without what only a report shows: for many runs of one study."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from aggregator.protocols.histogram.additive import fit
from aggregator.protocols.histogram.chance import LEVEL, SILENT
from aggregator.protocols.histogram.evidence import gather
from aggregator.protocols.histogram.joint import coordinates_of
from aggregator.protocols.histogram.reconstruct import Floats
from aggregator.simulate import learn_collected, model_scores, roc_auc
from aggregator.simulation.people import People
from aggregator.simulation.run import Collected, Plan, categories


@frozen
class Ranked:
    """The ROC AUC of the model that is published; how often noise alone would count as much."""

    auc: float
    chance: float

    @property
    def doubtful(self) -> bool:
        """Whether noise alone usually counts as much, and nothing is decided by the model."""
        return self.chance > SILENT

    @property
    def shown(self) -> bool:
        """Whether the model is said to beat the base rate."""
        return self.chance <= LEVEL

def rank(plan: Plan, collected: Collected, test: People) -> Ranked:
    """Learn from one run's tallies and rank the test people; `auc` is what `evaluate` says of the model."""
    ranks, chance = _ranks(plan, collected, test)
    return Ranked(roc_auc(ranks, test.labels == 1), chance)


def _ranks(plan: Plan, collected: Collected, test: People) -> tuple[Floats, float]:
    manifest = plan.manifest
    if manifest.learning.classifier != "additive":
        learned = learn_collected(plan, collected)
        return model_scores(learned.model, test), learned.chance
    coordinates = coordinates_of(manifest.features)
    found = fit(gather(coordinates, collected.train, collected.bits, collected.shares, manifest.learning.base_rate))
    total = np.zeros(len(test))
    for name, index in categories(manifest.features, test, collected.cuts).items():
        total += found.log_odds[coordinates.places[name]][index]
    return total, found.chance
