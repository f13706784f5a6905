"""`python -m benchmarks.paper --data DIR`: measure what is not kept yet, then write docs/results.md and its plots.

One process, one core. Stopped and started again it goes on where it was; `--page` writes the page from what is kept.
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
COHORTS = [0, 5000, 2000, 1000]
STEPS = ("2", "3", "4", "5", "6", "7", "8d", "utility")


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
    """Everything that `--only` names, the paper's figures before the tables."""
    counts = runs.Counts().at(options.effort)
    start = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - start:7.1f} s  {text}", flush=True)

    sets = {name: load(name, folder, options.out) for name in options.sets}
    if {"2", "3"} & set(options.only):
        runs.mechanisms(kept, counts, say)
    for name, data in sets.items():
        try:
            _figures(kept, data, options.only, counts, say)
        except FileNotFoundError as missing:
            say(f"{name} is passed over: there is no {Path(str(missing.filename)).name}")
    if "utility" in options.only:
        for name, data in sets.items():
            try:
                _tables(kept, data, options.cohorts, counts, say)
            except FileNotFoundError as missing:
                say(f"{name} is passed over: there is no {Path(str(missing.filename)).name}")


def _figures(kept: Kept, data: DataSet, only: list[str], counts: runs.Counts, say: runs.Say) -> None:
    if data.name not in runs.PAPER_SETS:
        return
    if "4" in only:
        runs.without_noise(kept, data, counts, say)
    if "5" in only:
        runs.sweep(kept, data, "5", counts.figure_5, say)
    if data.name == "adult":
        for figure in ("6", "7", "8d"):
            if figure in only:
                runs.sweep(kept, data, figure, counts.figure_6, say)


def _tables(kept: Kept, data: DataSet, cohorts: list[int], counts: runs.Counts, say: runs.Say) -> None:
    runs.ceilings(kept, data, say)
    for peers in (None if cohort == 0 else cohort for cohort in cohorts):
        whole = data.name == "adult" and peers is None
        epsilons, trials = (designs.EPSILONS, counts.adult) if whole else (designs.OTHER_EPSILONS, counts.other)
        runs.table(kept, data, epsilons, (peers,), trials, say)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper", description="The paper's figures, again.")
    parser.add_argument("--data", type=Path, help="folder of the data sets (else $ANONML_DATA)")
    parser.add_argument("--out", type=Path, default=OUT, help="where results are kept")
    parser.add_argument("--docs", type=Path, help="where results.md and results/ are written (else docs/)")
    parser.add_argument("--only", nargs="+", choices=STEPS, default=list(STEPS), help="figures to measure")
    parser.add_argument("--sets", nargs="+", choices=NAMES, default=list(NAMES), help="data sets to measure on")
    parser.add_argument("--cohorts", type=int, nargs="+", default=COHORTS, help="peers in the tables; 0 for all")
    parser.add_argument("--effort", type=float, default=1.0, help="this part of the trials; 0.02 to see that it runs")
    parser.add_argument("--fresh", action="store_true", help="measure again what is kept")
    parser.add_argument("--page", action="store_true", help="only write the page from what is kept")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
