"""How well exact sums with central noise learn: tables beside `histogram` on Adult.

    python -m benchmarks.sums --data DIR [--trials 400] [--parts tables shuffled] [--peers 2000]

DIR holds adult_train and adult_test (.csv.gz). `benchmarks.many` measures moments and gradients. All sums promise a
central epsilon at delta 1e-6, replace-one.

`tables`: one table of each of 11 attributes by label, with the noise of two parties, learned by the additive model.
Cuts and rough shares are declared. `histogram` stands beside it with the same epsilon locally. Then with the local
epsilon whose central one is the same if everybody is honest and unlinked. Goals, ROC AUC at epsilon 1: 0.75 at 200
peers, 0.835 at 500, 0.868 at 2,000. `shuffled`: the same with shuffled labels, 0.5 within three standard errors.

The noise is the exact discrete Gaussian of the accounting. Contributions are those of the peers' own code: vectorised
where that is slow, and then compared with it. Prints a table, writes benchmarks/out/sums.json, and fails where a goal
is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from decimal import Decimal
from fractions import Fraction
from math import sqrt
from pathlib import Path

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from aggregator.lab.simulation.evaluation import evaluate
from aggregator.lab.simulation.people import People, people_from_csv
from aggregator.lab.simulation.run import categories
from aggregator.lab.simulation.simulate import NO_KEYS, simulate
from aggregator.lab.simulation.sum_noise import simulated_noise
from aggregator.protocols.additive.results import Subject
from aggregator.protocols.sum.published import NoisySum
from aggregator.protocols.sum.tables import learn_tables
from anon.accounting.central import central, local_epsilon
from anon.accounting.noisy_sums import sigma_squared_for
from anon.accounting.statement import slot_rows
from anon.ldp import format_epsilon, nano
from anon.protocols.histogram.sections import OnePacket
from anon.protocols.resolve import resolve
from anon.protocols.vectors.sensitivity import SummedVector
from anon.protocols.vectors.tables import TableSums, tables_of
from anon.study.features import Learning
from anon.study.proposal import Proposal
from benchmarks.data import data_folder
from benchmarks.figures import Figure, publish
from benchmarks.utility import CENSUS, SEED, with_guesses
from examples.protocols import PROTOCOLS

DELTA = Decimal("1e-6")
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

GOALS = {200: 0.75, 500: 0.835, 2000: 0.868}
PEERS = (100, 200, 500, 2000)
CUTS = {"age": (25.0, 35.0, 45.0, 55.0), "education_num": (8.0, 9.0, 12.0, 13.0), "hours_per_week": (34.0, 40.0, 49.0)}
"""Round numbers that a member of staff would declare."""


def noise_for(design: SummedVector, epsilon: str, rounds: int = 1) -> Fraction:
    """Each party's sigma squared."""
    sensitivity, changed = design.sensitivity_squared("replace-one"), design.changed("replace-one")
    return sigma_squared_for(sensitivity, changed, nano(epsilon), DELTA, rounds)


@frozen(eq=False)
class Census:
    """Adult with declared cuts: the study, its tables, and everybody's cell of each table."""

    study: Proposal
    design: TableSums
    peers: People
    test: People
    cells: tuple[Integers, ...]

    @staticmethod
    def of(folder: Path) -> Census:
        """Read, and compare the cells of some people with a peer's own code."""
        known = with_guesses(PROTOCOLS.load_proposal(CENSUS / "study.toml"))
        features = tuple(
            evolve(one, bins=0, cuts=CUTS[one.name], shares=()) if one.name in CUTS else one for one in known.features
        )
        study = evolve(known, features=features)
        peers, test = (people_from_csv(study, folder / f"adult_{part}.csv.gz") for part in ("train", "test"))
        design = tables_of({one.name: one.cardinality for one in features})
        held = categories(features, peers, {one.name: one.cuts for one in features if one.kind == "numeric"})
        cells = tuple(held[block.features[0]] * 2 + peers.labels for block in design.blocks)
        for at in range(0, len(peers), 997):
            own = design.places({name: int(column[at]) for name, column in held.items()}, int(peers.labels[at]))
            assert own == tuple(int(column[at]) for column in cells)
        return Census(study, design, peers, test, cells)

    def summed(self, chosen: Integers, labels: Integers | None) -> Integers:
        """The exact sum of these people's contributions; `labels` in place of their own."""
        parts = zip(self.design.lengths, self.cells, strict=True)
        own = self.peers.labels[chosen]
        other = own if labels is None else labels
        return np.concatenate([np.bincount(cells[chosen] - own + other, minlength=length) for length, cells in parts])


