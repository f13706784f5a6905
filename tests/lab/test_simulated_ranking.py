"""The short way to a run's ROC AUC is the published model's, for every kind of learner and also where it says
nothing."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

from aggregator.lab.planning.ranking import rank
from aggregator.lab.simulation.evaluation import evaluate
from aggregator.lab.simulation.run import Plan, collect
from aggregator.lab.simulation.simulate import NO_KEYS, learn_collected
from anon.protocols.histogram.sections import OnePacket
from anon.protocols.resolve import resolve
from anon.study.features import Learning
from tests.lab.paper_people import made_up

ADDITIVE = Learning("additive", "soft", "auc", 0, 0.4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("design", "learning"),
    [
        (OnePacket("one-packet", 1.0), ADDITIVE),
        (OnePacket("one-packet", 1.0, subset_size=2), ADDITIVE),
        (OnePacket("one-packet", 1.0, asks="bits"), ADDITIVE),
        (OnePacket("one-packet", 1.0), Learning(score_share=0.1)),
    ],
)
def test_it_ranks_as_the_published_model_does(design: OnePacket, learning: Learning) -> None:
    data = made_up(1500)
    study = evolve(data.our_study, design=design, learning=learning)
    plan = Plan.of(resolve(study, NO_KEYS, 0, lambda below: 0))
    people, test = data.our_people
    said = set()
    for seed in range(8):
        generator = np.random.default_rng(seed)
        peers = people if seed % 2 else people.take(generator.choice(len(people), 40, replace=False))
        collected = collect(plan, peers, generator)
        learned, found = learn_collected(plan, collected), rank(plan, collected, test)
        assert found.auc == pytest.approx(evaluate(learned.model, test).auc, abs=1e-9)
        assert found.shown == learned.learnable
        said.add(found.doubtful)
    assert said == {True, False}, "some of these runs are silent and some are not"
