"""Many trials of one of our own designs: the library's own simulation and learner, without what only a report shows.

The additive model is fitted straight from the tallies; a test compares its ranking with that of the published model.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from aggregator.protocols.histogram.additive import fit
from aggregator.protocols.histogram.chance import FALSE_ALARM
from aggregator.protocols.histogram.evidence import gather
from aggregator.protocols.histogram.joint import coordinates_of
from aggregator.protocols.histogram.reconstruct import Floats
from aggregator.simulate import NO_KEYS, learn_collected, model_scores, roc_auc
from aggregator.simulation.people import People
from aggregator.simulation.run import Collected, Plan, categories, collect
from anon.resolve import resolve
from anon.study.proposal import Proposal


@frozen(eq=False)
class Trials:
    """Of each trial: the ROC AUC of the published model (1/2 where that is the base rate alone), that of what was
    learned whatever chance says of it, and whether the base rate alone was published. Shape (trials,)."""

    auc: Floats
    regardless: Floats
    base_rate: NDArray[np.bool_]
    epsilon: float


def run(study: Proposal, people: People, test: People, peers: int | None, trials: int, seed: int) -> Trials:
    """So many trials with `peers` of the people, drawn anew in each without replacement (None: all of them)."""
    generator = np.random.default_rng(seed)
    plan = Plan.of(resolve(study, NO_KEYS, 0, lambda below: int(generator.integers(below))))
    positive = test.labels == 1
    found: list[tuple[float, bool]] = []
    for _ in range(trials):
        chosen = people if peers is None else people.take(generator.choice(len(people), peers, replace=False))
        ranks, silent = ranking(plan, collect(plan, chosen, generator), test)
        found.append((roc_auc(ranks, positive), silent))
    regardless, silences = np.array([auc for auc, _ in found]), np.array([silent for _, silent in found])
    return Trials(np.where(silences, 0.5, regardless), regardless, silences, plan.manifest.epsilon / 1e9)


def ranking(plan: Plan, collected: Collected, test: People) -> tuple[Floats, bool]:
    """How the test people are ordered by what was learned, and whether the model that is published leaves that out."""
    manifest = plan.manifest
    if manifest.learning.classifier != "additive":
        learned = learn_collected(plan, collected)
        return model_scores(learned.model, test), False
    coordinates = coordinates_of(manifest.features)
    guess = manifest.learning.base_rate
    model = fit(gather(coordinates, collected.train, collected.bits, collected.shares, guess))
    total = np.zeros(len(test))
    for name, index in categories(manifest.features, test, collected.cuts).items():
        total += model.log_odds[coordinates.places[name]][index]
    return total, model.chance > FALSE_ALARM
