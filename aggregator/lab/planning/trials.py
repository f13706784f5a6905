"""One design tried on made-up populations: the AUC of its model on each, and on which it was shown to beat a guess.

Plan, lint, forecast and the desk's form all try a design here, on the same populations with the same chance, so that
one design at one size of group has one figure wherever it is told. Nothing here ever sees a peer's data.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import sqrt

import numpy as np
from attrs import asdict, define, field, frozen

from aggregator.compute import HERE, Compute
from aggregator.lab.planning.population import Assumptions, made_up, tells
from aggregator.lab.planning.ranking import RankedModel, rank, rank_sum
from aggregator.lab.simulation.pairs import TRIED_FROM
from aggregator.lab.simulation.people import People
from aggregator.lab.simulation.run import Plan, SimulatedTallies, collect
from aggregator.lab.simulation.simulate import NO_KEYS
from aggregator.protocols.additive.reconstruct import Floats
from anon.protocols.resolve import resolve
from anon.sharing.drafts import drafted
from anon.study.features import Feature
from anon.study.manifest import Manifest
from anon.study.proposal import Proposal

SEED = 1
POPULATIONS, POPULATIONS_OF_SMALL = 32, 96
"""Made-up populations that a design is tried on; more for small budgets, where chance says most and a trial costs
least (tables of pairs are not tried)."""

_MOST_DRAWN = 4
"""Times as many are drawn at most: a study whose features have one value each tells nothing in any of them."""

@frozen
class Forecast:
    """The expected result of one design: the mean AUC over made-up populations, its standard error, and the interval
    from `low` to `high` that holds nine in ten studies; `shown`: the share of studies whose model was shown to beat a
    guess."""

    design: str
    cohort: int
    epsilon: float
    auc: float
    auc_se: float
    low: float
    high: float
    shown: float

    @property
    def between(self) -> str:
        """The interval in words."""
        return f"{self.low:.2f} to {self.high:.2f}"

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


@frozen
class World:
    """One made-up population. It is made where it is needed, so that it costs nothing to send."""

    declared: _Declared
    assumed: Assumptions
    seed: int
    number: int

    @property
    def people(self) -> tuple[People, People]:
        """Peers, and people to score on."""
        return _made(self)


@lru_cache(maxsize=2 * POPULATIONS_OF_SMALL)
def _made(world: World) -> tuple[People, People]:
    """Once in a process, for all designs, cohorts and epsilons."""
    return made_up(world.declared, world.assumed, np.random.default_rng([world.seed, 0, world.number]), world.number)


def _tells(world: World) -> bool:
    return world.assumed.file is not None or tells(world.people[0])


def worlds_of(
    study: Proposal | Manifest, count: int, assumed: Assumptions, seed: int = SEED, compute: Compute = HERE
) -> tuple[World, ...]:
    """The first `count` populations of a study in which anything goes with the label: a group can be too small for
    those alone. They depend on the study's features and base rate, not on its design."""
    return _worlds_of(_Declared(study.features, study.learning.base_rate), count, assumed, seed, compute)


@lru_cache(maxsize=16)
def _worlds_of(
    declared: _Declared, count: int, assumed: Assumptions, seed: int, compute: Compute
) -> tuple[World, ...]:
    found: list[World] = []
    drawn = [World(declared, assumed, seed, number) for number in range(_MOST_DRAWN * count)]
    while drawn and len(found) < count:
        next_ones = [drawn.pop(0) for _ in range(min(len(drawn), count - len(found)))]
        found += [world for world, telling in zip(next_ones, compute.each(_tells, next_ones), strict=True) if telling]
    return tuple(found or (World(declared, assumed, seed, number) for number in range(count)))


def plan_of(proposal: Proposal, seed: int = SEED) -> Plan:
    """The plan of a study that is not published."""
    generator = np.random.default_rng([seed, 1])
    return Plan.of(resolve(drafted(proposal), NO_KEYS, 0, lambda below: int(generator.integers(below))))


def collected_in(plan: Plan, world: World, cohort: int, seed: int, number: int) -> SimulatedTallies:
    """The tallies of population `number`, of which `cohort` people are drawn with replacement."""
    return collect(plan, world.people[0], np.random.default_rng([seed, 2, number]), resampled=cohort)


@frozen(eq=False)
class _Trial:
    """A design on the made-up population `number` of a list. Chance depends on that number alone."""

    plan: Plan
    cohort: int
    seed: int
    number: int
    world: World

    def ranked(self) -> RankedModel:
        peers, test = self.world.people
        if self.plan.manifest.surveys[0].exact:
            generator = np.random.default_rng([self.seed, 2, self.number])
            drawn = peers.take(generator.integers(len(peers), size=self.cohort))
            return rank_sum(self.plan.manifest, drawn, generator, test)
        return rank(self.plan, collected_in(self.plan, self.world, self.cohort, self.seed, self.number), test)


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

    def go_on(self, worlds: Sequence[World], compute: Compute = HERE) -> None:
        """Be tried on those of the populations where that has not happened yet."""
        go_on([self], worlds, compute)

    def left(self, worlds: Sequence[World]) -> list[_Trial]:
        """The trials that are missing."""
        tried = len(self.aucs)
        return [_Trial(self.plan, self.cohort, self.seed, at, world) for at, world in enumerate(worlds) if at >= tried]

    def take(self, ranked: RankedModel) -> None:
        """Keep the next trial's result."""
        self.aucs.append(ranked.auc)
        self.shown.append(ranked.shown)

    def forecast(
        self, design: str, epsilon: float, auc: float | None = None, leader: Trials | None = None
    ) -> Forecast:
        """The figures so far; `auc` in place of the mean where it was found by comparison with a `leader`, which then
        gives the interval its width: it was tried on more populations."""
        tried, mean = np.array(self.aucs), self.mean if auc is None else auc
        shown = float(np.mean(self.shown)) if self.shown else 0.0
        widest = np.array(leader.aucs) if leader is not None and auc is not None else tried
        low, high = interval(widest + (mean - float(widest.mean())))
        return Forecast(design, self.cohort, epsilon, mean, standard_error(tried), low, high, shown)


def go_on(several: Sequence[Trials], worlds: Sequence[World], compute: Compute = HERE) -> None:
    """Try each of several designs on those of the populations where that has not happened yet, all at once."""
    left = [(trials, trial) for trials in several for trial in trials.left(worlds)]
    for (trials, _), ranked in zip(left, compute.each(_Trial.ranked, [trial for _, trial in left]), strict=True):
        trials.take(ranked)


def interval(tried: Floats) -> tuple[float, float]:
    """Where nine in ten further studies lie, of AUCs that were tried (Weibull's quantiles, which are without bias)."""
    low, high = np.clip(np.quantile(tried, (0.05, 0.95), method="weibull"), 0, 1)
    return float(low), float(high)


def standard_error(values: Floats) -> float:
    """Of the mean; 0 for a single value."""
    return float(values.std(ddof=1) / sqrt(len(values))) if len(values) > 1 else 0.0
