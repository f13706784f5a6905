"""Rows of `marginals` and of `trees` on the same census records, with the same final models.

    python -m benchmarks.parties.rows --data FOLDER [--trials 2] [--scored 1]

FOLDER holds adult_train and adult_test (.csv.gz). The attributes are the 12 of examples/census/rows.toml. All 32,561
training records are divided among 100 agents as in `benchmarks.parties.pfds`. `marginals` adds up one record of each
person, with two tellers' noise; `trees` has a tree of each agent, of at most 1,000 rows. Both are the product's code. A
record is replaced. Errors are of final models of the drawn rows alone, and of these with an agent's own records: of
`--scored` agents the mean. Rows are kept in benchmarks/out, and their part of docs/rows-and-groups.md is written anew.
`benchmarks.parties.sharers` has the same where some of the agents share.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from attrs import evolve, frozen
from numpy.random import default_rng

from aggregator.lab.simulation.people import people_from_csv
from aggregator.lab.simulation.simulate import NO_KEYS
from aggregator.protocols.trees import consistent_tree, drawn_places, votes
from anon.noise.bernoulli import Coins
from anon.protocols.resolve import resolve
from anon.protocols.trees.attributes import LabelledRow
from anon.protocols.trees.growing import grown
from anon.protocols.trees.layout import plan_for
from anon.protocols.trees.sections import Trees
from anon.study.manifest import Manifest
from anon.study.proposal import Proposal
from benchmarks.data import data_folder
from benchmarks.figures import Figure, publish
from benchmarks.marginals import STUDY, Integers, Table, drawn, model_of, study_of
from benchmarks.parties.pfds_models import error_of, fitted
from benchmarks.parties.pfds_page import PAGE, page
from benchmarks.parties.pfds_sets import agents_of, census
from examples.protocols import PROTOCOLS

EPSILONS = (1.0, 0.5, 0.1)
TASKS = ("logistic", "svm")
MOST = 1000
SEED = 20261128


@frozen(eq=False)
class Held:
    """The training records of all agents and the test's."""

    proposal: Proposal
    train: Table
    test: Table
    agents: list[Integers]

    @staticmethod
    def each(folder: Path, trials: int) -> Iterator[Held]:
        """The records, divided anew in each trial."""
        proposal, near = PROTOCOLS.load_proposal(STUDY), census(folder)
        files = (folder / f"adult_{part}.csv.gz" for part in ("train", "test"))
        train, test = (Table.of(proposal, people_from_csv(proposal, file)) for file in files)
        for trial in range(trials):
            agents = [held for held in agents_of(near, np.arange(len(train)), trial) if len(held)]
            order = default_rng([SEED, trial]).permutation(len(agents))
            yield Held(proposal, train, test, [agents[at] for at in order])

    def error(self, task: str, trained: Sequence[Table]) -> float:
        """The error of a model of these rows on the test file."""
        rows = np.vstack([table.ones() for table in trained])
        labels = np.concatenate([table.cells[""] for table in trained]) * 2 - 1
        model = fitted(task, rows, labels)
        return error_of(task, self.test.ones(), self.test.cells[""] * 2 - 1, model[None])


def trees_study(proposal: Proposal, epsilon: float) -> Manifest:
    """A study of trees with the same attributes."""
    design = Trees("trees", epsilon=epsilon, rows=MOST)
    changed = evolve(
        proposal, protocol="trees", design=design, tellers=(), records="many", most_records=10_000, unit="record",
        cohort=evolve(proposal.cohort, minimum=4, maximum=100),
    )  # fmt: skip
    return resolve(PROTOCOLS.proposed(changed), NO_KEYS, 0)


def rows_of_trees(held: Held, epsilon: float, trial: int) -> Table:
    """The rows of all agents' trees."""
    study, names = trees_study(held.proposal, epsilon), [name for name in held.train.cards if name]
    plan, labels = plan_for(study), held.train.cells[""]
    places, spring = np.stack([held.train.cells[name] for name in names], axis=1), default_rng([SEED, trial, 100])
    roots = []
    for agent in held.agents:
        records = [LabelledRow(tuple(places[at].tolist()), int(labels[at])) for at in agent]
        roots.append(consistent_tree(grown(records, plan, Coins(spring.bytes)).root, MOST))
    made = drawn_places(roots, plan, spring.bytes(32))
    cells = dict(zip(names, made.T, strict=True))
    return Table(held.train.cards, {**cells, "": votes(roots, made, plan.classes)})


def rows_of_tables(held: Held, epsilon: float, trial: int) -> Table:
    """As many rows of marginals as the agents have records."""
    people = held.train.take(np.concatenate(held.agents))
    study, spring = study_of(held.proposal, len(people), epsilon), default_rng([SEED, trial, 100])
    return drawn(people, model_of(study, people, spring), len(people), spring)


WAYS = {"marginals": rows_of_tables, "trees": rows_of_trees}


def measured(folder: Path, trials: int, scored: int) -> Iterator[Figure]:
    """The majority's error, and those of each way, epsilon and final model."""
    for trial, held in enumerate(Held.each(folder, trials)):
        majority = held.test.cells[""].mean()
        yield {"part": "majority", "trial": trial, "error": float(min(majority, 1 - majority))}
        for way, draw in WAYS.items():
            for epsilon in EPSILONS:
                rows = draw(held, epsilon, trial)
                about: Figure = {"part": "rows", "trial": trial, "way": way, "epsilon": epsilon}
                for task in TASKS:
                    own = [held.error(task, [rows, held.train.take(agent)]) for agent in held.agents[:scored]]
                    found = {"error": held.error(task, [rows]), "with_own": float(np.mean(own))}
                    yield {**about, "task": task, "rows": len(rows), **found}
                print(way, epsilon, found["error"], file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, keep, and write the page."""
    parser = argparse.ArgumentParser(description="Rows of marginals beside rows of trees.")
    parser.add_argument("--data", type=data_folder, required=True)
    parser.add_argument("--trials", type=int, default=2)
    parser.add_argument("--scored", type=int, default=1)
    options = parser.parse_args(arguments)
    publish("rows-beside", list(measured(options.data, options.trials, options.scored)), {"trials": options.trials})
    PAGE.write_text(page(PAGE.read_text("utf-8"), "beside"), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
