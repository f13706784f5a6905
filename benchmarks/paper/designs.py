"""The designs that the utility tables compare. A new one is one more row of `DESIGNS`.

The paper's pipeline runs in its fast form (`pipeline`), everything else through `aggregator.simulate`, the library's
own simulation, on a study of the same data set. Every design is told the same public things: ranges, scales,
categories and a round guess of the share of positive labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from attrs import evolve, frozen

from aggregator.planning.plan import choose_design
from aggregator.simulate import NO_KEYS, simulate
from aggregator.simulation.ceilings import binned_ceiling, raw_ceiling
from aggregator.simulation.run import Plan
from anon.resolve import resolve
from anon.study.parts import Learning
from anon.study.proposal import OnePacket, Proposal
from benchmarks.figures import Figure
from benchmarks.paper.datasets import DataSet, Split
from benchmarks.paper.fitting import mean_and_error
from benchmarks.paper.pipeline import Setting, run
from benchmarks.paper.studies import at_record_level

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
OTHER_EPSILONS = (0.5, 1.0, 2.0)
PLAN_SEED = 1


@frozen
class Measured:
    """Mean ROC AUC over the trials, its standard error, and the record-level epsilon that was in fact spent.

    `chosen`: what `study plan` chose, where it did.
    """

    auc: float
    auc_se: float
    epsilon_record: float
    chosen: str = ""


Measure = Callable[[DataSet, float, int | None, int, int], Measured]
"""(data set, record-level epsilon, peers or None for all, trials, seed)."""


def papers(setting: Setting) -> Measure:
    """The paper's pipeline, its budget split evenly over everything that a peer sends."""

    def measure(data: DataSet, epsilon: float, peers: int | None, trials: int, seed: int) -> Measured:
        binned = len(data.population.numbers)
        share = int(epsilon / (setting.subsets + binned) * 1e9) / 1e9
        asked = evolve(setting, epsilon=share, peers=peers)
        found = run(data.population, asked, trials, seed)
        mean, error = mean_and_error(found.auc)
        return Measured(mean, error, asked.epsilon_record(binned))

    return measure


def library(study_of: Callable[[DataSet, float], Proposal]) -> Measure:
    """A study through the library's own simulation."""

    def measure(data: DataSet, epsilon: float, peers: int | None, trials: int, seed: int) -> Measured:
        people, test = data.our_people
        found = simulate(study_of(data, epsilon), people, trials, seed, test, peers=peers, ceilings=False)
        return Measured(found.auc_mean, found.auc_se, found.epsilon_record)

    return measure


def planned(data: DataSet, epsilon: float, peers: int | None, trials: int, seed: int) -> Measured:
    """Whatever `study plan` chooses for so many people at this epsilon, from the study file alone."""
    return _by_plan(data.our_study, data.our_people, data.guess, epsilon, peers, trials, seed)


def planned_declared(data: DataSet, epsilon: float, peers: int | None, trials: int, seed: int) -> Measured:
    """The same from the study with declared cuts."""
    study = data.our_study if data.declared_study is None else data.declared_study
    return _by_plan(study, data.declared_people, data.guess, epsilon, peers, trials, seed)


def _by_plan(
    study: Proposal, groups: Split, guess: float, epsilon: float, peers: int | None, trials: int, seed: int
) -> Measured:
    people, test = groups
    told = evolve(study, learning=evolve(study.learning, base_rate=guess))
    name, chosen = _choice(told, len(people) if peers is None else peers, epsilon)
    found = simulate(chosen, people, trials, seed, test, peers=peers, ceilings=False)
    return Measured(found.auc_mean, found.auc_se, found.epsilon_record, name)


@cache
def _choice(study: Proposal, cohort: int, epsilon: float) -> tuple[str, Proposal]:
    choice = choose_design(study, cohort, epsilon, PLAN_SEED)
    return choice.best.design, choice.proposal


def soft(data: DataSet, epsilon: float) -> Proposal:
    """One packet per peer: a table of one feature, noise-aware log-odds that are added up."""
    return at_record_level(data.our_study, epsilon)


def additive(data: DataSet, epsilon: float) -> Proposal:
    """The same packets, learned as one additive model of all surveys."""
    learning = Learning(classifier="additive", score_share=0, base_rate=data.guess)
    return at_record_level(evolve(data.our_study, learning=learning), epsilon)


def bits(data: DataSet, epsilon: float) -> Proposal:
    """One-bit packets, learned as one additive model."""
    study = additive(data, epsilon)
    if not isinstance(study.design, OnePacket):
        raise TypeError("expected a one-packet study")
    return evolve(study, design=evolve(study.design, asks="bits"))


DESIGNS: Mapping[str, Measure] = {
    "paper (20, 1, 2)": papers(Setting(20, 1, 2)),
    "paper (20, 1, 2), scored on itself": papers(Setting(20, 1, 2, scored_on="same")),
    "paper (5, 3, 2)": papers(Setting(5, 3, 2)),
    "one packet, soft": library(soft),
    "one packet, additive": library(additive),
    "one bit, additive": library(bits),
    "study plan's choice": planned,
    "study plan's choice, declared cuts": planned_declared,
}


def applies(data: DataSet, design: str) -> bool:
    """Whether the data set has what the design needs."""
    return "declared" not in design or data.declared_study is not None


def row(data: DataSet, design: str, epsilon: float, peers: int | None, trials: int, seed: int) -> Figure:
    """One cell of a utility table."""
    found = DESIGNS[design](data, epsilon, peers, trials, seed)
    return {
        "set": data.name,
        "design": design,
        "epsilon": epsilon,
        "epsilon_spent": round(found.epsilon_record, 6),
        "peers": peers,
        "auc": found.auc,
        "auc_se": found.auc_se,
        "trials": trials,
        "chosen": found.chosen,
    }


def ceiling(data: DataSet) -> Figure:
    """ROC AUC without privacy: logistic regression on our bins and on raw values, and how many people there are."""
    people, test = data.our_people
    plan = Plan.of(resolve(soft(data, 1.0), NO_KEYS, 0, lambda below: 0))
    return {
        "set": data.name,
        "title": data.title,
        "peers": len(people),
        "test": len(test),
        "features": len(data.our_study.features),
        "binned": len(data.population.numbers),
        "positive": float(people.labels.mean()),
        "auc_binned": binned_ceiling(plan, people, test),
        "auc_raw": raw_ceiling(plan, people, test),
    }
