"""A trusted party beside a study: the same people and the same epsilon, but noise is added once, to everybody's sums.

That is central differential privacy, which asks people to hand over their records. It shows how much of a study's loss
comes from trusting nobody.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from aggregator.lab.simulation.evaluation import evaluate
from aggregator.lab.simulation.people import People
from aggregator.lab.simulation.run import Plan, categories, exact_cuts
from aggregator.lab.simulation.sum_noise import simulated_noise
from aggregator.protocols.additive.results import Subject
from aggregator.protocols.sum.published import NoisySum
from aggregator.protocols.sum.tables import learn_tables
from anon.accounting.noisy_sums import sigma_squared_for
from anon.ldp.epsilon import NanoEpsilon
from anon.protocols.cost_words import epsilon_of
from anon.protocols.vectors.tables import tables_of
from anon.study.features import Learning
from anon.study.manifest import Manifest

DELTA = Decimal("1e-6")
DRAWS = 10
"""Of the noise, for one figure."""


def trusted_party_of(study: Manifest, people: People, members: int) -> float | None:
    """The mean of `trusted_party_auc` on each half of these people, from so many drawn from the other half, at the
    study's one epsilon. Deterministic. None where a half has a single label."""
    generator = np.random.default_rng(len(people))
    halves = [people.take(part) for part in np.array_split(generator.permutation(len(people)), 2)]
    if not members or any(half.alike for half in halves):
        return None
    plan, epsilon = Plan.of(study), epsilon_of(study)

    def learnt(train: People, test: People) -> float:
        drawn = train.take(generator.integers(len(train), size=members))
        return trusted_party_auc(plan, epsilon, drawn, test, generator, DRAWS // 2)

    return (learnt(*halves) + learnt(*halves[::-1])) / 2


def trusted_party_auc(
    plan: Plan,
    epsilon: NanoEpsilon,
    train: People,
    test: People,
    generator: np.random.Generator,
    draws: int = DRAWS,
    resampled: int | None = None,
) -> float:
    """The mean ROC AUC on `test` of an additive model of one table for each feature, over `draws` of the noise.

    A discrete Gaussian on each cell keeps a record to this epsilon at delta 1e-6, replace-one. Cuts are found
    without noise and free of charge. `resampled`: so many records, drawn from `train` with replacement.
    """
    study = plan.manifest
    cuts = exact_cuts(plan, train)
    held = categories(study.features, train, cuts)
    design = tables_of({feature.name: feature.cardinality for feature in study.features})
    times = None if resampled is None else generator.multinomial(resampled, np.full(len(train), 1 / len(train)))
    exact = np.concatenate([
        np.bincount(held[block.features[0]] * 2 + train.labels, times, block.length) for block in design.blocks
    ]).astype(np.int64)
    sensitivity, changed = design.sensitivity_squared("replace-one"), design.changed("replace-one")
    sigma_squared = sigma_squared_for(sensitivity, changed, epsilon, DELTA)
    subject = Subject("simulated", study.title, study.label, study.features, cuts, {})
    learning = Learning("additive", "soft", "auc", 0, study.learning.base_rate)

    def once() -> float:
        noisy = exact + simulated_noise(sigma_squared, 1, design.length, generator)
        summed = NoisySum(tuple(int(value) for value in noisy), resampled or len(train), sigma_squared, 1)
        return evaluate(learn_tables(subject, design, summed, learning, with_influence=False).model, test).auc

    return float(np.mean([once() for _ in range(draws)]))
