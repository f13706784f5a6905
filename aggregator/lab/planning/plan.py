"""Comparing designs by simulation on made-up people. Nothing here ever sees a peer's data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import ceil, sqrt

import numpy as np
from attrs import asdict, define, field, frozen

from aggregator.lab.planning.candidates import PAIRS_FROM, Candidate, candidates
from aggregator.lab.planning.population import Assumptions, made_up
from aggregator.lab.planning.ranking import rank
from aggregator.lab.simulation.people import People
from aggregator.lab.simulation.run import Plan, collect
from aggregator.lab.simulation.simulate import NO_KEYS
from aggregator.protocols.histogram.reconstruct import Floats
from anon.errors import Malformed
from anon.protocols.resolve import resolve
from anon.study.proposal import OnePacket, Proposal

POPULATIONS, POPULATIONS_OF_SMALL = 32, 96
"""Made-up populations that the best designs are tried on; more for small budgets, where chance says most and a trial
costs least (tables of pairs are not tried)."""

BEHIND = 2.5

ALIKE = 0.03
"""The part of the leader's gain over an AUC of 1/2 that nobody would notice: of designs this close to it, tables win
over bits, because they measure how common categories are and their probabilities are calibrated."""


@frozen
class Forecast:
    """The expected result of one design: the mean AUC over made-up populations, its standard error, and the spread
    (standard deviation) of one study's AUC."""

    design: str
    cohort: int
    epsilon: float
    auc: float
    auc_se: float
    spread: float

    def figures(self) -> dict[str, object]:
        """The output of `study plan --json`."""
        return asdict(self)


@frozen
class Choice:
    """All designs at one cohort and epsilon, best first, and the best one's study."""

    forecasts: tuple[Forecast, ...]
    proposal: Proposal

    @property
    def best(self) -> Forecast:
        """The design that won."""
        return self.forecasts[0]


def choose_design(
    proposal: Proposal,
    cohort: int,
    epsilon: float,
    seed: int,
    populations: int | None = None,
    assumed: Assumptions | None = None,
) -> Choice:
    """Simulate the candidates on the same made-up populations; deterministic in `seed`.

    All are tried on an eighth of the populations, then those that could still win on a quarter, a half, and all of
    them: a design leaves when it is behind the leader by more than `BEHIND` standard errors of the difference on the
    same populations. Of those that stay, tables win over bits within `ALIKE` of the leader.
    The cohort is drawn with replacement from each. Raises `Malformed` for impossible numbers.
    """
    if populations is None:
        populations = POPULATIONS if epsilon >= PAIRS_FROM else POPULATIONS_OF_SMALL
    if cohort < 2 or epsilon <= 0 or populations < 1:
        raise Malformed("study plan: expected at least 2 people, a positive epsilon and at least 1 population")
    worlds = [_world(proposal, assumed or Assumptions(), seed, number) for number in range(populations)]
    tried = [(candidate, _Runs(candidate, cohort, seed)) for candidate in candidates(proposal, epsilon)]
    left = [runs for _, runs in tried]
    for until in sorted({ceil(populations / part) for part in (8, 4, 2, 1)}):
        for runs in left:
            runs.go_on(worlds[:until])
        leader = max(left, key=lambda runs: runs.mean)
        left = [runs for runs in left if runs is leader or not runs.far_behind(leader)]
    forecasts = [(runs.forecast(leader, epsilon), candidate.proposal) for candidate, runs in tried]
    forecasts.sort(key=lambda pair: -pair[0].auc)
    alike = [runs for runs in left if leader.mean - runs.mean <= ALIKE * max(leader.mean - 0.5, 0.0)]
    chosen = max(alike, key=lambda runs: (runs.asks_tables, runs.mean))
    best = next(at for at, tried_design in enumerate(forecasts) if tried_design[0].design == chosen.candidate.name)
    forecasts.insert(0, forecasts.pop(best))
    return Choice(tuple(tried_design[0] for tried_design in forecasts), forecasts[0][1])


@lru_cache(maxsize=POPULATIONS_OF_SMALL)
def _world(proposal: Proposal, assumed: Assumptions, seed: int, number: int) -> tuple[People, People]:
    """Made up once for all cohorts and epsilons."""
    return made_up(proposal, assumed, np.random.default_rng([seed, 0, number]))


def survey_of_choices(
    proposal: Proposal,
    cohorts: Sequence[int],
    epsilons: Sequence[float],
    seed: int,
    populations: int | None = None,
    progress: Callable[[], None] = lambda: None,
) -> tuple[Choice, ...]:
    """`choose_design` for each cohort and epsilon."""
    found = []
    for cohort in cohorts:
        for epsilon in epsilons:
            found.append(choose_design(proposal, cohort, epsilon, seed, populations))
            progress()
    return tuple(found)


@define(eq=False)
class _Runs:
    """A candidate's AUC on each made-up population so far."""

    candidate: Candidate
    cohort: int
    seed: int
    aucs: list[float] = field(factory=list, init=False)
    _plan: Plan = field(init=False)

    def __attrs_post_init__(self) -> None:
        generator = np.random.default_rng([self.seed, 1])
        self._plan = Plan.of(resolve(self.candidate.proposal, NO_KEYS, 0, lambda below: int(generator.integers(below))))

    @property
    def asks_tables(self) -> bool:
        design = self.candidate.proposal.design
        return not isinstance(design, OnePacket) or design.asks == "tables"

    @property
    def mean(self) -> float:
        return float(np.mean(self.aucs))

    def go_on(self, worlds: Sequence[tuple[People, People]]) -> None:
        """Be tried on those of the populations where that has not happened yet; chance depends on the population."""
        for number in range(len(self.aucs), len(worlds)):
            peers, test = worlds[number]
            generator = np.random.default_rng([self.seed, 2, number])
            collected = collect(self._plan, peers, generator, resampled=self.cohort)
            self.aucs.append(rank(self._plan, collected, test).auc)

    def behind(self, leader: _Runs) -> Floats:
        """By how much the leader is better on each population that this one was tried on."""
        gaps: Floats = np.array(leader.aucs[: len(self.aucs)]) - np.array(self.aucs)
        return gaps

    def far_behind(self, leader: _Runs) -> bool:
        gaps = self.behind(leader)
        return len(gaps) > 2 and float(gaps.mean()) > BEHIND * _standard_error(gaps)

    def forecast(self, leader: _Runs, epsilon: float) -> Forecast:
        """The leader's mean less the mean distance to it, so that all are about the same populations."""
        gaps, tried = self.behind(leader), np.array(self.aucs)
        auc = leader.mean - float(gaps.mean())
        spread = float(tried.std())
        return Forecast(self.candidate.name, self.cohort, epsilon, auc, _standard_error(tried), spread)


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1) / sqrt(len(values))) if len(values) > 1 else 0.0
