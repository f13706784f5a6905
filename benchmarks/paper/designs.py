"""The designs that the utility tables compare, and what `study plan` chooses among them.

The paper's pipeline runs in its fast form (`pipeline`), ours through the library's own simulation (`trials`) on a study
of the same data set. Every design is told the same public things: ranges, scales, categories and a round guess of the
share of positive labels. Ours are those that `study plan` compares (`aggregator.lab.planning.candidates`), so that its
choice is one of the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from attrs import evolve, frozen

from aggregator.lab.planning.candidates import candidates
from aggregator.lab.planning.plan import choose_design
from aggregator.lab.simulation.ceilings import binned_ceiling, raw_ceiling
from aggregator.lab.simulation.run import Plan
from aggregator.lab.simulation.simulate import NO_KEYS
from anon.protocols.resolve import resolve
from anon.study.proposal import Proposal
from benchmarks.figures import Figure
from benchmarks.paper import trials as ours
from benchmarks.paper.datasets import DataSet
from benchmarks.paper.fitting import mean_and_error
from benchmarks.paper.pipeline import Setting, run
from benchmarks.paper.studies import at_record_level

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
OTHER_EPSILONS = (0.5, 1.0, 2.0)
PLAN_SEED = 1
PAIRS = "tables of two features"
SOFT = "tables of one feature, 4 bins, soft votes"
DECLARED = "declared cuts: "

PAPERS: Mapping[str, Setting] = {
    "paper (20, 1, 2)": Setting(20, 1, 2),
    "paper (20, 1, 2), scored on itself": Setting(20, 1, 2, scored_on="same"),
    "paper (5, 3, 2)": Setting(5, 3, 2),
    "paper (20, 1, 1), medians for nothing": Setting(20, 1, 1, medians_known=True),
}
"""The last is no pipeline of the paper's: it is what its learner would give if medians cost nothing and were exact, and
a peer spent its whole budget on one histogram, as in ours."""


@frozen
class Asked:
    """One cell of a table: a data set's peers (None: all), a record-level epsilon, and how often to try."""

    epsilon: float
    peers: int | None
    trials: int
    seed: int


def told(data: DataSet, declared: bool = False) -> Proposal:
    """Our study of the data set (with declared cuts, where it has them) and the guess of the base rate."""
    study = data.declared_study if declared else data.our_study
    if study is None:
        raise LookupError(f"{data.name} has no study with declared cuts")
    return evolve(study, learning=evolve(study.learning, base_rate=data.guess))


def studies(data: DataSet, epsilon: float) -> dict[str, Proposal]:
    """Our designs by name at this epsilon: those that a plan compares, and the first of them with soft votes."""
    found = {one.name: one.proposal for one in candidates(told(data), epsilon)}
    return {SOFT: at_record_level(data.our_study, epsilon), **found}


def listed(data: DataSet, epsilon: float, peers: int | None) -> list[str]:
    """The rows of every table: the paper's, then bits in two and four bins and tables in four. Pairs with all peers
    only, and soft votes on Adult only: they take the longest. The plan's choice joins them."""
    found = [*PAPERS, "one-bit packets, 2 bins", "one-bit packets, 4 bins", "tables of one feature, 4 bins"]
    found += [SOFT] if data.name == "adult" and peers is None else []
    return [*found, *(name for name in studies(data, epsilon) if peers is None and name == f"{PAIRS}, 4 bins")]


def row(data: DataSet, design: str, asked: Asked) -> Figure:
    """One cell of a utility table."""
    found = _papers(data, design, asked) if design in PAPERS else _ours(data, design, asked)
    return {"set": data.name, "design": design, "epsilon": asked.epsilon, "peers": asked.peers,
            "trials": asked.trials, **found}  # fmt: skip


def _papers(data: DataSet, design: str, asked: Asked) -> Figure:
    """The paper's pipeline, its budget split evenly over everything that a peer sends."""
    binned = len(data.population.numbers)
    share = int(asked.epsilon / PAPERS[design].releases(binned) * 1e9) / 1e9
    setting = evolve(PAPERS[design], epsilon=share, peers=asked.peers)
    return _means(run(data.population, setting, asked.trials, asked.seed).auc, setting.epsilon_record(binned))


def _ours(data: DataSet, design: str, asked: Asked) -> Figure:
    if design.startswith(DECLARED):
        everyone = data.declared_people
        study = _proposal(told(data, True), asked.epsilon, design.removeprefix(DECLARED))
    else:
        everyone, study = data.our_people, studies(data, asked.epsilon)[design]
    found = ours.run(study, *everyone, asked.peers, asked.trials, asked.seed)
    return {**_means(found.auc, found.epsilon), "shown": float(found.shown.mean())}


def _proposal(study: Proposal, epsilon: float, name: str) -> Proposal:
    return next(one.proposal for one in candidates(study, epsilon) if one.name == name)


def _means(aucs: Iterable[float], epsilon: float) -> Figure:
    values = np.array(list(aucs))
    mean, error = mean_and_error(values)
    return {"auc": mean, "auc_se": error, "auc_sd": float(values.std()), "epsilon_spent": round(epsilon, 6)}


def chosen(data: DataSet, asked: Asked, declared: bool) -> Figure:
    """The choice of `study plan` for so many people at this epsilon, from the study file alone, and its forecast."""
    people = data.our_people[0]
    cohort = len(people) if asked.peers is None else asked.peers
    best = choose_design(told(data, declared), cohort, asked.epsilon, PLAN_SEED).best
    return {"set": data.name, "epsilon": asked.epsilon, "peers": asked.peers, "declared": declared,
            "chosen": (DECLARED if declared else "") + best.design, "expected": best.auc}  # fmt: skip


def ceiling(data: DataSet) -> Figure:
    """ROC AUC without privacy: logistic regression on our bins and on raw values, and how many people there are."""
    people, test = data.our_people
    plan = Plan.of(resolve(studies(data, 1.0)[SOFT], NO_KEYS, 0, lambda below: 0))
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
