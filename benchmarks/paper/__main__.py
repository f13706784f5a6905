"""`python -m benchmarks.paper --data DIR`: measure what is not kept yet, then write docs/results.md and its plots.

Stopped and started again it goes on where it was, and what other code measured is measured again; `--page` writes the
page from what is kept.
Without --data the folder is $ANONML_DATA. A data set whose files are not there is passed over, and the page says so.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from benchmarks.paper import designs, runs
from benchmarks.paper.datasets import NAMES, DataSet, load
from benchmarks.paper.kept import Kept

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "benchmarks" / "out" / "paper"
COHORTS = [0 if peers is None else peers for peers in runs.COHORTS]
STEPS = ("2", "3", "4", "5", "6", "7", "8d", "adult", "papers", "ours", "plan")


def main() -> int:
    """Measure and write; 2 when there is nothing to measure from."""
    options = _options()
    kept = Kept(options.out, options.fresh)
    if not options.page:
        folder = Path(options.data or os.environ.get("ANONML_DATA", ""))
        if not (options.data or os.environ.get("ANONML_DATA")) or not folder.is_dir():
            print("name the folder of the data sets with --data DIR or ANONML_DATA", file=sys.stderr)
            return 2
        measure(kept, folder, options)
    from benchmarks.paper import page  # needs matplotlib, which measuring does not

    page.write(kept, ROOT / "docs" if options.docs is None else options.docs)
    return 0


def measure(kept: Kept, folder: Path, options: argparse.Namespace) -> None:
    """Everything that `--only` names, the paper's figures before the tables, data set by data set."""
    counts = runs.Counts().at(options.effort)
    start = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - start:7.1f} s  {text}", flush=True)

    if {"2", "3"} & set(options.only):
        runs.do(kept, runs.mechanisms(counts), say)
    for name in options.sets:
        data = load(name, folder, options.out)
        try:
            data.read()
        except FileNotFoundError as missing:
            say(f"{name} is passed over: there is no {Path(str(missing.filename)).name}")
            continue
        _measure_set(kept, data, options, counts, say)


def _measure_set(kept: Kept, data: DataSet, options: argparse.Namespace, counts: runs.Counts, say: runs.Say) -> None:
    only = options.only
    jobs: list[runs.Job] = []
    if data.name in runs.PAPER_SETS:
        jobs += runs.without_noise(data, counts) if "4" in only else []
        jobs += runs.sweep(data, "5", counts.figure_5) if "5" in only else []
    if data.name == "adult":
        for figure in ("6", "7", "8d"):
            jobs += runs.sweep(data, figure, counts.figure_6) if figure in only else []
        jobs += runs.adult(data, counts) if "adult" in only else []
    cells = list(runs.cells_of(data, [None if cohort == 0 else cohort for cohort in options.cohorts]))
    if {"papers", "ours", "plan"} & set(only):
        jobs += runs.ceilings(data)
    for asked in cells:
        listed = designs.listed(data, asked.epsilon, asked.peers)
        names = [name for name in listed if ("papers" if name in designs.PAPERS else "ours") in only]
        jobs += runs.table(data, asked, names, counts)
        jobs += runs.choices(data, asked) if "plan" in only else []
    runs.do(kept, jobs, say, options.processes)
    if "plan" in only:
        runs.do(kept, runs.as_planned(kept, data, cells, counts), say, options.processes)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper", description="The paper's figures, again.")
    parser.add_argument("--data", type=Path, help="folder of the data sets (else $ANONML_DATA)")
    parser.add_argument("--out", type=Path, default=OUT, help="where results are kept")
    parser.add_argument("--docs", type=Path, help="where results.md and results/ are written (else docs/)")
    parser.add_argument("--only", nargs="+", choices=STEPS, default=list(STEPS), help="figures to measure")
    parser.add_argument("--sets", nargs="+", choices=NAMES, default=list(NAMES), help="data sets to measure on")
    parser.add_argument("--cohorts", type=int, nargs="+", default=COHORTS, help="peers in the tables; 0 for all")
    parser.add_argument("--effort", type=float, default=1.0, help="this part of the trials; 0.02 to see that it runs")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="so many at once (else: one a core)")
    parser.add_argument("--fresh", action="store_true", help="measure again what is kept")
    parser.add_argument("--page", action="store_true", help="only write the page from what is kept")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
