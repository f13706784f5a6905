"""How long a round of exact sums takes: from the end of its window to the published model, with two tellers.

    python -m benchmarks.tellers [--peers 500] [--repetitions 5] [--designs tables-sum moments all-pairs]

Vectors of some 500 entries: `tables-sum` with 25 features of ten categories (500 cells in blocks), and `moments` with
29 numbers (496 entries in a ball, whose proofs are dearer). `averaging` has the weights of 29 numbers, fitted to 20
records of each member. `marginals` has 15 features of ten categories, in the form that its rule takes for few people:
300 cells; `all-pairs` has the same features, and tables of all their pairs: 21,000 cells. Packets are made by a peer's
own code beforehand, and accepted by the aggregator. Then the window closes. The aggregator runs in this process with
one worker, each teller as `anonml teller serve` in a process of its own, over loopback HTTP. All of them share the
machine's cores. Every repetition begins with the same homes, copied.

Goal: 120 s at 500 peers, of `averaging` at 1,000, of both forms of `marginals` at 100. Prints a table with the median,
the fastest and the slowest run, and the processor time of the busier teller and of a packet's making; writes
benchmarks/out/tellers.json. Exits with 1 if a run missed the goal.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

from attrs import define, field, frozen

from aggregator.app import AggregatorApp
from aggregator.study.live import LiveStudy
from anon.credential import Credential, PublicKey, commit, finalize, pseudonym, signer_nym_entropy
from anon.crypto.nacl import SigningKey
from anon.protocols.contract import Record
from anon.protocols.outgoing import CutVector
from anon.protocols.posts import sealed_enrolment
from anon.protocols.sortition import tag_context
from anon.study.manifest import Manifest
from anon.teller.home import Place, open_home
from anon.transparency.documents import find
from anon.wire.messages import Enrolment, credential_header, sign_enrolment
from benchmarks.closed_enrolment import members_of
from benchmarks.figures import Figure, publish
from benchmarks.server import cpu_seconds
from examples.protocols import PROTOCOLS
from peer.protocols.sum.part import SumPart
from peer.release import release

GOAL = 120.0
NAMES = ("one", "two")
CELLS, NUMBERS, CATEGORIES, RECORDS, PAIRED = 25, 29, 10, 20, 15
DESIGNS = ("tables-sum", "moments", "averaging", "marginals", "all-pairs")
MANY = f'records = "many"\nmost_records = {RECORDS}\nunit = "person"'
ENROL, SETTLE, COLLECT = 100, 20, 1000
STUDY = """
version = 1
protocol = "sum"
title = "Sums"
purpose = "To measure tellers."
contact = "nobody@example.org"
{records}
[tables]
person = ["row", {columns}, "income"]
[label]
name = "income"
description = "Income"
query = "SELECT {key}income FROM person"
positive = ["high"]
negative = ["low"]
missing = "negative"
{features}
[design]
{design}
epsilon = 1.0
[schedule]
enrol = "{enrol}s"
settle = "{settle}s"
collect = "{collect}s"
[cohort]
minimum = {minimum}
maximum = {members}
admission = "open"
{tellers}
"""


def study_text(
    design: str,
    tellers: str,
    features: int = 0,
    cohort: tuple[int, int] = (2, 10_000),
    seconds: tuple[int, int, int] = (ENROL, SETTLE, COLLECT),
) -> str:
    """A study file of this design. `features`: how many, 0 for the design's own number; `seconds`: of enrolling,
    settling and collecting."""
    count = features or {"tables-sum": CELLS, "marginals": PAIRED, "all-pairs": PAIRED}.get(design, NUMBERS)
    names = [f"f{number}" for number in range(count)]
    categories = ", ".join(f'"{number}"' for number in range(CATEGORIES))
    kind = f'kind = "categorical"\ncategories = [{categories}]\nmissing = "0"'
    if design not in ("tables-sum", "marginals", "all-pairs"):
        kind = 'kind = "numeric"\nrange = [0, 10]\ncuts = [5]\nmissing = "own"'
    records, key = (MANY, "row, ") if design == "averaging" else ("", "")
    told = "".join(
        f'[[features]]\nname = "{name}"\ndescription = "{name}"\nquery = "SELECT {key}{name} FROM person"\n{kind}\n'
        for name in names
    )
    return STUDY.format(
        columns=", ".join(f'"{name}"' for name in names), features=told, tellers=tellers,
        design='kind = "marginals"\ntree_from = 0' if design == "all-pairs" else f'kind = "{design}"',
        enrol=seconds[0], settle=seconds[1], collect=seconds[2], minimum=cohort[0], members=cohort[1],
        records=records, key=key,
    )  # fmt: skip


@frozen
class Member:
    """One enrolled key, and what its credential is made of."""

    key: SigningKey = field(factory=lambda: SigningKey(os.urandom(32)))
    contribution: bytes = field(factory=lambda: os.urandom(32))


@define
class Clock:
    """A clock that is set."""

    seconds: float

    def __call__(self) -> float:
        """Unix seconds."""
        return self.seconds


@contextmanager
def teller(home: Path) -> Iterator[int]:
    """A serving teller's process id."""
    words = [sys.executable, "-m", "anonml", "teller", "serve", "--home", str(home), "--json"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise RuntimeError("a teller did not start")
        yield process.pid
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def tellers(folder: Path) -> Iterator[list[int]]:
    """Both of them."""
    with ExitStack() as stack:
        yield [stack.enter_context(teller(folder / name)) for name in NAMES]


def named(folder: Path) -> str:
    """The tellers' homes, made; the lines of the study file that name them."""
    lines = []
    for name in NAMES:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        open_home(folder / name, os.urandom).keep_place(Place(name, address))
        lines.append(f'[[tellers]]\nname = "{name}"\naddress = "{address}"\n')
    return "".join(lines)


@asynccontextmanager
async def aggregator(folder: Path, clock: Clock) -> AsyncIterator[AggregatorApp]:
    """With one worker."""
    async with AggregatorApp(folder / "aggregator", clock, os.urandom, processes=1, protocols=PROTOCOLS) as app:
        yield app


async def collected(folder: Path, design: str, peers: int) -> tuple[bytes, float, Figure]:
    """A study whose packets all came: its id, its window's end, and what it measured on the way."""
    clock = Clock(time.time())
    text = study_text(design, named(folder))
    with tellers(folder):
        async with aggregator(folder, clock) as app:
            manifest = await app.create_study(PROTOCOLS.proposal(text))
            live = app.study(manifest.study_id)
            credentials = await _credentials(app, live, clock, [Member() for _ in range(peers)])
            (window,) = manifest.windows
            await _until(app, live, clock, window.opens)
            start = time.process_time()
            packets = [await asyncio.to_thread(_packet, live, one) for one in credentials]
            made = (time.process_time() - start) / peers
            for packet in packets:
                word = await live.submit(packet)
                if word != "accepted":
                    raise RuntimeError(f"a packet was answered: {word}")
            about: Figure = {
                "entries": manifest.surveys[0].m, "packet_bytes": len(packets[0]), "packet_ms": round(made * 1e3, 1)
            }  # fmt: skip
            return manifest.study_id, window.closes, about


async def _credentials(app: AggregatorApp, live: LiveStudy, clock: Clock, members: list[Member]) -> list[Credential]:
    manifest = live.manifest
    hidden = {bytes(one.key.verify_key): commit(manifest.packets, os.urandom) for one in members}
    for one in members:
        key = bytes(one.key.verify_key)
        said = Enrolment(live.study, key, one.contribution, hidden[key].commitment_with_proof, b"")
        if (word := await live.enrol(sealed_enrolment(manifest, sign_enrolment(said, one.key)))) != "accepted":
            raise RuntimeError(f"an enrolment was answered: {word}")
    await _until(app, live, clock, manifest.timetable.enrol_closes)
    issued = live.packet_intake.issued
    if issued is None:
        raise RuntimeError("no credentials")
    header = credential_header(live.study, issued.roster_digest)
    return [
        finalize(
            PublicKey(manifest.credential_key), header, signature, signer_nym_entropy(issued.seed, entry.key),
            hidden[entry.key],
        )
        for entry, signature in await members_of(live)
    ]  # fmt: skip


def _packet(live: LiveStudy, credential: Credential) -> bytes:
    manifest, part = live.manifest, SumPart()
    record = _record(manifest)
    if manifest.records is not None:
        record = Record({}, None, [_record(manifest) for _ in range(RECORDS)])
    (made,) = part.answers(manifest, record, [(0, 0)], ())
    tag = pseudonym(credential, tag_context(manifest, 0))
    shares = part.cut(manifest, manifest.survey(0), 0, made.vector, tag, os.urandom)
    return release(live.study, manifest, CutVector(0, 0, shares), credential, os.urandom).sealed.ciphertext


def _record(manifest: Manifest) -> Record:
    values: dict[str, float | str | None] = {}
    for one in manifest.features:
        drawn = secrets.randbelow(CATEGORIES)
        values[one.name] = drawn if one.kind == "numeric" else str(drawn)
    return Record(values, secrets.choice(("high", "low")))


async def _until(app: AggregatorApp, live: LiveStudy, clock: Clock, instant: float) -> None:
    """The clock is set, and everything that is due is done."""
    clock.seconds = instant
    await app.tick()
    while live.waits:
        await asyncio.sleep(0.05)
        await app.tick()
    if live.trouble:
        raise RuntimeError(live.trouble)


@frozen
class Run:
    """Seconds from the end of the window to the sums, and to model and report; processor seconds of each teller."""

    summed: float
    published: float
    busy: list[float]


async def run(folder: Path, study: bytes, closes: float) -> Run:
    """The measured part, served as `anonml aggregator serve` does."""
    with tellers(folder) as pids:
        clock = Clock(closes - 1)
        async with aggregator(folder, clock) as app:
            live = app.study(study)
            serving = asyncio.create_task(app.serve("127.0.0.1", 0))
            await asyncio.sleep(2)  # the roll was handed out again, as after any start
            before = [cpu_seconds(pid) for pid in pids]
            clock.seconds, start = closes, time.perf_counter()
            summed = 0.0
            while find(live.chain, "report") is None:
                if serving.done() or live.trouble:
                    raise RuntimeError(live.trouble or "it serves no more")
                await asyncio.sleep(0.02)
                if not summed and find(live.chain, "sums") is not None:
                    summed = time.perf_counter() - start
            published = time.perf_counter() - start
            busy = [cpu_seconds(pid) - was for pid, was in zip(pids, before, strict=True)]
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving
            return Run(summed, published, busy)


async def measured(design: str, peers: int, repetitions: int) -> Figure:
    """One row of the table."""
    with tempfile.TemporaryDirectory() as scratch:
        origin = Path(scratch) / "origin"
        origin.mkdir()
        study, closes, about = await collected(origin, design, peers)
        runs = []
        for number in range(repetitions):
            copy = Path(scratch) / str(number)
            shutil.copytree(origin, copy)
            runs.append(await run(copy, study, closes))
            shutil.rmtree(copy)
    whole = [one.published for one in runs]
    return {
        "design": design, "peers": peers, **about,
        "seconds": round(statistics.median(whole), 1), "min_s": round(min(whole), 1), "max_s": round(max(whole), 1),
        "to_sum_s": round(statistics.median(one.summed for one in runs), 1),
        "teller_cpu_s": round(statistics.median(max(one.busy) for one in runs), 1),
        "goal_s": GOAL,
    }  # fmt: skip


def main() -> None:
    """Measure, print, write; exit with 1 if a run was longer than the goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=int, default=500)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--designs", nargs="+", default=DESIGNS[:2], choices=DESIGNS)
    options = parser.parse_args()
    rows = [asyncio.run(measured(design, options.peers, options.repetitions)) for design in options.designs]
    publish("tellers", rows, {"cores": os.cpu_count(), "repetitions": options.repetitions})
    raise SystemExit(any(float(row["max_s"] or 0) > GOAL for row in rows))


if __name__ == "__main__":
    main()
