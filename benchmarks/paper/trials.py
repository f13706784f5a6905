"""Many trials of one of our own designs: the library's own simulation and learner, without what only a report shows."""

from __future__ import annotations

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from aggregator.lab.planning.ranking import rank
from aggregator.lab.simulation.people import People
from aggregator.lab.simulation.run import Plan, collect
from aggregator.lab.simulation.simulate import NO_KEYS
from aggregator.protocols.additive.reconstruct import Floats
from anon.protocols.resolve import resolve
from anon.study.proposal import Proposal


@frozen(eq=False)
class Trials:
    """Of each trial: the ROC AUC of the published model, and whether that was said to beat the base rate. Shape
    (trials,)."""

    auc: Floats
    shown: NDArray[np.bool_]
    epsilon: float


def run(study: Proposal, people: People, test: People, peers: int | None, trials: int, seed: int) -> Trials:
    """So many trials with `peers` of the people, drawn anew in each without replacement (None: all of them)."""
    generator = np.random.default_rng(seed)
    plan = Plan.of(resolve(study, NO_KEYS, 0, lambda below: int(generator.integers(below))))
    found = []
    for _ in range(trials):
        chosen = people if peers is None else people.take(generator.choice(len(people), peers, replace=False))
        found.append(rank(plan, collect(plan, chosen, generator), test))
    return Trials(
        np.array([one.auc for one in found]),
        np.array([one.shown for one in found]),
        plan.manifest.epsilon / 1e9,
    )
