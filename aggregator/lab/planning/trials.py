"""One design tried on made-up populations: the AUC of its model on each, and on which it was shown to beat a guess.

Plan, lint, forecast and the desk's form all try a design here, on the same populations with the same chance, so that
one design at one size of group has one figure wherever it is told. Nothing here ever sees a peer's data.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from math import sqrt

import numpy as np
from attrs import asdict, define, field, frozen

from aggregator.lab.planning.population import Assumptions, made_up, tells
from aggregator.lab.planning.ranking import Ranked, rank, rank_sum
from aggregator.lab.simulation.pairs import TRIED_FROM
from aggregator.lab.simulation.people import People
from aggregator.lab.simulation.run import Plan, SimulatedTallies, collect
from aggregator.lab.simulation.simulate import no_keys
from aggregator.protocols.histogram.reconstruct import Floats
from anon.protocols.resolve import drafted, resolve
from anon.study.features import Feature
from anon.study.manifest import Manifest
from anon.study.proposal import Proposal

SEED = 1
POPULATIONS, POPULATIONS_OF_SMALL = 32, 96
"""Made-up populations that a design is tried on; more for small budgets, where chance says most and a trial costs
least (tables of pairs are not tried)."""

_MOST_DRAWN = 4
"""Times as many are drawn at most: a study whose features have one value each tells nothing in any of them."""

World = tuple[People, People]
"""Peers and people to score on."""


@frozen
class Forecast:
    """The expected result of one design: the mean AUC over made-up populations, its standard error, and the spread
    (standard deviation) of one study's AUC; `shown`: the share of studies whose model was shown to beat a guess."""

    design: str
    cohort: int
    epsilon: float
    auc: float
    auc_se: float
    spread: float
    shown: float

    def figures(self) -> dict[str, object]:
        """The output of `study plan --json`."""
        return asdict(self)


def populations_for(epsilon: float) -> int:
    """How many populations a design of this record-level epsilon is tried on."""
    return POPULATIONS if round(epsilon, 3) >= TRIED_FROM else POPULATIONS_OF_SMALL


@frozen
class _Declared:
    """All that made-up people follow from, as `population.made_up` reads it of a study."""

    features: tuple[Feature, ...]
    base_rate: float

    @property
    def learning(self) -> _Declared:
        return self


def worlds_of(study: Proposal | Manifest, count: int, assumed: Assumptions, seed: int = SEED) -> list[World]:
    """The first `count` populations of a study in which anything goes with the label: a group can be too small for
    those alone. They depend on the study's features and base rate, not on its design."""
    declared = _Declared(study.features, study.learning.base_rate)
    drawn = (_world(declared, assumed, seed, number) for number in range(_MOST_DRAWN * count))
    found = list(islice((world for world in drawn if tells(world[0])), count))
    return found or [_world(declared, assumed, seed, number) for number in range(count)]


@lru_cache(maxsize=2 * POPULATIONS_OF_SMALL)
def _world(declared: _Declared, assumed: Assumptions, seed: int, number: int) -> World:
    """Made up once for all designs, cohorts and epsilons."""
    return made_up(declared, assumed, np.random.default_rng([seed, 0, number]))


def plan_of(proposal: Proposal, seed: int = SEED) -> Plan:
    """The plan of a study that is not published."""
    generator = np.random.default_rng([seed, 1])
    return Plan.of(resolve(drafted(proposal), no_keys(proposal), 0, lambda below: int(generator.integers(below))))


def collected_in(plan: Plan, world: World, cohort: int, seed: int, number: int) -> SimulatedTallies:
    """The tallies of population `number`, of which `cohort` people are drawn with replacement."""
    return collect(plan, world[0], np.random.default_rng([seed, 2, number]), resampled=cohort)


@define(eq=False)
class Trials:
    """A design's AUC on each made-up population so far."""

    plan: Plan
    cohort: int
    seed: int = SEED
    aucs: list[float] = field(factory=list, init=False)
    shown: list[bool] = field(factory=list, init=False)

    @property
    def mean(self) -> float:
        """The mean AUC."""
        return float(np.mean(self.aucs))

    def go_on(self, worlds: Sequence[World]) -> None:
        """Be tried on those of the populations where that has not happened yet; chance depends on the population."""
        for number in range(len(self.aucs), len(worlds)):
            ranked = self._ranked(worlds[number], number)
            self.aucs.append(ranked.auc)
            self.shown.append(ranked.shown)

    def _ranked(self, world: World, number: int) -> Ranked:
        if self.plan.manifest.surveys[0].exact:
            generator = np.random.default_rng([self.seed, 2, number])
            drawn = world[0].take(generator.integers(len(world[0]), size=self.cohort))
            return rank_sum(self.plan.manifest, drawn, generator, world[1])
        return rank(self.plan, collected_in(self.plan, world, self.cohort, self.seed, number), world[1])

    def forecast(self, design: str, epsilon: float, auc: float | None = None) -> Forecast:
        """The figures so far; `auc` in place of the mean where it was found by comparison."""
        tried, mean = np.array(self.aucs), self.mean if auc is None else auc
        shown = float(np.mean(self.shown)) if self.shown else 0.0
        return Forecast(design, self.cohort, epsilon, mean, standard_error(tried), float(tried.std()), shown)


def standard_error(values: Floats) -> float:
    """Of the mean; 0 for a single value."""
    return float(values.std(ddof=1) / sqrt(len(values))) if len(values) > 1 else 0.0
