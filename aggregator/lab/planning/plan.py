"""Comparing designs by simulation on made-up people. Nothing here ever sees a peer's data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil

import numpy as np
from attrs import define, evolve, frozen

from aggregator.compute import HERE, Compute
from aggregator.lab.planning.candidates import Candidate, candidates
from aggregator.lab.planning.population import MADE_UP, Assumptions
from aggregator.lab.planning.trials import (
    Forecast,
    Trials,
    go_on,
    plan_of,
    populations_for,
    standard_error,
    worlds_of,
)
from aggregator.protocols.additive.reconstruct import Floats
from anon.errors import Malformed
from anon.protocols.histogram.sections import OnePacket
from anon.study.proposal import Proposal

BEHIND = 2.5

ALIKE = 0.03
"""The part of the leader's gain over an AUC of 1/2 that nobody would notice: of designs this close to it, tables win
over bits, because they measure how common categories are and their probabilities are calibrated."""


@frozen
class DesignChoice:
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
    assumed: Assumptions = MADE_UP,
    compute: Compute = HERE,
) -> DesignChoice:
    """Simulate the candidates on the same made-up populations; deterministic in `seed`.

    All are tried on an eighth of the populations, then those that could still win on a quarter, a half, and all of
    them: a design leaves when it is behind the leader by more than `BEHIND` standard errors of the difference on the
    same populations. Of those that stay, tables win over bits within `ALIKE` of the leader.
    The cohort is drawn with replacement from each. Raises `Malformed` for impossible numbers.
    """
    if populations is None:
        populations = populations_for(epsilon)
    if cohort < 2 or epsilon <= 0 or populations < 1:
        raise Malformed("study plan: expected at least 2 people, a positive epsilon and at least 1 population")
    worlds = worlds_of(proposal, populations, assumed, seed, compute)
    tried = [(candidate, _runs(candidate, cohort, seed)) for candidate in candidates(proposal, epsilon)]
    left = [runs for _, runs in tried]
    for until in sorted({ceil(populations / part) for part in (8, 4, 2, 1)}):
        go_on(left, worlds[:until], compute)
        leader = max(left, key=lambda runs: runs.mean)
        left = [runs for runs in left if runs is leader or not runs.far_behind(leader)]
    forecasts = [
        (runs.forecast(candidate.name, epsilon, runs.beside(leader), leader), candidate.proposal)
        for candidate, runs in tried
    ]
    forecasts.sort(key=lambda pair: -pair[0].auc)
    alike = [runs for runs in left if leader.mean - runs.mean <= ALIKE * max(leader.mean - 0.5, 0.0)]
    chosen = max(alike, key=lambda runs: (runs.asks_tables, runs.mean))
    name = next(candidate.name for candidate, runs in tried if runs is chosen)
    best = next(at for at, tried_design in enumerate(forecasts) if tried_design[0].design == name)
    forecasts.insert(0, forecasts.pop(best))
    return DesignChoice(tuple(tried_design[0] for tried_design in forecasts), forecasts[0][1])


def survey_of_choices(
    proposal: Proposal,
    cohorts: Sequence[int],
    epsilons: Sequence[float],
    seed: int,
    populations: int | None = None,
    progress: Callable[[], None] = lambda: None,
    compute: Compute = HERE,
    assumed: Assumptions = MADE_UP,
) -> tuple[DesignChoice, ...]:
    """`choose_design` for each cohort and epsilon, on few populations; the best then on as many as every figure of a
    design is from."""
    found = []
    for cohort in cohorts:
        for epsilon in epsilons:
            choice = choose_design(proposal, cohort, epsilon, seed, populations, assumed, compute)
            found.append(settled(choice, proposal, seed, compute, assumed))
            progress()
    return tuple(found)


def settled(
    choice: DesignChoice, proposal: Proposal, seed: int, compute: Compute = HERE, assumed: Assumptions = MADE_UP
) -> DesignChoice:
    """The choice with its best design tried on as many populations as every figure of a design is from."""
    best = choice.best
    trials = Trials(plan_of(choice.proposal, seed), best.cohort, seed)
    trials.go_on(worlds_of(proposal, populations_for(best.epsilon), assumed, seed, compute), compute)
    return evolve(choice, forecasts=(trials.forecast(best.design, best.epsilon), *choice.forecasts[1:]))


@define(eq=False)
class _Runs(Trials):
    """A candidate's trials beside those of others."""

    asks_tables: bool = True

    def behind(self, leader: _Runs) -> Floats:
        """By how much the leader is better on each population that this one was tried on."""
        gaps: Floats = np.array(leader.aucs[: len(self.aucs)]) - np.array(self.aucs)
        return gaps

    def far_behind(self, leader: _Runs) -> bool:
        gaps = self.behind(leader)
        return len(gaps) > 2 and float(gaps.mean()) > BEHIND * standard_error(gaps)

    def beside(self, leader: _Runs) -> float | None:
        """The leader's mean less the mean distance to it, so that all are about the same populations; None for a design
        that was tried on all of them, whose own mean it is."""
        if len(self.aucs) == len(leader.aucs):
            return None
        return leader.mean - float(self.behind(leader).mean())


def _runs(candidate: Candidate, cohort: int, seed: int) -> _Runs:
    design = candidate.proposal.design
    asks_tables = not isinstance(design, OnePacket) or design.asks == "tables"
    return _Runs(plan_of(candidate.proposal, seed), cohort, seed, asks_tables)
