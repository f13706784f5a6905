"""The calibrated rule beside the rule that asks nobody, and beside summed tables, on four public data sets.

    python -m benchmarks.rule --data FOLDER [--trials 100] [--sets NAME ...] [--peers N ...] [--shuffles 2000]

Directions and cuts are those of `benchmarks.declared`, written down before anything was scored. Epsilon 1 at delta
1e-6, the noise of two tellers. Each trial draws people and noise anew. Scored is the ROC AUC of the published log-odds
on people who took no part, whatever the study says of itself. `right`, `third` and `wrong`: the calibrated rule with
all signs right, with one of three fixed thirds turned around, and with all of them turned. `tables`, `none`: one sum of
tables with right signs, and without any. A constant learner that publishes the rule stands beside them: `rule`,
`rule_third` and `rule_wrong`. `against_*`: the share of studies that say that the answers contradict what was declared.

Labels are shuffled in `--shuffles` further studies of each cell. `null_against` and `null_shown` are its false alarms,
and `null_p` is the p-value of a Kolmogorov-Smirnov test that its p-values are uniform.

Prints a table, writes benchmarks/out/rule.json and the section of docs/results.md, and names each bar that is missed,
for the calibrated rule and for the constant learner. Fails where the calibrated rule misses one.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import sqrt
from pathlib import Path

import numpy as np
from attrs import evolve, frozen
from scipy.stats import kstest

from aggregator.lab.simulation.evaluation import roc_auc
from aggregator.lab.simulation.people import People
from aggregator.lab.simulation.ruled_sums import log_odds, rule_sums
from aggregator.lab.simulation.run import categories
from aggregator.lab.simulation.sum_noise import Integers, simulated_noise
from aggregator.protocols.additive.learner import fit
from aggregator.protocols.additive.model import coordinates_of
from aggregator.protocols.additive.noise_test import LEVEL
from aggregator.protocols.additive.reconstruct import Floats
from aggregator.protocols.sum.published import NoisySum
from aggregator.protocols.sum.table_moments import gather_sums
from anon.accounting.noisy_sums import sigma_squared_for
from anon.ldp import nano
from anon.protocols.sum.rule import noises_for, residuals
from anon.protocols.vectors.residuals import ResidualSums, ScoreSums, ruled
from anon.protocols.vectors.rule import CONTRADICTED, DeclaredRule, ScoreEvidence, evidence_of
from anon.protocols.vectors.tables import tables_of
from anon.study.features import Feature
from benchmarks.data import data_folder
from benchmarks.declared import SETS, DataSet
from benchmarks.directions import SEED, people_of, rule_auc, signs_of, study_of
from benchmarks.figures import OUT, Figure, publish
from benchmarks.paper.findings import number
from benchmarks.paper.rule_page import RULE, put

PEERS = (100, 300, 500, 1000, 2000)
DELTA, PARTIES = Decimal("1e-6"), 2
ROUNDS = 3
"""The first one included."""
THIRDS = 3
"""Fixed draws of a third of the declared features."""
KINDS = ("right", "third", "wrong")
Signs = tuple[tuple[int, ...], ...]
BELOW_RULE, BELOW_TABLES, BELOW_NONE = 0.005, 0.005, {"third": 0.01, "wrong": 0.02}
FOUND, FALSE = 0.95, 0.02
BARS = {
    ("adult", 100): 0.858, ("adult", 300): 0.86, ("adult", 1000): 0.868, ("adult", 2000): 0.877,
    ("kddcup2015", 2000): 0.844, ("spambase", 2000): 0.965, ("news", 2000): 0.675,
}  # fmt: skip


@frozen(eq=False)
class World:
    """A set: its features, who may take part, and who is scored on; categories have shape (people, features)."""

    of: DataSet
    features: tuple[Feature, ...]
    held: Integers
    labels: Integers
    scored: Integers
    positive: Integers
    rule: float

    @staticmethod
    def read(of: DataSet, folder: Path) -> World:
        """Read the set's files."""
        people, test = people_of(of, folder)
        features = study_of(of, True).features
        return World(
            of, features, _held(features, people), people.labels, _held(features, test), test.labels,
            rule_auc(of, test),
        )  # fmt: skip

    def signs(self, kind: str, trial: int) -> Signs:
        """The declared signs, right or turned around."""
        turned = np.full(len(self.features), kind == "wrong")
        if kind == "third":
            told = np.flatnonzero([bool(signs) for signs in self.signs("right", 0)])
            draw = np.random.default_rng([SEED, 53, *self.of.name.encode(), trial % THIRDS])
            turned[draw.choice(told, round(len(told) / 3), replace=False)] = True
        return signs_of(self.of, turned)

    def declared(self, signs: Signs) -> DeclaredRule:
        """The rule of these signs."""
        directions = []
        for feature, own in zip(self.features, signs, strict=True):
            spaced = np.linspace(-1, 1, feature.cardinality)
            told = np.zeros(feature.cardinality) if not own else np.array(own) if len(own) > 1 else own[0] * spaced
            directions.append(tuple(map(float, told)))
        return DeclaredRule(tuple(directions), self.of.base_rate)

    def auc(self, scores: Floats) -> float:
        """The ROC AUC of these scores of the people who took no part."""
        return roc_auc(scores, self.positive == 1)

    def constant(self, kind: str) -> float:
        """The AUC of a learner that publishes the rule, whatever was answered."""
        rules = [self.declared(self.signs(kind, trial)) for trial in range(THIRDS)]
        return float(np.mean([self.auc(scores_of(rule.directions, self.scored)) for rule in rules]))


