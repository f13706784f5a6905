"""The processor time of commands that people type often, and of what a new shell evaluates.

    python -m benchmarks.commands [--runs 15]

Each run is a program of its own, as the installed `anonml` starts it, with the files of its modules in memory. Prints a
table and writes benchmarks/out/commands.json.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.figures import Figure, publish

PROGRAM = Path(sys.executable).with_name("anonml")
COMMANDS = (
    ("--help",), ("completion", "bash"), ("peer", "status"), ("peer", "run", "--once"), ("peer", "budget"),
    ("peer", "--help"),
)


def measure(words: tuple[str, ...], runs: int, home: Path) -> Figure:
    """Milliseconds of processor time of one command, over its runs; the first run is not counted."""
    named = ["--home", str(home)] if words[0] == "peer" and words[-1] != "--help" else []
    seconds = [_seconds([str(PROGRAM), *words, *named]) for _ in range(runs + 1)][1:]
    shown = {"median_ms": median(seconds), "least_ms": min(seconds), "most_ms": max(seconds)}
    return {"command": " ".join(words), **{name: round(1e3 * value, 1) for name, value in shown.items()}}


def _seconds(call: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}  # as installed
    subprocess.run(call, check=True, stdout=subprocess.DEVNULL, env={**kept, "COLUMNS": "100"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(words, runs, Path(folder) / "home") for words in COMMANDS]
    publish("commands", rows, {"runs": runs, "load": round(os.getloadavg()[0], 1)})


if __name__ == "__main__":
    main()
