"""How well one run's model ranks people, without what only a report shows: for many runs of one study."""

from __future__ import annotations

import numpy as np
from attrs import frozen

from aggregator.lab.simulation.evaluation import model_scores, roc_auc
from aggregator.lab.simulation.people import People
from aggregator.lab.simulation.run import Plan, SimulatedTallies, categories
from aggregator.lab.simulation.simulate import learn_collected
from aggregator.lab.simulation.sums import learn_summed
from aggregator.protocols.additive.learner import fit
from aggregator.protocols.additive.model import coordinates_of
from aggregator.protocols.additive.moments import gather
from aggregator.protocols.additive.noise_test import ABSTAIN_FROM, LEVEL
from aggregator.protocols.additive.reconstruct import Floats
from anon.protocols.histogram.ruled import has_rule
from anon.study.manifest import Manifest


@frozen
class RankedModel:
    """The ROC AUC of the model that is published; how often noise alone would count as much."""

    auc: float
    chance: float

    @property
    def doubtful(self) -> bool:
        """True if noise alone usually counts as much, and nothing is decided by the model."""
        return self.chance > ABSTAIN_FROM

    @property
    def shown(self) -> bool:
        """True if the model is said to beat the base rate."""
        return self.chance <= LEVEL


def rank(plan: Plan, collected: SimulatedTallies, test: People) -> RankedModel:
    """Learn from one run's tallies and rank the test people; `auc` is what `evaluate` says of the model."""
    ranks, chance = _ranks(plan, collected, test)
    return RankedModel(roc_auc(ranks, test.labels == 1), chance)


def rank_sum(study: Manifest, people: People, generator: np.random.Generator, test: People) -> RankedModel:
    """The same of a study of summed tables, of one run with these people as peers."""
    learned = learn_summed(study, people, generator)
    return RankedModel(roc_auc(model_scores(learned.model, test), test.labels == 1), learned.chance)


def _ranks(plan: Plan, collected: SimulatedTallies, test: People) -> tuple[Floats, float]:
    manifest = plan.manifest
    if has_rule(manifest) or manifest.learning.classifier != "additive":
        learned = learn_collected(plan, collected)
        return model_scores(learned.model, test), learned.chance
    coordinates = coordinates_of(manifest.features)
    posterior = fit(gather(coordinates, collected.train, collected.bits, collected.shares, manifest.learning.base_rate))
    total = np.zeros(len(test))
    for name, index in categories(manifest.features, test, collected.cuts).items():
        total += posterior.log_odds[coordinates.places[name]][index]
    return total, posterior.chance
