"""Rows of `marginals` on diabetic retinopathy, bike sharing and news popularity, beside those of private trees.

    python -m benchmarks.parties.marginal_sets --data FOLDER [--folds 10] [--scored 3] [--sets Diabetes Bikes News]

Sets, agents, folds and final models are those of `benchmarks.parties.pfds`. `marginals` is the product's code, with two
tellers' noise over the records of all agents. It asks for few places: each number has at most as many as `BINS` says,
which are runs of the places that trees have. A number that is predicted is a feature of ten buckets, and the label is
true above a declared number. Below 3,000 people times epsilon, tables of each feature with that number are asked, and
of a set with two classes those of single features; above it, those of all pairs. `declared` has the first of them at
every epsilon. Bins, numbers and pairs were settled before any error was seen.

`trees`: `repaired` of `benchmarks.parties.pfds`, of the same agents. Rows are kept in benchmarks/out, and their part of
docs/rows-and-groups.md is written anew.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from attrs import frozen
from numpy.random import default_rng

from anon.protocols.trees.attributes import Attribute, NumberAttribute
from anon.study.proposal import Proposal
from benchmarks.data import data_folder
from benchmarks.figures import OUT, Figure, publish
from benchmarks.marginals import Table, drawn, model_of, study_of
from benchmarks.parties.noise import Array
from benchmarks.parties.pfds import agreed, as_labels, coins_of, labelled, mixed, records_of, shared
from benchmarks.parties.pfds_models import TASKS, error_of, fitted
from benchmarks.parties.pfds_page import PAGE, page
from benchmarks.parties.pfds_sets import BUCKETS, SETS, DataSet, agents_of, columns_of, folds_of
from examples.protocols import PROTOCOLS

EPSILONS = ("1", "0.5", "0.1")
BINS = {"Diabetes": 8, "Bikes": 8, "News": 4, "Census": 8}
"""The most places of a number. A vector of all pairs of news has no room for more."""
ABOVE = {"Bikes": 150 / 500 - 1, "News": float(np.log10(1400) / 3 - 1)}
"""The label is true above 150 bikes an hour, and above 1,400 shares, as the set's authors have it."""
KEPT = OUT / "rows-sets.json"
TARGET, SEED = "predicted", 20261129
STUDY = """\
version = 1
protocol = "sum"
title = "{title}"
purpose = "Rows that stand for nobody."
contact = "benchmark"
[tables]
held = [{columns}]
[label]
name = "label"
description = "The label."
query = "SELECT label FROM held"
positive = ["1"]
negative = ["0"]
missing = "negative"
{features}[design]
kind = "marginals"
epsilon = 1.0
pairs = [{pairs}]
[learning]
classifier = "additive"
score_share = 0
base_rate = 0.5
[schedule]
enrol = "1d"
settle = "1h"
collect = "1d"
[cohort]
minimum = 2000
maximum = 50000
[[tellers]]
name = "one"
address = "127.0.0.1:1"
[[tellers]]
name = "two"
address = "127.0.0.1:2"
"""
FEATURE = """\
[[features]]
name = "{name}"
kind = "categorical"
description = "A column."
query = "SELECT {name} FROM held"
categories = [{categories}]
missing = "0"
"""


@frozen(eq=False)
class Asked:
    """A set as its study asks it: fewer places of each attribute, and all records as categories."""

    data: DataSet
    attributes: tuple[Attribute, ...]
    table: Table
    proposal: Proposal

    @staticmethod
    def of(data: DataSet) -> Asked:
        """The study of a set, and everybody's categories."""
        attributes = tuple(_coarse(attribute, BINS[data.name]) for attribute in data.attributes)
        cells = {
            f"a{at}": data.places[:, at] * attribute.places // data.attributes[at].places
            for at, attribute in enumerate(attributes)
        }
        cards = {name: attribute.places for name, attribute in zip(cells, attributes, strict=True)}
        label = data.labels
        if data.regression:
            cells[TARGET], cards[TARGET] = data.classes, BUCKETS
            label = (data.labels > ABOVE[data.name]).astype(int)
        text = _study(data.name, cards)
        return Asked(data, attributes, Table({**cards, "": 2}, {**cells, "": label}), PROTOCOLS.proposal(text))

    def rows(self, train: Array, epsilon: str, fold: int, form: str = "") -> tuple[Array, Array]:
        """Columns and labels of as many drawn rows as there are records, in the form of the rule or in another."""
        people = self.table.take(train)
        spring = default_rng([SEED, fold, round(10 * float(epsilon))])
        study = study_of(self.proposal, len(people), float(epsilon), form)
        return self.learned(drawn(people, model_of(study, people, spring), len(people), spring), fold)

    def learned(self, made: Table, use: int) -> tuple[Array, Array]:
        """Columns and labels of drawn rows. A number is drawn within its bucket."""
        places = np.stack([made.cells[f"a{at}"] for at in range(len(self.attributes))], axis=1)
        classes = made.cells[TARGET] if self.data.regression else made.cells[""]
        return columns_of(self.attributes, places), as_labels(self.data, classes, use)


