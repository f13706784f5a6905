"""A prototype: `marginals` with a second round of chosen three-way tables, beside the one round that is built.

    python -m benchmarks.parties.triples --data FOLDER [--trials 5]

The first round asks all pairs with two thirds of rho. Its tree gives each feature x a parent p. The second round asks a
table of x, p and a third feature q, with the label: of those beside p in the tree the one that tells most of x. The
rest of rho is for these. A feature then leans on both, as far as its table tells more than its noise. Everything else,
noise of two tellers included, is as in `marginals`, and so are final models.

Census and bikes alone can tell anything: on diabetes the rule asks no pairs, as people times epsilon are below 3,000,
and on news all models are within .005 of the best. Rows are kept in benchmarks/out. Decision 50 has the outcome.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.random import Generator, default_rng

from aggregator.lab.simulation.sum_noise import simulated_noise
from aggregator.protocols.sum.drawn import drawn_categories
from aggregator.protocols.sum.graphical import GraphicalModel, Leaning, graphical_model
from aggregator.protocols.sum.published import NoisySum
from anon.protocols.sum.design import shape_of
from anon.protocols.sum.standing import arrangement_of
from anon.protocols.vectors.tables import TableSums
from anon.study.manifest import Manifest
from benchmarks.data import data_folder
from benchmarks.figures import Figure, publish
from benchmarks.marginals import Floats, Integers, Table, drawn, model_of, study_of
from benchmarks.parties.marginal_sets import Asked
from benchmarks.parties.pfds_models import error_of, fitted
from benchmarks.parties.pfds_sets import bikes, columns_of, folds_of
from benchmarks.parties.rows import Held

FIRST = Fraction(2, 3)
"""Of rho, for the first round."""
EPSILONS, SEED = ("1", "0.5", "0.1"), 20261130
Triple = tuple[str, str, str]


def rows_of_two_rounds(study: Manifest, people: Table, spring: Generator) -> Table:
    """As many rows as people, by the prototype."""
    design, arrangement = shape_of(study.surveys[0]), arrangement_of(study)
    assert isinstance(design, TableSums)
    each, parties, n = arrangement.sums[0].sigma_squared, arrangement.summing, len(people)
    exact = np.concatenate([people.counted((*block.features, "")).ravel() for block in design.blocks])
    first = each / FIRST
    noisy = exact + simulated_noise(first, parties, design.length, spring)
    told = NoisySum(tuple(int(value) for value in noisy), n, first, parties)
    model = graphical_model(design, told, float(people.cells[""].mean()))
    asked = list(chosen(model))
    second = each * Fraction(len(asked), len(design.blocks)) / (1 - FIRST)
    tables = {}
    for triple in asked:
        counts = people.counted(("", *triple))
        tables[triple[2]] = triple, (counts + simulated_noise(second, parties, counts.shape, spring)) / n
    wide = float(second) * parties / n**2
    return drawn_by(model, tables, wide, Table(people.cards, drawn_categories(model, n, spring.bytes(32))), spring)


def chosen(model: GraphicalModel) -> Iterator[Triple]:
    """For each feature with a parent: a third one that is drawn before it, the parent, and itself."""
    before = dict[str, str]()
    for leaning in model.leanings:
        near = [other for other, parent in before.items() if parent == leaning.parent]
        near += [before[leaning.parent]] if before.get(leaning.parent) else []
        if leaning.parent and near:
            yield max(near, key=lambda other: _told(model, other, leaning.name)), leaning.parent, leaning.name
        before[leaning.name] = leaning.parent


def _told(model: GraphicalModel, first: str, second: str) -> float:
    return model.information.get((first, second), model.information.get((second, first), 0.0))


def drawn_by(
    model: GraphicalModel, tables: Mapping[str, tuple[Triple, Floats]], wide: float, rows: Table, spring: Generator
) -> Table:
    """Rows of the tree, in which each feature with a table is drawn again by its label, its parent and the third."""
    cells = dict(rows.cells)
    for leaning in model.leanings:
        if leaning.parent:  # which may have been drawn again
            cells[leaning.name] = _drawn(leaning, cells, spring)
        if leaning.name in tables:
            (third, parent, name), noisy = tables[leaning.name]
            chances = _shrunk(leaning, noisy, cells, third, wide)
            at = (cells[""], cells[third], cells[parent])
            cells[name] = _picked(chances[at], spring)
    return Table(rows.cards, cells)


def _shrunk(leaning: Leaning, noisy: Floats, cells: Mapping[str, Integers], third: str, wide: float) -> Floats:
    """Chances, shape (label, third, parent, own): those of the tree, moved by what the table tells beyond its noise."""
    shares = np.zeros(noisy.shape[:3])
    np.add.at(shares, (cells[""], cells[third], cells[leaning.parent]), 1 / len(cells[""]))
    tree = shares[..., None] * leaning.chances[:, None]
    beyond = noisy - tree
    kept = max(0.0, 1 - wide * beyond.size / float((beyond**2).sum()))
    joint = np.maximum(tree + kept * beyond, 0)
    total = joint.sum(axis=-1, keepdims=True)
    alone = np.broadcast_to(leaning.chances[:, None], joint.shape)
    return np.where(total > 0, joint / np.where(total > 0, total, 1), alone)


def _drawn(leaning: Leaning, cells: Mapping[str, Integers], spring: Generator) -> Integers:
    return _picked(leaning.chances[cells[""], cells[leaning.parent]], spring)


def _picked(chances: Floats, spring: Generator) -> Integers:
    ends = np.cumsum(chances, axis=1)
    found: Integers = (spring.random((len(ends), 1)) * ends[:, -1:] > ends).sum(axis=1)
    return found


def measured(data: Path, trials: int) -> Iterator[Figure]:
    """The errors of both ways on both sets."""
    ways: Mapping[str, Callable[[Manifest, Table, Generator], Table]] = {
        "one round": lambda study, people, spring: drawn(people, model_of(study, people, spring), len(people), spring),
        "two rounds": rows_of_two_rounds,
    }
    held, asked = next(Held.each(data, 1)), Asked.of(bikes(data))
    folds, columns = list(folds_of(asked.data, trials)), columns_of(asked.data.attributes, asked.data.places)
    for epsilon in EPSILONS:
        for way, draw in ways.items():
            study = study_of(held.proposal, len(held.train), float(epsilon))
            springs = [default_rng([SEED, trial, round(10 * float(epsilon))]) for trial in range(trials)]
            census = [held.error("logistic", [draw(study, held.train, spring)]) for spring in springs]
            yield {"set": "Census", "way": way, "epsilon": epsilon, **_mean(census)}
            hours = []
            for spring, (train, test) in zip(springs, folds, strict=True):
                people = asked.table.take(train)
                made = draw(study_of(asked.proposal, len(people), float(epsilon)), people, spring)
                model = fitted("linear", *asked.learned(made, 0))
                hours.append(error_of("linear", columns[test], asked.data.labels[test], model[None]))
            yield {"set": "Bikes", "way": way, "epsilon": epsilon, **_mean(hours)}


def _mean(errors: Sequence[float]) -> Figure:
    return {"error": round(float(np.mean(errors)), 4), "spread": round(float(np.std(errors, ddof=1)), 4)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description="A second round of three-way tables.")
    parser.add_argument("--data", type=data_folder, required=True)
    parser.add_argument("--trials", type=int, default=5)
    options = parser.parse_args(arguments)
    rows = list[Figure]()
    for row in measured(options.data, options.trials):
        rows.append(row)
        print(*row.values(), file=sys.stderr, flush=True)
    publish("rows-triples", rows, {"trials": options.trials})
    return 0


if __name__ == "__main__":
    sys.exit(main())