def tables(census: Census, peers: int, trials: int, shuffled: bool = False, parties: int = 2) -> Figure:
    """AUC of the model from one noisy sum, over so many draws of people and noise."""
    generator, sigma_squared = np.random.default_rng(SEED), noise_for(census.design, "1")
    subject = Subject("00" * 32, census.study.title, census.study.label, census.study.features, {}, _shares(census))
    learning = Learning("additive", "soft", "auc", 0, census.study.learning.base_rate)
    aucs, shown = [], 0
    for _ in range(trials):
        chosen = generator.choice(len(census.peers), peers, replace=False)
        labels = generator.permutation(census.peers.labels[chosen]) if shuffled else None
        noise = simulated_noise(sigma_squared, parties, census.design.length, generator)
        values = tuple(int(one) for one in census.summed(chosen, labels) + noise)
        learned = learn_tables(
            subject, census.design, NoisySum(values, peers, sigma_squared, parties), learning, with_influence=False
        )
        aucs.append(evaluate(learned.model, census.test).auc)
        shown += learned.learnable
    return {
        "part": "shuffled" if shuffled else "tables", "epsilon": "1", "peers": peers, "parties": parties,
        "trials": trials, "auc": round(float(np.mean(aucs)), 4), "auc_se": round(float(np.std(aucs)) / sqrt(trials), 4),
        "shown": round(shown / trials, 3), "goal": None if shuffled else GOALS.get(peers),
    }  # fmt: skip


def _shares(census: Census) -> dict[str, tuple[float, ...]]:
    return {one.name: one.shares for one in census.study.features if one.shares}


def local_study(census: Census, epsilon: str, asks: str) -> Proposal:
    """The census study of `histogram`, its cuts found or declared as its own file says: one packet of each peer."""
    study = with_guesses(PROTOCOLS.load_proposal(CENSUS / "study.toml"))
    assert isinstance(study.design, OnePacket)
    return evolve(study, design=evolve(study.design, epsilon=float(epsilon), asks=asks))


def equal_central(census: Census, peers: int) -> str:
    """The local epsilon, to two decimals, whose central one is 1 if all peers are honest and none is linked."""
    low, high = 100, 800
    while high - low > 1:
        middle = (low + high) // 2
        manifest = resolve(local_study(census, str(middle / 100), "tables"), NO_KEYS, 0, lambda below: below // 2)
        rows = slot_rows(manifest)
        found = central(rows, [peers] * len(rows), sum(map(local_epsilon, rows)), float(DELTA)).epsilon
        low, high = (middle, high) if found <= 1 else (low, middle)
    return str(low / 100)


def histogram(census: Census, peers: int, trials: int, epsilon: str, asks: str) -> Figure:
    """AUC of `histogram` at a local epsilon."""
    found = simulate(
        local_study(census, epsilon, asks), census.peers, trials, SEED, census.test, peers=peers, ceilings=False
    )
    return {
        "part": f"histogram, {asks}", "epsilon": f"{epsilon} local", "peers": peers, "trials": trials,
        "auc": round(found.auc_mean, 4), "auc_se": round(found.auc_se, 4),
    }  # fmt: skip


def measured(parts: list[str], folder: Path, trials: int, groups: list[int]) -> list[Figure]:
    """All rows of these parts, the tables for these numbers of peers."""
    rows: list[Figure] = []
    if {"tables", "shuffled"} & {*parts}:
        census = Census.of(folder)
        for peers in groups if "tables" in parts else ():
            rows.append(tables(census, peers, trials))
            for epsilon in ("1", equal_central(census, peers)):
                rows += [histogram(census, peers, trials, epsilon, asks) for asks in ("tables", "bits")]
            print(*rows[-5:], sep="\n", file=sys.stderr, flush=True)
        if "shuffled" in parts:
            rows += [tables(census, peers, trials, shuffled=True) for peers in groups if peers in GOALS]
    return rows


def missed(row: Figure) -> bool:
    """True for a goal that a row does not meet."""
    goal, auc = row.get("goal"), float(row.get("auc") or 0)
    if row["part"] == "shuffled":
        return abs(auc - 0.5) > 3 * float(row["auc_se"] or 0)
    return goal is not None and auc < float(goal)


def main() -> int:
    """Measure; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description="How well exact sums learn.")
    parser.add_argument("--data", type=data_folder, required=True)
    parser.add_argument("--trials", type=int, default=400)
    known = ["tables", "shuffled"]
    parser.add_argument("--peers", nargs="+", type=int, default=[*PEERS])
    parser.add_argument("--parts", nargs="+", default=known, choices=known)
    options = parser.parse_args()
    start = time.process_time()
    rows = measured(options.parts, options.data, options.trials, options.peers)
    about: Figure = {"delta": str(DELTA), "neighbours": "replace-one", "seed": SEED, "local": format_epsilon(nano("1"))}
    publish("sums", rows, {**about, "cpu_seconds": round(time.process_time() - start, 1)})
    return 1 if any(map(missed, rows)) else 0


if __name__ == "__main__":
    sys.exit(main())
