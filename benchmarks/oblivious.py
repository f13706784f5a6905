"""A whole study of oblivious averaging: five parties, 124 weights, keys of 3,072 bits, all in one process.

    python -m benchmarks.oblivious [--parties 5] [--weights 124] [--records 100] [--bits 3072] [--repetitions 3]

Every party is a real peer (`examples.testing`), and so is the aggregator, whose seat is the paper's Charlie. A call
takes the place of each request, and the clock jumps, so that nobody waits. The figure is the processor time of all of
them together, children included, from the study file to the audit.

Goal: 120 s. Prints a table, writes benchmarks/out/oblivious.json, and exits with 1 where the goal is missed.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import tempfile
from pathlib import Path

from anon.protocols.contract import MODEL
from anon.protocols.sum.oblivious import paillier
from benchmarks.figures import Figure, publish
from examples.protocols import PROTOCOLS
from examples.testing import Outcome, run

GOAL = 120.0
STUDY = """
version = 1
protocol = "oblivious"
title = "Parties"
purpose = "To measure oblivious averaging."
contact = "nobody@example.org"
records = "many"
most_records = {records}
least_records = 5
unit = "record"
[tables]
person = ["day", {columns}, "tired"]
[label]
name = "tired"
description = "Tired"
query = "SELECT day, tired FROM person"
positive = [1]
negative = [0]
missing = "negative"
{features}
[design]
kind = "oblivious-averaging"
epsilon = 1.0
strength = 0.01
key_bits = {bits}
[schedule]
enrol = "60m"
settle = "20m"
collect = "60m"
[cohort]
minimum = {parties}
maximum = {parties}
"""
FEATURE = """[[features]]
name = "{name}"
description = "{name}"
query = "SELECT day, {name} FROM person"
kind = "numeric"
range = [0, 100]
cuts = [50]
missing = "own"
"""


def study_text(parties: int, weights: int, records: int, bits: int) -> str:
    """A study of so many weights: one of them is the constant's."""
    names = [f"f{number}" for number in range(weights - 1)]
    features = "".join(FEATURE.format(name=name) for name in names)
    columns = ", ".join(f'"{name}"' for name in names)
    return STUDY.format(parties=parties, records=records, bits=bits, columns=columns, features=features)


def lived(folder: Path, parties: int, weights: int, records: int, bits: int) -> Outcome:
    """The study: each party has fewer records than the one before."""
    people = [
        {
            "person": [
                {"day": day, "tired": (day + number) % 2}
                | {f"f{at}": (37 * number + 11 * at + 7 * day * (1 + day % 2)) % 101 for at in range(weights - 1)}
                for day in range(records - 10 * number)
            ]
        }
        for number in range(parties)
    ]
    return run(study_text(parties, weights, records, bits), people, folder, PROTOCOLS)


def processor() -> float:
    """Seconds of this process and its children that ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> None:
    """Measure, print, write; exit with 1 if a run took more than the goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, usual in (("parties", 5), ("weights", 124), ("records", 100), ("bits", 3072), ("repetitions", 3)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    asked = parser.parse_args()
    seconds = []
    for _ in range(asked.repetitions):
        with tempfile.TemporaryDirectory() as folder:
            start = processor()
            outcome = lived(Path(folder), asked.parties, asked.weights, asked.records, asked.bits)
            seconds.append(processor() - start)
            assert outcome.audit.ok and MODEL in outcome.results, outcome.audit.lines()
    board = sum(len(body) for (kind, _), body in outcome.documents.items() if kind in ("page", "seat"))
    row: Figure = {
        "parties": asked.parties, "weights": asked.weights, "records": asked.records, "bits": asked.bits,
        "cpu_s": round(statistics.median(seconds), 1), "min_s": round(min(seconds), 1),
        "max_s": round(max(seconds), 1), "board": board,
    }  # fmt: skip
    gmpy2 = paillier.powmod is not pow
    publish("oblivious", [row], {"cores": os.cpu_count(), "goal_s": GOAL, "gmpy2": gmpy2, "runs": asked.repetitions})
    raise SystemExit(max(seconds) > GOAL)


if __name__ == "__main__":
    main()
