"""How often a study publishes what noise counted, and how often what it publishes is wrong: small cohorts on Adult.

    python -m benchmarks.noise --train adult_train.csv.gz --test adult_test.csv.gz [--trials 300] [--shuffled]
        [--peers 100 300 1000] [--epsilon 0.25 0.5 1 2 4] [--asks tables pairs bits vote]

One row per design, cohort and epsilon, from simulated studies of examples/census. `shown`: the share of studies whose
model is said to be better than the base rate; `wrong`: the share that is said so and has a ROC AUC below .45 on the
test part; `doubtful`: the share where noise alone usually counts as much, so that votes are the base rate alone and the
additive model decides for the likelier label; `drawn_low`: the share that is published as "not shown to be better" with
a ROC AUC below .45; `apart`: there, the mean distance of probabilities from the base rate. Goals: `shown` <= 0.02 with
shuffled labels, and `wrong` < 0.01 everywhere, within the trials' error. Writes benchmarks/out/noise.json
(noise-shuffled.json) and fails where a goal is missed by more than chance would (three standard errors).
"""

from __future__ import annotations

import argparse
import sys
from math import sqrt
from pathlib import Path

import numpy as np
from attrs import evolve

from aggregator.lab.simulation.evaluation import evaluate, model_scores
from aggregator.lab.simulation.people import People, people_from_csv
from aggregator.lab.simulation.run import Plan
from aggregator.lab.simulation.simulate import NO_KEYS, learn_once
from aggregator.protocols.additive.noise_test import ABSTAIN_FROM, FALSE_ALARM
from aggregator.protocols.additive.reconstruct import Floats
from anon.protocols.histogram.sections import OnePacket
from anon.protocols.models.tables import Model
from anon.protocols.resolve import resolve
from anon.study.proposal import Proposal
from benchmarks.figures import Figure, publish
from benchmarks.utility import CENSUS, SEED, at_record_level
from examples.protocols import PROTOCOLS

LOW = 0.45
GOAL_WRONG = 0.01


def study_that_asks(asks: str, epsilon: float) -> Proposal:
    """The census study of tables, pairs or bits, or the paper's, at a record-level epsilon."""
    study = PROTOCOLS.load_proposal(CENSUS / ("paper.toml" if asks == "vote" else "study.toml"))
    if isinstance(study.design, OnePacket):
        size, kind = (2 if asks == "pairs" else 1), ("bits" if asks == "bits" else "tables")
        study = evolve(study, design=evolve(study.design, subset_size=size, asks=kind))
    return at_record_level(study, epsilon)


def measure(asks: str, peers: int, epsilon: float, trials: int, shuffled: bool, files: tuple[Path, Path]) -> Figure:
    """One row."""
    study = study_that_asks(asks, epsilon)
    people, test = (people_from_csv(study, file) for file in files)
    generator = np.random.default_rng(SEED)
    plan = Plan.of(resolve(study, NO_KEYS, 0, lambda below: int(generator.integers(below))))
    aucs, chances, shown, apart = [], [], [], []
    for _ in range(trials):
        chosen = people.take(generator.choice(len(people), min(peers, len(people)), replace=False))
        if shuffled:
            chosen = People(chosen.columns, generator.permutation(chosen.labels))
        learned = learn_once(plan, chosen, generator)
        aucs.append(evaluate(learned.model, test).auc)
        chances.append(learned.chance)
        shown.append(learned.learnable)
        if plan.manifest.learning.classifier == "additive" and aucs[-1] < LOW and not shown[-1]:
            apart.append(float(np.abs(_probabilities(learned.model, test) - learned.base_rate).mean()))
    low, told = np.array(aucs) < LOW, np.array(shown)
    return {
        "asks": asks, "peers": peers, "epsilon": epsilon, "shuffled": int(shuffled), "trials": trials,
        "shown": round(float(told.mean()), 4), "wrong": round(float((low & told).mean()), 4),
        "doubtful": round(float((np.array(chances) > ABSTAIN_FROM).mean()), 4),
        "drawn_low": round(float((low & ~told).mean()), 4),
        "apart": round(float(np.mean(apart)), 4) if apart else None,
        "auc_mean": round(float(np.mean(aucs)), 4),
        "auc_shown": round(float(np.array(aucs)[told].mean()), 4) if told.any() else None,
    }  # fmt: skip


def _probabilities(model: Model, people: People) -> Floats:
    rate = model.base_rate
    found: Floats = 1 / (1 + np.exp(-np.log(rate / (1 - rate)) - model_scores(model, people)))
    return found


def main() -> int:
    """Measure; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description="What small studies publish.")
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--peers", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.25, 0.5, 1.0, 2.0, 4.0])
    parser.add_argument("--asks", nargs="+", default=["tables"], choices=["tables", "pairs", "bits", "vote"])
    parser.add_argument("--shuffled", action="store_true")
    options = parser.parse_args()
    rows = []
    for asks in options.asks:
        for peers in options.peers:
            for epsilon in options.epsilon:
                files = (options.train, options.test)
                rows.append(measure(asks, peers, epsilon, options.trials, options.shuffled, files))
                print(rows[-1], file=sys.stderr, flush=True)
    name = "noise-shuffled" if options.shuffled else "noise"
    publish(name, rows, {"false_alarm": FALSE_ALARM, "goal_wrong": GOAL_WRONG, "seed": SEED})
    slack = 3 / sqrt(options.trials)
    missed = [row for row in rows if _above(row["wrong"], GOAL_WRONG, slack)]
    missed += [row for row in rows if options.shuffled and _above(row["shown"], FALSE_ALARM, slack)]
    return 1 if missed else 0


def _above(share: object, goal: float, slack: float) -> bool:
    return float(str(share)) > goal + slack * sqrt(goal * (1 - goal))


if __name__ == "__main__":
    sys.exit(main())
