"""`simulate` of a study whose tables are summed exactly: everybody's cells, and the noise of each teller.

As in the study: cells by the protocol's own map, the noise of its arrangement, and its learner.
"""

from __future__ import annotations

import numpy as np

from aggregator.lab.simulation.people import People
from aggregator.lab.simulation.run import categories
from aggregator.lab.simulation.sum_noise import Integers, simulated_noise
from aggregator.protocols.histogram.results import LearnedStudy
from aggregator.protocols.sum.part import learned_from
from anon.errors import Malformed
from anon.protocols.sum.design import TABLES, shape_of
from anon.protocols.sum.standing import RoundSum, arrangement_of
from anon.study.manifest import Manifest
from anon.sums.tables import Block, TableSums


def learn_summed(
    study: Manifest, people: People, generator: np.random.Generator, with_influence: bool = False
) -> LearnedStudy:
    """The model of one run with these people. Raises `Malformed` for a study of other sums."""
    survey = study.surveys[0]
    design = shape_of(survey)
    if survey.kind != TABLES or not isinstance(design, TableSums):
        raise Malformed("simulate: of exact sums it knows tables-sum; for moments and gradient see benchmarks/sums.py")
    arrangement = arrangement_of(study)
    each, parties = arrangement.sums[0].sigma_squared, len(arrangement.tellers)
    exact = np.concatenate([_counted(study, block, people) for block in design.blocks])
    noisy = exact + simulated_noise(each, parties, design.length, generator)
    found = RoundSum(tuple(int(value) for value in noisy), len(people), each * parties)
    learned = learned_from(study, [found], with_influence)
    if not isinstance(learned, LearnedStudy):
        raise TypeError("tables are learned as tables")
    return learned


def _counted(study: Manifest, block: Block, people: People) -> Integers:
    held = categories([study.feature(name) for name in block.features], people, {})
    cells = np.zeros(len(people), dtype=np.int64)
    for name, card in zip(block.features, block.cards, strict=True):
        cells = cells * card + held[name]
    return np.bincount(cells * 2 + people.labels if block.labelled else cells, minlength=block.length)
