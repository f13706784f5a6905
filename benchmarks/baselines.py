"""The figures beside which a study's result stands: of nobody asked, and of the same people without any privacy.

    python -m benchmarks.baselines --data FOLDER [--peers 2000] [--trials 20]

On the sets of `benchmarks.declared`, scored on people who were no peers. `majority`: the accuracy of the commoner
answer for everybody. `rule`: the ROC AUC of the declared directions by themselves. The others are ROC AUCs of so many
people, means over trials. `central`: central differential privacy at epsilon 1, delta 1e-6, by a trusted party. The
rest is without privacy: logistic regression on declared cuts (`binned`) and on raw values (`raw`), and boosted trees on
raw values (`boosted`). Prints a table and writes benchmarks/out/baselines.json.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from aggregator.lab.planning.trials import plan_of
from aggregator.lab.simulation.ceilings import binned_ceiling, raw_ceiling
from aggregator.lab.simulation.evaluation import roc_auc
from aggregator.lab.simulation.people import People
from aggregator.lab.simulation.trusted_party import trusted_party_auc
from aggregator.protocols.additive.reconstruct import Floats
from anon.ldp import nano
from benchmarks.data import data_folder
from benchmarks.declared import SETS, DataSet
from benchmarks.directions import SEED, people_of, rule_auc, study_of
from benchmarks.figures import Figure, publish


def boosted(train: People, test: People) -> float:
    """The ROC AUC of gradient-boosted trees: numbers as they are, categories by their place."""
    model = HistGradientBoostingClassifier(random_state=0).fit(_matrix(train), train.labels)
    return roc_auc(model.decision_function(_matrix(test)), test.labels == 1)


def _matrix(people: People) -> Floats:
    columns = [
        one.index.astype(float) if np.isnan(one.numbers).all() else one.numbers[one.index]
        for one in people.columns.values()
    ]
    return np.column_stack(columns)


def figures(of: DataSet, folder: Path, peers: int, trials: int) -> Figure:
    """One row of the table."""
    people, test = people_of(of, folder)
    plan, found = plan_of(study_of(of, True), SEED), []
    for trial in range(trials):
        generator = np.random.default_rng([SEED, *of.name.encode(), peers, trial])
        chosen = people.take(generator.choice(len(people), peers, replace=False))
        central = trusted_party_auc(plan, nano("1"), chosen, test, generator)
        unprotected = binned_ceiling(plan, chosen, test), raw_ceiling(plan, chosen, test), boosted(chosen, test)
        found.append((central, *unprotected))
    rate = float(test.labels.mean())
    row: Figure = {"set": of.name, "peers": peers, "trials": trials, "majority": round(max(rate, 1 - rate), 3)}
    row["rule"] = round(rule_auc(of, test), 3)
    means = np.mean(found, axis=0)
    names = ("central", "binned", "raw", "boosted")
    return row | {name: round(float(mean), 3) for name, mean in zip(names, means, strict=True)}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="What nobody asked, and no privacy, would give.")
    parser.add_argument("--data", type=data_folder, required=True)
    parser.add_argument("--peers", type=int, default=2000)
    parser.add_argument("--trials", type=int, default=20)
    options = parser.parse_args()
    rows = [figures(of, options.data, options.peers, options.trials) for of in SETS]
    publish("baselines", rows, {"seed": SEED})


if __name__ == "__main__":
    main()