def _held(features: Sequence[Feature], people: People) -> Integers:
    found = categories(features, people, {})
    return np.column_stack([found[feature.name] for feature in features])


def scores_of(tables: Sequence[Sequence[float] | Floats], held: Integers) -> Floats:
    """The sum of each person's part in every table."""
    found: Floats = np.sum([np.array(own)[at] for own, at in zip(tables, held.T, strict=True)], axis=0, dtype=float)
    return found


def residuals_of(world: World) -> tuple[ResidualSums, tuple[Fraction, ...]]:
    """The residuals of a set, and each teller's sigma squared in each round."""
    cards = tuple(feature.cardinality for feature in world.features)
    return residuals(cards), noises_for(cards, ROUNDS, nano("1"), DELTA)


def one_trial(world: World, peers: int, trial: int) -> tuple[dict[str, float], dict[str, ScoreEvidence]]:
    """The AUC of each column, and the evidence about each kind of signs."""
    draw = np.random.default_rng([SEED, 54, *world.of.name.encode(), peers, trial])
    chosen = draw.choice(len(world.labels), peers, replace=False)
    held, labels = world.held[chosen], world.labels[chosen]
    shape, noises = residuals_of(world)
    aucs, found = {}, {}
    for kind in KINDS:
        rule = world.declared(world.signs(kind, trial))
        calibration, model = ruled(rule, shape, rule_sums(rule, shape, noises, PARTIES, held, labels, draw))
        found[kind] = calibration.evidence
        aucs[kind] = world.auc(log_odds(model, world.scored))
    aucs |= _of_tables(world, held, labels, draw)
    return aucs, found


def _of_tables(world: World, held: Integers, labels: Integers, draw: np.random.Generator) -> dict[str, float]:
    """One sum of tables, learned with right signs and without any."""
    design = tables_of({feature.name: feature.cardinality for feature in world.features})
    each = sigma_squared_for(
        design.sensitivity_squared("replace-one"), design.changed("replace-one"), nano("1"), DELTA
    )  # fmt: skip
    exact = np.concatenate([
        np.bincount(2 * own + labels, minlength=length) for own, length in zip(held.T, design.lengths, strict=True)
    ])
    values = tuple(map(int, exact + simulated_noise(each, PARTIES, len(exact), draw)))
    coordinates = coordinates_of(world.features)
    moments = gather_sums(coordinates, design, NoisySum(values, len(labels), each, PARTIES), {}, world.of.base_rate)
    found = {}
    for name, signs in (("tables", world.signs("right", 0)), ("none", ((),) * len(world.features))):
        learned = fit(evolve(moments, coordinates=evolve(coordinates, expects=signs)))
        tables = [learned.log_odds[coordinates.places[feature.name]] for feature in world.features]
        found[name] = world.auc(scores_of(tables, world.scored))
    return found


def shuffled(world: World, peers: int, shuffles: int) -> Figure:
    """False alarms where nothing is to be found."""
    rule, found = world.declared(world.signs("right", 0)), []
    shape, noises = residuals_of(world)
    for trial in range(shuffles):
        draw = np.random.default_rng([SEED, 55, *world.of.name.encode(), peers, trial])
        chosen = draw.choice(len(world.labels), peers, replace=False)
        labels = draw.permutation(world.labels[chosen])
        (first,) = rule_sums(rule, shape, noises[:1], PARTIES, world.held[chosen], labels, draw)
        found.append(evidence_of(*ScoreSums(shape).cells(first), rule.guess))
    return {
        "null_against": round(float(np.mean([one.against <= CONTRADICTED for one in found])), 4),
        "null_shown": round(float(np.mean([one.chance <= LEVEL for one in found])), 4),
        "null_p": round(float(kstest([one.against for one in found], "uniform").pvalue), 3),
    }