def _coarse(attribute: Attribute, bins: int) -> Attribute:
    if not isinstance(attribute, NumberAttribute):
        return attribute
    return NumberAttribute(attribute.name, tuple(range(min(attribute.places, bins) + 1)))


def _study(title: str, cards: Mapping[str, int]) -> str:
    features = "".join(
        FEATURE.format(name=name, categories=", ".join(f'"{at}"' for at in range(card))) for name, card in cards.items()
    )
    pairs = ", ".join(f'["{name}", "{TARGET}"]' for name in cards if name != TARGET and TARGET in cards)
    columns = ", ".join(f'"{name}"' for name in (*cards, "label"))
    return STUDY.format(title=title, columns=columns, features=features, pairs=pairs)


def rows_of_trees(
    data: DataSet, agents: Sequence[Array], epsilon: str, fold: int
) -> Mapping[str, tuple[Array, Array]]:
    """Columns and labels of all agents' rows, by how they are labelled."""
    plan, coins = agreed("repaired", data, epsilon), coins_of(data.name, fold, "repaired", epsilon)
    found = [shared("repaired", records_of(data, held), plan, coins) for held in agents]
    trees, places = [tree for tree, _ in found], np.vstack([part for _, part in found])
    made = columns_of(data.attributes, places)
    told = {"trees": labelled(trees, places, data.kinds), "trees, mixed": mixed(trees, places, data.kinds, fold)}
    return {way: (made, as_labels(data, classes, fold)) for way, classes in told.items()}


def measured(asked: Asked, folds: int, scored: int) -> Iterator[Figure]:
    """All rows of one set."""
    data = asked.data
    tasks = TASKS[2:] if data.regression else TASKS[:2]
    columns = columns_of(data.attributes, data.places)
    labels = data.labels if data.regression else data.labels * 2 - 1
    for fold, (train, test) in enumerate(folds_of(data, folds)):
        agents = [held for held in agents_of(data, train, fold) if len(held)]
        made = {(way, epsilon): rows for epsilon in EPSILONS for way, rows in [
            ("marginals", asked.rows(train, epsilon, fold)),
            ("declared", asked.rows(train, epsilon, fold, "declared")),
            *rows_of_trees(data, agents, epsilon, fold).items(),
        ]}  # fmt: skip
        for task in tasks:
            def error(rows: Array, told: Array, task: str = task, test: Array = test) -> float:
                return error_of(task, columns[test], labels[test], fitted(task, rows, told)[None])

            about: Figure = {"set": data.name, "task": task, "fold": fold}
            mean = labels[train].mean()
            wrong = (labels[test] - mean) ** 2 if data.regression else labels[test] != np.sign(mean)
            yield {**about, "way": "majority", "error": float(np.mean(wrong))}
            yield {**about, "way": "all rows", "error": error(columns[train], labels[train])}
            own = [error(columns[held], labels[held]) for held in agents]
            yield {**about, "way": "own records", "error": float(np.mean(own))}
            for (way, epsilon), (rows, told) in made.items():
                both = [
                    error(np.vstack([rows, columns[held]]), np.concatenate([told, labels[held]]))
                    for held in agents[:scored]
                ]
                found = {"error": error(rows, told), "with_own": float(np.mean(both))}
                yield {**about, "way": way, "epsilon": epsilon, "rows": len(rows), **found}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, keep, and write the page."""
    parser = argparse.ArgumentParser(description="Rows of marginals on three sets.")
    parser.add_argument("--data", type=data_folder, required=True)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--scored", type=int, default=3)
    parser.add_argument("--sets", nargs="*", default=list(BINS)[:3], choices=BINS)
    options = parser.parse_args(arguments)
    kept = json.loads(KEPT.read_text("utf-8"))["rows"] if KEPT.exists() else []
    table: list[Figure] = [row for row in kept if row["set"] not in options.sets]
    start = time.process_time()
    for name in options.sets:
        for row in measured(Asked.of(SETS[name](options.data)), options.folds, options.scored):
            table.append(row)
            print(round(time.process_time() - start), *row.values(), file=sys.stderr, flush=True)
    publish("rows-sets", table, {"cpu_seconds": round(time.process_time() - start)})
    PAGE.write_text(page(PAGE.read_text("utf-8"), "sets"), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
