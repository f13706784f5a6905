"""One member with many records in a study of private trees: the children that answer its queries, and grow its tree.

    python -m benchmarks.records [--records 50000] [--attributes 15]

Both are children as a peer has them, of a server each, in the half of 60 seconds that each of them has
(`peer.rules.schedule`). Beside seconds stands the largest resident memory of any child, and what a member without
records takes. `sent`: bytes of the tree, which are the same. `page`: the longest page of 100 members. Goal: 30 s and
2 GB for all of it, and a page below 64 MiB. Prints a table, writes benchmarks/out/records.json, and exits with 1 where
the goal is missed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Self

from attrs import evolve

from aggregator.lab.simulation.simulate import NO_KEYS
from anon.protocols.board import longest_page
from anon.protocols.resolve import resolve
from anon.queries import process
from anon.study.manifest import Manifest
from benchmarks.figures import Figure, publish
from examples.protocols import PROTOCOLS
from peer.data.evaluate import request_of
from peer.data.importing import import_rows
from peer.data.making.content import Making, SlotRequest, made
from peer.data.making.work import work_of
from peer.protocols.contract import part_of

MEMBERS, SECONDS, MEMORY, PAGE = 100, 30.0, 2 * 2**30, 64 * 2**20
HALF = 30.0
STUDY = """\
version = 1
protocol = "trees"
title = "Many records"
purpose = "To see what they take."
contact = "benchmark"
records = "many"
most_records = {records}
unit = "record"
[tables]
held = ["id", {columns}, "label"]
[label]
name = "label"
description = "The label."
query = "SELECT id, label FROM held"
positive = [1]
negative = [0]
missing = "negative"
{features}[design]
kind = "trees"
epsilon = 1.0
rows = 1000
[schedule]
enrol = "1d"
settle = "12h"
collect = "1d"
[cohort]
minimum = 10
maximum = {members}
"""
FEATURE = """\
[[features]]
name = "{name}"
kind = "numeric"
description = "A column."
query = "SELECT id, {name} FROM held"
range = [0, 100]
cuts = [10, 20, 30, 40, 50, 60, 70, 80, 90]
missing = "own"
"""


def study_of(records: int, names: Sequence[str]) -> Manifest:
    """A study of trees with these attributes."""
    columns = ", ".join(f'"{name}"' for name in names)
    features = "".join(FEATURE.format(name=name) for name in names)
    text = STUDY.format(records=records, columns=columns, features=features, members=MEMBERS)
    return resolve(PROTOCOLS.proposal(text), NO_KEYS, 0)


def lived(manifest: Manifest, database: Path) -> Figure:
    """A member's two children, one after the other."""
    request, survey = request_of(manifest, database, b"seed"), manifest.surveys[0]
    random = bytes(part_of(manifest).random_size(manifest, survey))
    place = SlotRequest(0, 0, bytes(48), random)
    empty = Making(manifest.to_bytes(), bytes(request.size), (place,))
    size = len(made(empty, manifest))
    began = time.monotonic()
    answers = process.in_a_child(process.queries(request), HALF)
    between = time.monotonic()
    told = evolve(empty, answers=answers)
    content = process.in_a_child(work_of(told, manifest, size), HALF)
    over = time.monotonic()
    whole = len(answers) == request.size and len(content) == size
    return {"whole": whole, "queries_s": round(between - began, 2), "tree_s": round(over - between, 2),
            "answers": request.size, "sent": survey.size}  # fmt: skip


class Peak:
    """The largest resident memory that a child of a server has had, as it is seen every 20 ms."""

    kilobytes = 0

    def __enter__(self) -> Self:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.02):
            for server in process._SERVERS:
                if server._process is not None:
                    self._see(server._process.pid)

    def _see(self, server: int) -> None:
        with suppress(OSError):  # it may be gone by now
            for child in Path(f"/proc/{server}/task/{server}/children").read_text("ascii").split():
                told = Path(f"/proc/{child}/status").read_text("ascii").partition("VmHWM:")[2].split()
                self.kilobytes = max(self.kilobytes, int(told[0]) if told else 0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and keep; 1 where the goal is missed."""
    parser = argparse.ArgumentParser(description="One member with many records.")
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--attributes", type=int, default=15)
    options = parser.parse_args(arguments)
    names, spring = [f"a{at}" for at in range(options.attributes)], Random(1)
    manifest, rows = study_of(options.records, names), list[Figure]()
    page = longest_page(manifest, (0,))
    for records in (0, options.records):
        with tempfile.TemporaryDirectory() as folder:
            database = Path(folder) / "data.sqlite"
            table = [(at, *(spring.uniform(0, 100) for _ in names), spring.randrange(2)) for at in range(records)]
            import_rows(database, "held", ("id", *names, "label"), table or [(None,) * (len(names) + 2)], durable=False)
            del table
            with Peak() as peak:
                rows.append({"records": records, **lived(manifest, database), "page": page})
            rows[-1]["memory_mib"] = round(peak.kilobytes / 1024)
    publish("records", rows, {"attributes": options.attributes})
    many = rows[-1]
    met = many["whole"] and float(str(many["queries_s"])) + float(str(many["tree_s"])) < SECONDS
    return int(not (met and 1024 * peak.kilobytes < MEMORY and page < PAGE and rows[0]["sent"] == many["sent"]))


if __name__ == "__main__":
    sys.exit(main())
