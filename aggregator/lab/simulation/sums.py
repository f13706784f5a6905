"""`simulate` of a study of exact sums: everybody's cells or columns, and the noise of each teller.

As in the study: cells by the protocol's own map, the noise of its arrangement, and its learner.
"""

from __future__ import annotations

import numpy as np

from aggregator.lab.simulation.linear_sums import is_linear
from aggregator.lab.simulation.people import People
from aggregator.lab.simulation.ruled_sums import rule_sums
from aggregator.lab.simulation.run import categories
from aggregator.lab.simulation.sum_noise import Integers, simulated_noise
from aggregator.protocols.additive.results import LearnedStudy
from aggregator.protocols.contract import LearningResult
from aggregator.protocols.sum.part import learned_from
from anon.errors import Refused
from anon.protocols.sum.design import shape_of
from anon.protocols.sum.rule import residuals, rule_of
from anon.protocols.sum.standing import RoundSum, arrangement_of
from anon.protocols.vectors.residuals import ScoreSums
from anon.protocols.vectors.tables import Block, TableSums
from anon.study.manifest import Manifest


def learn_summed(
    study: Manifest, people: People, generator: np.random.Generator, with_influence: bool = False
) -> LearnedStudy:
    """The model of tables of one run with these people. Raises `Refused` for a study that learns a linear model."""
    if isinstance(shape_of(study.surveys[0]), ScoreSums):
        return _ruled(study, people, generator)
    if is_linear(study) or not isinstance(design := shape_of(study.surveys[0]), TableSums):
        raise Refused(
            "one run is shown of studies with tables; `anonml simulate` gives the figures of many runs of this one"
        )
    arrangement = arrangement_of(study)
    each, parties = arrangement.sums[0].sigma_squared, arrangement.summing
    exact = np.concatenate([_counted(study, block, people) for block in design.blocks])
    noisy = exact + simulated_noise(each, parties, design.length, generator)
    found = RoundSum(tuple(int(value) for value in noisy), len(people), each * parties)
    return _of_tables(learned_from(study, [found], with_influence=with_influence))


def _ruled(study: Manifest, people: People, generator: np.random.Generator) -> LearnedStudy:
    """The same of a calibrated rule: each round's sum at the model of the rounds before it."""
    arrangement, held = arrangement_of(study), categories(study.features, people, {})
    rows, rule = np.column_stack([held[feature.name] for feature in study.features]), rule_of(study)
    noises = [asked.sigma_squared for asked in arrangement.sums]
    sums = rule_sums(rule, residuals(rule.cards), noises, arrangement.summing, rows, people.labels, generator)
    return _of_tables(learned_from(study, [RoundSum(*summed) for summed in sums]))


def _of_tables(learned: LearningResult) -> LearnedStudy:
    if not isinstance(learned, LearnedStudy):
        raise TypeError("tables are learned as tables")
    return learned


def _counted(study: Manifest, block: Block, people: People) -> Integers:
    held = categories([study.feature(name) for name in block.features], people, {})
    cells = np.zeros(len(people), dtype=np.int64)
    for name, card in zip(block.features, block.cards, strict=True):
        cells = cells * card + held[name]
    return np.bincount(cells * 2 + people.labels if block.labelled else cells, minlength=block.length)
