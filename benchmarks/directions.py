"""The worth of declared directions and cuts on four public data sets, beside the same studies without them.

    python -m benchmarks.directions --data FOLDER [--trials 100] [--sets NAME] [--peers N] [--epsilon 1] [--shuffled]

Each study is the one that `study plan` chooses without seeing the data. `plan`: cuts are found privately; `cuts`: they
are declared. Directions, ranges and cuts are those of `benchmarks.declared`. All fits of a trial read the same packets:
without directions, with the `right` signs, with a `third` of them turned around, and with all turned (`wrong`). Scored
is the ROC AUC on people who were no peers; `rule`: that of the sum of the declared signs, which asks nobody. `shown`:
the share of studies whose model is said to beat a guess; `ece`: the calibration error.

Every trial is kept in benchmarks/out/directions.jsonl as soon as it is done, and a further run goes on from there: a
trial's chance depends on its cell and number alone. A row is the mean over all of its cell's trials that are kept, so
that cells of much noise can have more of them. One thread is fastest (OPENBLAS_NUM_THREADS=1): .1 s a trial.

--shuffled permutes the labels of the peers, so that `shown` is the rate of false alarms. Prints a table, writes
benchmarks/out/directions.json, and fails where a goal is missed. Goals: in the mean over sets, at 2,000 peers and
epsilon 1, right signs and declared cuts gain at least .04; right signs lose in no cell more than .003 and two standard
errors of the paired difference; wrong ones lose .03 at most.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from aggregator.lab.planning.candidates import candidates
from aggregator.lab.planning.plan import choose_design
from aggregator.lab.planning.trials import plan_of
from aggregator.lab.simulation.evaluation import calibration_error, roc_auc
from aggregator.lab.simulation.people import FeatureColumn as Asked
from aggregator.lab.simulation.people import People
from aggregator.lab.simulation.run import Plan, categories, collect
from aggregator.protocols.additive.learner import fit
from aggregator.protocols.additive.model import coordinates_of
from aggregator.protocols.additive.moments import gather
from aggregator.protocols.additive.noise_test import FALSE_ALARM, LEVEL
from aggregator.protocols.additive.reconstruct import Floats
from anon.study.features import Feature, Learning
from anon.study.proposal import Proposal
from benchmarks.data import data_folder
from benchmarks.declared import SETS, Column, DataSet
from benchmarks.figures import OUT, Figure, publish
from benchmarks.utility import CENSUS
from examples.protocols import PROTOCOLS

SEED = 2017
PEERS = (300, 1000, 2000, 5000, 0)
"""0 for all."""
EPSILONS = (0.5, 1.0, 2.0, 4.0)
SIGNS = ("none", "right", "third", "wrong")
MOST_SCORED = 4000
POPULATIONS = 8
"""Made-up populations that a design is chosen on; more would change few choices and take most of the time."""
GOAL_GAIN, GOAL_LOSS, GOAL_WRONG = 0.04, 0.003, 0.03
POSITIVE = {"income": ">50K", "dropout": "1", "spam": "1", "shares": 1400}


@frozen
class Cell:
    """One study: a data set, so many peers (0 for all), an epsilon, and with declared cuts or without."""

    of: DataSet
    peers: int
    epsilon: float
    cuts: bool
    shuffled: bool

    @property
    def key(self) -> str:
        """Its name in the file of trials."""
        return f"{self.of.name}/{self.peers}/{self.epsilon:g}/{'cuts' if self.cuts else 'plan'}/{int(self.shuffled)}"

    def generator(self, trial: int, purpose: int) -> np.random.Generator:
        """Of one trial. Who takes part (purpose 0) depends on set, size and trial alone."""
        cell = [round(1000 * self.epsilon), int(self.cuts)] if purpose else []
        return np.random.default_rng([SEED, purpose, *self.of.name.encode(), self.peers, trial, *cell])


def study_of(of: DataSet, cuts: bool) -> Proposal:
    """The study that asks about the set's columns, without directions; with declared `cuts` it has no time for
    finding any, so that the plan keeps them."""
    census = PROTOCOLS.load_proposal(CENSUS / "study.toml")
    features = tuple(_feature(number, column, cuts) for number, column in enumerate(of.columns))
    schedule = evolve(census.schedule, binning=0 if cuts else census.schedule.binning)
    learning = Learning("additive", "soft", "auc", 0, of.base_rate)
    return evolve(census, features=features, schedule=schedule, learning=learning)


def _feature(number: int, column: Column, cuts: bool) -> Feature:
    name = f"{re.sub('[^a-z0-9]', '_', column.name.lower())[:30]}_{number}"
    if column.categories:
        words = tuple(column.categories)
        return Feature(name, "categorical", column.name, "SELECT 1", words[-1], categories=words)
    divided: dict[str, Any] = {"cuts": column.cuts} if cuts or column.given else {"bins": len(column.cuts) + 1}
    return Feature(
        name, "numeric", column.name, "SELECT 1", column.range[0], column.range, scale=column.scale, **divided
    )


def signs_of(of: DataSet, turned: NDArray[np.bool_]) -> tuple[tuple[int, ...], ...]:
    """The declared signs of each column, turned around where `turned` says so."""
    found = []
    for column, around in zip(of.columns, turned, strict=True):
        signs = (column.expects,) if isinstance(column.expects, int) else column.expects
        found.append(tuple(-sign if around else sign for sign in signs) if any(signs) else ())
    return tuple(found)


def people_of(of: DataSet, folder: Path) -> tuple[People, People]:
    """The people to draw peers from, and those to score on: of the second file, or a third of the first."""
    everyone = [_read(of, folder / file) for file in of.files]
    order = np.random.default_rng([SEED, len(everyone[-1])]).permutation(len(everyone[-1]))
    if len(everyone) == 1:
        kept, scored = order[len(order) // 3 :], order[: len(order) // 3]
        return everyone[0].take(kept), everyone[0].take(scored[:MOST_SCORED])
    return everyone[0], everyone[1].take(order[:MOST_SCORED])


def _read(of: DataSet, path: Path) -> People:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    features = study_of(of, True).features
    columns = {
        feature.name: _asked(column, [row[column.name] for row in rows])
        for feature, column in zip(features, of.columns, strict=True)
    }
    positive = POSITIVE[of.label]
    labels = [
        float(row[of.label]) >= positive if isinstance(positive, int) else row[of.label] == positive for row in rows
    ]
    return People(columns, np.array(labels, dtype=np.int64))


def _asked(column: Column, cells: Sequence[str]) -> Asked:
    if column.categories:
        words = list(column.categories)
        place = {value: at for at, word in enumerate(words) for value in column.categories[word]}
        return Asked(tuple(words), np.array([place.get(cell, len(words) - 1) for cell in cells], dtype=np.int64))
    values, index = np.unique(np.array([float(cell) for cell in cells]), return_inverse=True)
    return Asked(tuple(values.tolist()), index.astype(np.int64))


def rule_auc(of: DataSet, test: People) -> float:
    """The AUC of the sum of declared directions over declared cuts: nobody is asked."""
    return roc_auc(declared_sum(of, test), test.labels == 1)


def declared_sum(of: DataSet, people: People) -> Floats:
    """The sum of the declared directions of each person, shape (people,)."""
    features = study_of(of, True).features
    total = np.zeros(len(people))
    signs = signs_of(of, np.zeros(len(of.columns), dtype=bool))
    for feature, own in zip(features, signs, strict=True):
        place = categories((feature,), people, {})[feature.name]
        if own and feature.kind == "numeric":
            total += own[0] * np.linspace(-1, 1, feature.cardinality)[place]
        elif own:
            total += np.array(own)[place]
    return total


def one_trial(cell: Cell, plan: Plan, people: People, test: People, trial: int) -> dict[str, dict[str, float]]:
    """AUC, calibration error and chance under noise alone, with each kind of signs, from the same packets."""
    size = min(cell.peers or len(people), len(people))
    chosen = people.take(cell.generator(trial, 0).choice(len(people), size, replace=False))
    generator = cell.generator(trial, 1)
    if cell.shuffled:
        chosen = People(chosen.columns, generator.permutation(chosen.labels))
    told = collect(plan, chosen, generator)
    features = plan.manifest.features
    coordinates = coordinates_of(features)
    moments = gather(coordinates, told.train, told.bits, told.shares, cell.of.base_rate)
    index = categories(features, test, told.cuts)
    found: dict[str, dict[str, float]] = {"auc": {}, "ece": {}, "chance": {}}
    for kind, expects in _signs(cell, generator):
        model = fit(evolve(moments, coordinates=evolve(coordinates, expects=expects)))
        total = np.zeros(len(test))
        for name, place in coordinates.places.items():
            total += model.log_odds[place][index[name]]
        found["auc"][kind] = round(roc_auc(total, test.labels == 1), 5)
        chances: Floats = 1 / (1 + np.exp(-np.log(moments.rate / (1 - moments.rate)) - total))
        found["ece"][kind] = round(calibration_error(chances, test.labels == 1), 5)
        found["chance"][kind] = model.chance
    return found


def _signs(cell: Cell, generator: np.random.Generator) -> Iterator[tuple[str, tuple[tuple[int, ...], ...]]]:
    count = len(cell.of.columns)
    declared = np.flatnonzero([bool(signs) for signs in signs_of(cell.of, np.zeros(count, dtype=bool))])
    third = np.zeros(count, dtype=bool)
    third[generator.choice(declared, round(len(declared) / 3), replace=False)] = True
    yield "none", ((),) * count
    yield "right", signs_of(cell.of, np.zeros(count, dtype=bool))
    yield "third", signs_of(cell.of, third)
    yield "wrong", signs_of(cell.of, np.ones(count, dtype=bool))


def plan_for(cell: Cell, people: int, known: dict[str, Any]) -> tuple[str, Plan]:
    """The design that `study plan` chooses for the cell; a choice made in an earlier run is taken over."""
    study = study_of(cell.of, cell.cuts)
    chosen = known.get(cell.key.rpartition("/")[0])
    if chosen is None:
        chosen = choose_design(study, min(cell.peers or people, people), cell.epsilon, SEED, POPULATIONS).best.design
    proposal = next(one.proposal for one in candidates(study, cell.epsilon) if one.name == chosen)
    return chosen, plan_of(proposal, SEED)


def measure(cell: Cell, data: tuple[People, People], trials: int, kept: Path) -> Figure:
    """One row: means over the trials and any further ones that are in the file `kept`, none of which is run again."""
    lines = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    mine = {line["trial"]: line for line in lines if line["cell"] == cell.key}
    design, plan = plan_for(cell, len(data[0]), {line["cell"].rpartition("/")[0]: line["design"] for line in lines})
    for trial in range(trials):
        if trial not in mine:
            found = one_trial(cell, plan, *data, trial)
            mine[trial] = {"cell": cell.key, "design": design, "trial": trial, **found}
            with kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(mine[trial]) + "\n")
    return _row(cell, design, [mine[trial] for trial in sorted(mine) if trial >= 0])


def _row(cell: Cell, design: str, trials: Sequence[dict[str, Any]]) -> Figure:
    aucs = {kind: np.array([one["auc"][kind] for one in trials]) for kind in SIGNS}
    row: Figure = {
        "set": cell.of.name, "peers": cell.peers, "epsilon": cell.epsilon, "cuts": cell.cuts, "trials": len(trials),
        "design": design,
    }  # fmt: skip
    for kind in SIGNS:
        row[kind] = round(float(aucs[kind].mean()), 4)
        row[f"{kind}_se"] = round(_error(aucs[kind]), 4)
        if kind != "none":
            row[f"{kind}_gain_se"] = round(_error(aucs[kind] - aucs["none"]), 4)
    for kind in ("none", "right"):
        row[f"ece_{kind}"] = round(float(np.mean([one["ece"][kind] for one in trials])), 4)
    for kind in SIGNS:
        row[f"shown_{kind}"] = round(float(np.mean([one["chance"][kind] <= LEVEL for one in trials])), 4)
    return row


def _error(values: Floats) -> float:
    return float(values.std(ddof=1)) / sqrt(len(values)) if len(values) > 1 else 0.0


def missed(rows: Sequence[Figure], shuffled: bool, trials: int) -> list[str]:
    """The goals that these rows miss, in words."""
    faults = []
    if shuffled:
        most = FALSE_ALARM + 3 * sqrt(FALSE_ALARM * (1 - FALSE_ALARM) / trials)
        alarms = [row for row in rows if _number(row["shown_right"]) > most]
        return [f"{_name(row)}: false alarms, shown_right {row['shown_right']}" for row in alarms]
    for row in rows:
        loss, error = _number(row["none"]) - _number(row["right"]), _number(row["right_gain_se"])
        if loss > GOAL_LOSS + 2 * error:
            faults.append(f"{_name(row)}: right signs lose {loss:.4f} (se {error})")
        if (lost := _number(row["none"]) - _number(row["wrong"])) > GOAL_WRONG:
            faults.append(f"{_name(row)}: wrong signs lose {lost:.4f}")
    gains = [_number(row["gain_of_both"]) for row in rows if row.get("gain_of_both") is not None]
    if gains and np.mean(gains) < GOAL_GAIN:
        faults.append(f"2,000 peers, epsilon 1: both gain {np.mean(gains):.4f} in the mean over {len(gains)} sets")
    return faults


def _name(row: Figure) -> str:
    return f"{row['set']}, {row['peers'] or 'all'} peers, epsilon {row['epsilon']}, {'cuts' if row['cuts'] else 'plan'}"


def _number(value: object) -> float:
    return float(str(value))


def add_gains(rows: Sequence[Figure]) -> None:
    """To the rows of 2,000 peers and epsilon 1 with cuts: what directions and cuts gain together over neither."""
    plain = {row["set"]: row for row in rows if (row["peers"], row["epsilon"], row["cuts"]) == (2000, 1.0, False)}
    for row in rows:
        if (row["peers"], row["epsilon"], row["cuts"]) == (2000, 1.0, True) and row["set"] in plain:
            row["gain_of_both"] = round(_number(row["right"]) - _number(plain[row["set"]]["none"]), 4)


def main() -> int:
    """Measure every cell; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description="The worth of declared directions and cuts.")
    parser.add_argument("--data", type=data_folder, required=True)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--sets", nargs="+", default=[one.name for one in SETS])
    parser.add_argument("--peers", type=int, nargs="+", default=list(PEERS), help="0 for all")
    parser.add_argument("--epsilon", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument("--shuffled", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    OUT.mkdir(exist_ok=True)
    rows: list[Figure] = []
    for of in (one for one in SETS if one.name in options.sets):
        data = people_of(of, options.data)
        rule = round(rule_auc(of, data[1]), 4)
        for peers in (size for size in options.peers if size <= len(data[0])):
            for epsilon in options.epsilon:
                for cuts in (False, True):
                    cell = Cell(of, peers, epsilon, cuts, options.shuffled)
                    row = measure(cell, data, options.trials, OUT / "directions.jsonl")
                    rows.append(row | {"rule": rule})
                    print(rows[-1], file=sys.stderr, flush=True)
    add_gains(rows)
    publish("directions-shuffled" if options.shuffled else "directions", rows, {"trials": options.trials, "seed": SEED})
    faults = missed(rows, options.shuffled, options.trials)
    print("\n".join(f"missed: {fault}" for fault in faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