def measure(world: World, peers: int, trials: int, shuffles: int) -> Figure:
    """One row: means over the trials, with their standard errors."""
    tried = [one_trial(world, peers, trial) for trial in range(trials)]
    row: Figure = {"set": world.of.name, "peers": peers, "trials": trials, "rule": round(world.rule, 4)}
    row |= {f"rule_{kind}": round(world.constant(kind), 4) for kind in ("third", "wrong")}
    for name in ("tables", "none", *KINDS):
        values = np.array([aucs[name] for aucs, _ in tried])
        row[name], row[f"{name}_se"] = round(float(values.mean()), 4), round(float(values.std()) / sqrt(trials), 4)
    for kind in KINDS:
        row[f"against_{kind}"] = round(float(np.mean([found[kind].against <= CONTRADICTED for _, found in tried])), 4)
        row[f"shown_{kind}"] = round(float(np.mean([found[kind].chance <= LEVEL for _, found in tried])), 4)
    return row | (shuffled(world, peers, shuffles) if shuffles else {})


def missed(row: Figure, learner: Mapping[str, float], against: Mapping[str, float]) -> list[str]:
    """The bars that a learner misses in a cell, in words. Given are its AUC and share of contradictions by signs."""
    name, peers, faults = str(row["set"]), int(number(row, "peers")), []

    def demand(told: str, value: float, least: float) -> None:
        if round(value, 4) < round(least, 4):
            faults.append(f"{name}, {peers:,}: {told} {value:.4f}, expected {least:.4f}")

    demand("right, beside the rule", learner["right"], number(row, "rule") - BELOW_RULE)
    demand("right", learner["right"], BARS.get((name, peers), 0.0))
    if peers >= 1000:
        demand("right, beside tables", learner["right"], number(row, "tables") - BELOW_TABLES)
    if peers >= 2000:
        for kind, less in BELOW_NONE.items():
            demand(f"{kind}, beside none", learner[kind], number(row, "none") - less)
        demand("wrong, found", against["wrong"], FOUND)
        demand("right, not contradicted", 1 - against["right"], 1 - FALSE)
        if "null_against" in row:
            demand("nothing to find, not contradicted", 1 - number(row, "null_against"), 1 - FALSE)
    return faults


def faults_of(row: Figure) -> tuple[list[str], list[str]]:
    """Those of the calibrated rule, and those of a constant learner, which finds nothing out."""
    own = missed(
        row, {kind: number(row, kind) for kind in KINDS}, {kind: number(row, f"against_{kind}") for kind in KINDS}
    )
    rule = {"right": number(row, "rule"), "third": number(row, "rule_third"), "wrong": number(row, "rule_wrong")}
    return own, missed(row, rule, dict.fromkeys(KINDS, 0.0))


def measured(
    description: str, shuffles: int, of_set: Callable[[World, argparse.Namespace], Callable[[int], Figure]]
) -> tuple[list[Figure], Figure]:
    """Every cell that the command line asks for, and how it was measured. `of_set` gives what measures a set's cell
    with so many people; `shuffles` are as many as are usual."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=data_folder, required=True)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--shuffles", type=int, default=shuffles)
    parser.add_argument("--sets", nargs="+", default=[one.name for one in SETS])
    parser.add_argument("--peers", type=int, nargs="+", default=list(PEERS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: list[Figure] = []
    for of in (one for one in SETS if one.name in options.sets):
        measure_cell = of_set(World.read(of, options.data), options)
        for peers in options.peers:
            rows.append(measure_cell(peers))
            print(rows[-1], file=sys.stderr, flush=True)
    return rows, {"trials": options.trials, "shuffles": options.shuffles, "seed": SEED}


def main() -> int:
    """Measure every cell; 1 if the calibrated rule misses a bar."""
    rows, about = measured(
        "The calibrated rule beside the rule and beside tables.", 2000,
        lambda world, options: lambda peers: measure(world, peers, options.trials, options.shuffles),
    )  # fmt: skip
    own, constant = ([fault for row in rows for fault in faults_of(row)[of]] for of in (0, 1))
    publish("rule", rows, {**about, "missed": len(own), "missed_by_a_constant": len(constant)})
    put(OUT / "rule.json", RULE)
    print("".join(f"missed: {fault}\n" for fault in own), end="")
    return 1 if own else 0


if __name__ == "__main__":
    sys.exit(main())
