"""The local rule beside the rule that asks nobody, and beside one-bit packets without directions: four public sets.

    python -m benchmarks.rule_local --data FOLDER [--trials 100] [--sets NAME ...] [--peers N ...] [--shuffles 2500]

As `benchmarks.rule`, with noise of each machine's own in place of tellers: epsilon 1, delta 0, one packet a member.
`right`, `third` and `wrong`: the local rule. `none`: one-bit packets without directions, which has all members for
features. Labels are shuffled in `--shuffles` studies of each set with 2,000 people. Rows of other sets are kept.

Prints a table, writes benchmarks/out/rule-local.json and the section of docs/results.md. Names each bar that is missed,
and fails where one is.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from math import sqrt

import numpy as np
from attrs import evolve
from scipy.stats import kstest

from aggregator.lab.planning.trials import plan_of
from aggregator.lab.simulation.people import People
from aggregator.lab.simulation.run import Plan, collect
from aggregator.lab.simulation.simulate import learn_collected
from aggregator.protocols.additive.model import coordinates_of
from aggregator.protocols.additive.moments import gather
from aggregator.protocols.additive.noise_test import LEVEL
from aggregator.protocols.additive.ruled import CONTRADICTED, ScoreTallies, SideEvidence, evidence_of
from anon.protocols.histogram.asked import SCORE, SIDE
from anon.protocols.histogram.sections import OnePacket
from anon.protocols.models.tables import Model
from benchmarks.declared import SETS
from benchmarks.directions import SEED, people_of, study_of
from benchmarks.figures import OUT, Figure, publish
from benchmarks.paper.findings import number
from benchmarks.paper.rule_page import LOCAL, RULE, put
from benchmarks.rule import KINDS, THIRDS, Signs, World, measured, scores_of

NAME = "rule-local"
BELOW_RULE, BELOW_NONE = 0.01, {"third": 0.04, "wrong": 0.02}
FOUND, FALSE = 0.9, 0.02
LARGE = 2000


def plan_for(world: World, signs: Signs, peers: int, asks: str) -> Plan:
    """The study of a set with these directions."""
    study = study_of(world.of, True)
    features = tuple(evolve(one, expects=own) for one, own in zip(study.features, signs, strict=True))
    schedule = evolve(study.schedule, binning=86400 if asks == "rule" else 0)
    cohort, design = evolve(study.cohort, minimum=peers), OnePacket("one-packet", 1.0, asks=asks)
    return plan_of(evolve(study, features=features, design=design, cohort=cohort, schedule=schedule), SEED)


def learned(plan: Plan, people: People, draw: np.random.Generator) -> Model:
    """The model of one study, with its test."""
    found = learn_collected(plan, collect(plan, people, draw))
    return evolve(found.model, chance=found.chance, shown=found.learnable)


def measure(world: World, people: People, peers: int, trials: int, shuffles: int) -> Figure:
    """One row: means over the trials, with their standard errors."""
    plans = {kind: [plan_for(world, world.signs(kind, one), peers, "rule") for one in range(THIRDS)] for kind in KINDS}
    plans["none"] = [plan_for(world, ((),) * len(world.features), peers, "bits")] * THIRDS
    aucs: dict[str, list[float]] = {kind: [] for kind in plans}
    models: dict[str, list[Model]] = {kind: [] for kind in plans}
    for trial in range(trials):
        draw = np.random.default_rng([SEED, 59, *world.of.name.encode(), peers, trial])
        chosen = people.take(draw.choice(len(people), peers, replace=False))
        for kind, own in plans.items():
            model = learned(own[trial % THIRDS], chosen, draw)
            aucs[kind].append(world.auc(scores_of([np.array(one.log_odds) for one in model.tables], world.scored)))
            models[kind].append(model)
    row: Figure = {"set": world.of.name, "peers": peers, "trials": trials, "rule": round(world.rule, 4)}
    row |= {f"rule_{kind}": round(world.constant(kind), 4) for kind in ("third", "wrong")}
    for kind, values in aucs.items():
        row[kind], row[f"{kind}_se"] = round(float(np.mean(values)), 4), round(float(np.std(values)) / sqrt(trials), 4)
    for kind in KINDS:
        row[f"against_{kind}"] = round(float(np.mean([bool(one.belief and one.belief.contradicted)
                                                      for one in models[kind]])), 4)  # fmt: skip
        row[f"shown_{kind}"] = round(float(np.mean([bool(one.shown) for one in models[kind]])), 4)
    return row | (shuffled(world, people, peers, shuffles) if shuffles and peers == LARGE else {})


def shuffled(world: World, people: People, peers: int, shuffles: int) -> Figure:
    """False alarms where nothing is to be found."""
    plan, found = plan_for(world, world.signs("right", 0), peers, "rule"), list[SideEvidence]()
    coordinates, guess = coordinates_of(plan.manifest.features), plan.manifest.learning.base_rate
    for trial in range(shuffles):
        draw = np.random.default_rng([SEED, 60, *world.of.name.encode(), peers, trial])
        chosen = people.take(draw.choice(len(people), peers, replace=False)).shuffled(draw)
        told = collect(plan, chosen, draw)
        moments = gather(coordinates, [], told.bits, told.shares, guess)
        heard = ScoreTallies(told.sides[SCORE], told.sides[SIDE], guess)
        found.append(evidence_of(heard, moments.rate, moments.rate_error))
    return {
        "null_against": round(float(np.mean([one.against <= CONTRADICTED for one in found])), 4),
        "null_shown": round(float(np.mean([one.chance <= LEVEL for one in found])), 4),
        "null_p": round(float(kstest([one.against for one in found[:1000]], "uniform").pvalue), 3),
    }


def missed(rows: Sequence[Figure]) -> list[str]:
    """The bars that the rows miss, in words."""
    faults = []

    def demand(told: str, value: float, least: float) -> None:
        if round(value, 4) < round(least, 4):
            faults.append(f"{told} {value:.4f}, expected {least:.4f}")

    for peers in sorted({int(number(row, "peers")) for row in rows}):
        of = [row for row in rows if row["peers"] == peers]
        right, rule = (float(np.mean([number(row, name) for row in of])) for name in ("right", "rule"))
        demand(f"{peers:,}: right, the mean over sets,", right, rule - BELOW_RULE)
    for row in (row for row in rows if row["peers"] == LARGE):
        name = f"{row['set']}, {LARGE:,}:"
        for kind, less in BELOW_NONE.items():
            demand(f"{name} {kind}, beside none", number(row, kind), number(row, "none") - less)
        demand(f"{name} wrong, found", number(row, "against_wrong"), FOUND)
        demand(f"{name} right, not contradicted", 1 - number(row, "against_right"), 1 - FALSE)
        if "null_against" in row:
            demand(f"{name} nothing to find, not contradicted", 1 - number(row, "null_against"), 1 - FALSE)
    return faults


def _of_set(world: World, options: argparse.Namespace) -> Callable[[int], Figure]:
    people, _ = people_of(world.of, options.data)
    return lambda peers: measure(world, people, peers, options.trials, options.shuffles)


def main() -> int:
    """Measure every cell; 1 if a bar is missed."""
    rows, about = measured("The local rule beside the rule and beside one-bit packets.", 2500, _of_set)
    kept = OUT / f"{NAME}.json"
    before = json.loads(kept.read_text("utf-8"))["rows"] if kept.exists() else []
    new = {(row["set"], row["peers"]) for row in rows}
    rows += [row for row in before if (row["set"], row["peers"]) not in new]
    order = [one.name for one in SETS]
    rows.sort(key=lambda row: (order.index(str(row["set"])), number(row, "peers")))
    faults = missed(rows)
    publish(NAME, rows, {**about, "missed": len(faults)})
    put(kept, RULE, LOCAL)
    print("".join(f"missed: {fault}\n" for fault in faults), end="")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
