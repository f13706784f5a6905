"""Rows of `marginals` beside those that `mbi` makes of the same noisy tables.

    python -m benchmarks.mbi_oracle --data DIR [--trials 5]

Needs `mbi` 2.0 (McKenna and others, Apache 2), and jax with it: install both with this package in an environment of
their own. DIR holds adult_train and adult_test (.csv.gz). The study is that of `benchmarks.marginals` at epsilon 1, in
the form of its rule: with all people a table for each pair of features and the label, with 2,000 people the declared
pairs and single features. The noise is drawn once, and each way has the same noisy tables:

`ours`: the product's model, closed forms that shrink by the known noise. `mbi, tree`: mirror descent on the tables that
our tree kept, and on each feature's table with the label that all other tables give together: a junction tree of all
pairs would have a cell for each possible row. `mbi, mixture`: their mixture of products, of all tables that were asked.

`error`: of logistic regression on the test file, trained on as many rows as people. `distance`: half of the L1 distance
between the people's own table of two attributes and that of 100,000 rows, in the mean of all 78. Writes
benchmarks/out/mbi.json.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.random import default_rng

from aggregator.lab.simulation.people import people_from_csv
from aggregator.protocols.sum.graphical import GraphicalModel
from benchmarks.data import data_folder
from benchmarks.figures import Figure, publish
from benchmarks.marginals import DRAWN, STUDY, Floats, Table, drawn, model_from, noisy_sum, study_of
from examples.protocols import PROTOCOLS

LABEL, EPSILON, SEED, STEPS = "label", 1.0, 20261130, 2000
Measured = Mapping[tuple[str, ...], tuple[Floats, float]]
"""By attributes: noisy counts, and the variance of each."""


def of_tree(tables: Measured, model: GraphicalModel) -> Measured:
    """The tables of our tree's edges; and of each feature with the label, by precision, what all others tell."""
    edges = [{leaning.name, leaning.parent} for leaning in model.leanings if leaning.parent]
    kept = {names: found for names, found in tables.items() if len(names) < 3 or {*names[:2]} in edges}
    for leaning in model.leanings:
        total, precision = np.zeros(2), 0.0
        for names, (cells, variance) in tables.items():
            if names not in kept and leaning.name in names:
                other = 1 - names.index(leaning.name)
                weight = 1 / (variance * cells.shape[other])
                total, precision = total + weight * cells.sum(axis=other), precision + weight
        if precision:
            kept[leaning.name, LABEL] = total / precision, 1 / precision
    return kept


def estimated(estimator: Any, cards: Mapping[str, int], tables: Measured, people: int) -> Any:
    """The model of mbi."""
    from mbi import Domain, LinearMeasurement

    domain = Domain(tuple(name or LABEL for name in cards), tuple(cards.values()))
    told = [LinearMeasurement(cells.ravel(), names, variance**0.5) for names, (cells, variance) in tables.items()]
    return estimator.estimate(domain, told, known_total=float(people), iters=STEPS)


def rows_of(model: Any, people: Table) -> Callable[[int], Table]:
    """So many rows of a model of mbi."""

    def made(rows: int) -> Table:
        columns = model.synthetic_data(rows=rows).to_dict()
        return Table(people.cards, {name: np.asarray(columns[name or LABEL]) for name in people.cards})

    return made


def ways_of(people: Table, seed: Sequence[int]) -> Iterator[tuple[str, Callable[[int], Table]]]:
    """Each way, and what draws its rows."""
    import optax
    from mbi import estimation
    from mbi.extensions import MixtureOfProductsEstimator

    spring = default_rng(seed)
    study = study_of(PROTOCOLS.load_proposal(STUDY), len(people), EPSILON)
    design, published = noisy_sum(study, people, spring)
    model = model_from(study, published)
    yield "ours", lambda rows: drawn(people, model, rows, spring)
    tables = {
        (*block.features, LABEL): (np.array(cells, dtype=float).reshape(block.shape), float(published.noise))
        for block, cells in zip(design.blocks, design.split(published.values), strict=True)
    }
    tree = of_tree(tables, model)
    yield "mbi, tree", rows_of(estimated(estimation.MirrorDescent(), people.cards, tree, len(people)), people)
    mixture = MixtureOfProductsEstimator(optimizer=optax.adam(0.1))
    yield "mbi, mixture", rows_of(estimated(mixture, people.cards, tables, len(people)), people)


def measured(train: Table, test: Table, trials: int) -> Iterator[Figure]:
    """A row for each number of people, trial and way."""
    for n in (len(train), 2000):
        for trial in range(trials):
            people = train.take(default_rng([SEED, n, trial]).choice(len(train), n, replace=False))
            start = time.process_time()
            np.random.seed(trial)  # mbi draws its rows by it
            for way, made in ways_of(people, [SEED, n, trial, 1]):
                error, many = test.error(made(n)), made(DRAWN)
                far = [
                    float(np.abs(many.counted(pair) / DRAWN - people.counted(pair) / n).sum() / 2)
                    for pair in combinations(train.cards, 2)
                ]
                row: Figure = {"people": n, "trial": trial, "way": way, "error": round(error, 4)}
                yield {**row, "distance": round(float(np.mean(far)), 4)}
                print(*row.values(), round(time.process_time() - start, 1), file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and keep."""
    parser = argparse.ArgumentParser(description="Rows of marginals beside those of mbi.")
    parser.add_argument("--data", type=data_folder, required=True)
    parser.add_argument("--trials", type=int, default=5)
    options = parser.parse_args(arguments)
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)
    proposal = PROTOCOLS.load_proposal(STUDY)
    files = (options.data / f"adult_{part}.csv.gz" for part in ("train", "test"))
    train, test = (Table.of(proposal, people_from_csv(proposal, file)) for file in files)
    rows = list(measured(train, test, options.trials))
    means = list[Figure]()
    for n, way in dict.fromkeys((row["people"], row["way"]) for row in rows):
        some = [row for row in rows if (row["people"], row["way"]) == (n, way)]
        found: Figure = {"people": n, "way": way, "trials": len(some)}
        for key in ("error", "distance"):
            values = [float(str(row[key])) for row in some]
            found |= {key: round(float(np.mean(values)), 4), f"{key}_spread": round(float(np.std(values, ddof=1)), 4)}
        means.append(found)
    publish("mbi", means, {"epsilon": EPSILON})
    return 0


if __name__ == "__main__":
    sys.exit(main())
