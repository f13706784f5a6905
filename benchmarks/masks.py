"""Whole studies of sums under masks: all members in one process, some of them lost between the rounds.

    python -m benchmarks.masks [--members 200] [--lost 30] [--repetitions 3]

Every member is a real peer (`examples.testing`): it enrols, checks roster and credentials, reads and checks every page,
seals and opens letters, journals, and looks for its packets in the end. So is the aggregator. A call takes the place of
each request, and the clock jumps. The figure is of all work from the study file to the last member's end. A third of
those `lost` goes away after each of the first three rounds: after keys, shares, and vectors. In a second study more
than a third of all members go away after the vectors, and nothing may be opened.

In one process a page is read and its tokens are checked once, not once a member. So one member is measured alone: its
pages are read and checked for it, as on a machine of its own. Its figure has the aggregator's answers to its packets.

Goal: 120 s of processor time for 200 members of whom 30 are lost; the clock's seconds, which other work on the machine
lengthens, stand beside it. Prints a table, writes benchmarks/out/masks.json, and exits with 1 where the goal is missed
or something was opened that may not be.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

from attrs import define, field, frozen

from aggregator.app import AggregatorApp
from anon.protocols import board
from anon.protocols.board import BoardPage
from anon.protocols.sum.masks.masking import VECTOR
from anon.transparency.documents import SignedHead, find
from anon.transparency.together import HeadGroup, heads_of
from benchmarks.figures import Figure, publish
from examples.clock import Clock
from examples.protocols import PROTOCOLS
from examples.testing import Request, StudyInMemory
from peer.app import PeerApp

GOAL = 120.0
IN_MEMORY = Path("/dev/shm")
"""Where homes lie, if it is there: else each commit waits for a disk that all members would share."""
NUMBERS = 8
STUDY = """
version = 1
protocol = "masks"
title = "Masks"
purpose = "To measure masks."
contact = "nobody@example.org"
[tables]
person = [{columns}, "tired"]
[label]
name = "tired"
description = "Tired"
query = "SELECT tired FROM person"
positive = [1]
negative = [0]
missing = "negative"
{features}
[design]
kind = "masked-moments"
epsilon = 1.0
[schedule]
enrol = "60m"
settle = "20m"
collect = "60m"
[cohort]
minimum = 10
maximum = {most}
"""


def study_text(members: int) -> str:
    """A study of moments of some numbers."""
    names = [f"f{number}" for number in range(NUMBERS)]
    features = "".join(
        f'[[features]]\nname = "{name}"\ndescription = "{name}"\nquery = "SELECT {name} FROM person"\n'
        'kind = "numeric"\nrange = [0, 100]\ncuts = [50]\nmissing = "own"\n'
        for name in names
    )
    return STUDY.format(columns=", ".join(f'"{name}"' for name in names), features=features, most=members)


@define
class Alone:
    """A member for whom nothing counts that others read or checked in this process. `cpu`: seconds of its steps."""

    app: PeerApp
    cpu: float = 0.0
    _read: dict[tuple[bytes, int, bytes], BoardPage] = field(factory=dict)
    _held: dict[bytes, None] = field(factory=dict)

    async def step(self, study: bytes) -> float | None:
        """As the member's own."""
        with patch.dict(board._READ, self._read, clear=True), patch.dict(board._HELD, self._held, clear=True):
            start = time.process_time()
            due = await self.app.step(study)
            self.cpu += time.process_time() - start
            self._read, self._held = dict(board._READ), dict(board._HELD)
        return due

    def close(self) -> None:
        """As the member's own."""
        self.app.close()


@frozen
class Run:
    """A study's seconds and those of all processors, what was opened, and how many vectors came; of the member that is
    measured alone its seconds, and bytes of packets and of documents."""

    seconds: float
    cpu: float
    opened: bool
    came: int
    own_cpu: float
    sent: int
    fetched: int


async def run(folder: Path, members: int, leave: Sequence[int]) -> Run:
    """One study. `leave`: how many go away after each of the first rounds."""
    clock, start, cpu = Clock(), time.perf_counter(), time.process_time()
    async with AggregatorApp(folder / "aggregator", clock, os.urandom, processes=0, protocols=PROTOCOLS) as app:
        study = await StudyInMemory.begin(app, clock, study_text(members), members)
        for number in range(members):
            row = {f"f{at}": (37 * number + 11 * at) % 101 for at in range(NUMBERS)}
            study.bring(number, {"person": [{**row, "tired": number % 2}]})
        await study.settle_in(members)
        live, alone = study.live, Alone(study.peers[-1])
        study.peers[-1] = alone  # type: ignore[call-overload]
        ends = [live.rounds[turn].window.closes + 1.0 for turn, many in enumerate(leave) for _ in range(many)]
        await study.go_on(away=dict(enumerate(ends)))
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        vectors = await live.body_of(live.chain[[one.head.kind for one in live.chain].index("page") + VECTOR].head)
        opened, came = find(live.chain, "model"), board.read_page(live.manifest, VECTOR, vectors).packets
        sent, fetched = traffic(live.chain, study.routes[-1].requests)
        study.close()
        return Run(seconds, cpu, opened is not None, len(came), alone.cpu, sent, fetched)


def traffic(chain: Sequence[SignedHead], requests: Sequence[Request]) -> tuple[int, int]:
    """Bytes of what was posted, and of the documents that were fetched."""
    numbers = [int(one.what.removeprefix("documents/")) for one in requests if one.what.startswith("documents/")]
    groups = [HeadGroup(one.what.removeprefix("heads/")) for one in requests if one.what.startswith("heads/")]
    slots = sum(signed.head.kind == "transcript" for signed in chain)
    beside = [head for group in groups for head in heads_of(group, chain, slots)]
    fetched = sum(head.length for head in (*(chain[number].head for number in numbers), *beside))
    return sum(len(request.body or b"") for request in requests), fetched


def row_of(members: int, leave: Sequence[int], repetitions: int) -> Figure:
    """One row of the table: medians, and the fastest and slowest run."""
    runs = []
    for _ in range(repetitions):
        with tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
            runs.append(asyncio.run(run(Path(folder), members, leave)))
    whole, cpu, own = ([getattr(one, name) for one in runs] for name in ("seconds", "cpu", "own_cpu"))
    return {
        "members": members, "lost": sum(leave), "came": runs[0].came, "opened": all(one.opened for one in runs),
        "seconds": round(statistics.median(whole), 1), "min_s": round(min(whole), 1), "max_s": round(max(whole), 1),
        "cpu_s": round(statistics.median(cpu), 1), "cpu_min_s": round(min(cpu), 1), "cpu_max_s": round(max(cpu), 1),
        "own_cpu_s": round(statistics.median(own), 2), "own_min_s": round(min(own), 2), "own_max_s": round(max(own), 2),
        "own_sent": runs[0].sent, "own_fetched": runs[0].fetched,
    }  # fmt: skip


def main() -> None:
    """Measure, print, write; exit with 1 if a run took more than the goal, or opened what it may not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=200)
    parser.add_argument("--lost", type=int, default=30)
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    share, members = options.lost // 3, options.members
    rows = [
        row_of(members, (share, share, options.lost - 2 * share), options.repetitions),
        row_of(members, (0, 0, members // 3 + 1), 1),
    ]
    publish("masks", rows, {"cores": os.cpu_count(), "repetitions": options.repetitions, "goal_s": GOAL})
    slow = any(float(row["cpu_max_s"] or 0) > GOAL for row in rows)
    raise SystemExit(slow or [row["opened"] for row in rows] != [True, False])


if __name__ == "__main__":
    main()
