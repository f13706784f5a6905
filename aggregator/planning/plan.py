"""Comparing designs by simulation on made-up people. Nothing here ever sees a peer's data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt

import numpy as np
from attrs import asdict, frozen

from aggregator.planning.candidates import Candidate, candidates
from aggregator.planning.population import Assumptions, made_up
from aggregator.simulate import NO_KEYS, run_trial
from aggregator.simulation.people import People
from aggregator.simulation.run import Plan
from anon.errors import Malformed
from anon.resolve import resolve
from anon.study.proposal import Proposal


@frozen
class Forecast:
    """What one design is expected to reach: the mean AUC over made-up populations, its standard error, and the spread
    (standard deviation) of one study's AUC."""

    design: str
    cohort: int
    epsilon: float
    auc: float
    auc_se: float
    spread: float

    def figures(self) -> dict[str, object]:
        """What `study plan --json` lists."""
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
    populations: int = 6,
    assumed: Assumptions | None = None,
) -> Choice:
    """Simulate every candidate on the same made-up populations; deterministic in `seed`.

    The cohort is drawn with replacement from each population. Raises `Malformed` for impossible numbers.
    """
    if cohort < 2 or epsilon <= 0 or populations < 1:
        raise Malformed("study plan: expected at least 2 people, a positive epsilon and at least 1 population")
    generator = np.random.default_rng(seed)
    worlds = [made_up(proposal, assumed or Assumptions(), generator) for _ in range(populations)]
    tried = []
    for candidate in candidates(proposal, epsilon):
        aucs = _aucs(candidate, worlds, cohort, np.random.default_rng([seed, 1]))
        forecast = Forecast(
            candidate.name,
            cohort,
            epsilon,
            float(aucs.mean()),
            float(aucs.std(ddof=1) / sqrt(len(aucs))) if len(aucs) > 1 else 0.0,
            float(aucs.std()),
        )
        tried.append((forecast, candidate.proposal))
    tried.sort(key=lambda one: -one[0].auc)
    return Choice(tuple(one[0] for one in tried), tried[0][1])


def survey_of_choices(
    proposal: Proposal,
    cohorts: Sequence[int],
    epsilons: Sequence[float],
    seed: int,
    populations: int = 6,
    progress: Callable[[], None] = lambda: None,
) -> tuple[Choice, ...]:
    """`choose_design` for each cohort and epsilon."""
    found = []
    for cohort in cohorts:
        for epsilon in epsilons:
            found.append(choose_design(proposal, cohort, epsilon, seed, populations))
            progress()
    return tuple(found)


def _aucs(
    candidate: Candidate, worlds: Sequence[tuple[People, People]], cohort: int, generator: np.random.Generator
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    plan = Plan.of(resolve(candidate.proposal, NO_KEYS, 0, lambda below: int(generator.integers(below))))
    return np.array([run_trial(plan, peers, test, generator, resampled=cohort).auc for peers, test in worlds])
