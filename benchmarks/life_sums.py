"""The whole life of a study of exact sums with many members: real aggregator, real tellers, over loopback, audited.

    python -m benchmarks.life_sums [--members 10000] [--cells 1000] [--peers 3] [--cores 2] [--keep FOLDER]

As `benchmarks.life`, with the design `tables-sum` and two tellers. `anonml teller serve` runs twice, in processes and
homes of their own. Nearly all members are synthetic: each has a real key, a real commitment, a real token, and a
vector of its own in real shares, sealed to the tellers. The driver leaves out what a peer does for itself alone: its
own check of its credential. `--peers` of the members are real peers in homes of their own, from joining to finding
their packets. The bytes of all bodies that they get and send after joining are counted.

The command fails unless each of these holds:

 1. every packet that was sent is in the exported transcript and on the tellers' list, once, and no other is
 2. the sum is that of all contributions, with noise of the length that the study tells in each cell
 3. the audit of the export finds nothing
 4. a teller takes at most 80 s of processor time for 10,000 members of 1,000 cells, and in proportion for others
 5. a real peer gets and sends at most 500 kB

Prints a row for each stage with processor times of aggregator, tellers and driver. Writes
benchmarks/out/life_sums.json.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import tempfile
import time
from collections.abc import Sequence
from functools import lru_cache, partial
from math import sqrt
from operator import add
from pathlib import Path

from attrs import define, field, frozen

from aggregator.app import AggregatorApp
from anon.protocols.contract import Record
from anon.protocols.sum.standing import read_sum
from anon.protocols.sum.vector import vector_of
from anon.study.manifest import Manifest
from anon.transparency.documents import find, parse_chain
from anon.wire.invite import Invite
from benchmarks.figures import Figure, publish
from benchmarks.life import DAY, checked, made
from benchmarks.life_figures import Outcome, Watch
from benchmarks.life_members import keys_of, make_enrolments, make_packets
from benchmarks.life_peers import RealPeers, Row
from benchmarks.life_program import FileClock
from benchmarks.life_running import Program
from benchmarks.life_study import Life
from benchmarks.tellers import CATEGORIES, NAMES, named, study_text
from examples.protocols import PROTOCOLS

MOST_SECONDS = 80.0
"""Of a teller's processor time, for 10,000 members of 1,000 cells."""
START_SECONDS = 3.0
"""A teller's start is in its time."""
MOST_BYTES = 500_000
"""Of all bodies that a peer gets and sends."""
MOST_SIGMAS = 7.0
"""A noisy cell is farther from the exact one by chance once in 10^11 cells."""
SECONDS = (4 * DAY, DAY, 4 * DAY)


@frozen
class SumFacts:
    """Facts that the published sum shows."""

    off_list: int
    """Members without a tag on the tellers' list. The audit finds each tag of the list in the transcript."""
    farthest: float
    """The largest distance of a cell from the exact sum, in standard deviations of its noise."""
    spread: float
    """Mean square of that distance: 1 where all noise is there."""


@define
class TellerTimes:
    """Processor seconds of each teller, by stage."""

    programs: list[Program]
    rows: list[list[float]] = field(factory=list)
    _before: list[float] = field(factory=list)

    def note(self) -> None:
        """A stage has ended."""
        now = [program.cpu() for program in self.programs]
        before = self._before or [0.0] * len(now)
        self.rows.append([after - earlier for after, earlier in zip(now, before, strict=True)])
        self._before = now

    @property
    def whole(self) -> list[float]:
        """Of each, from its start on."""
        return self._before


@frozen
class SummedLife:
    """Such a study: as every life, its sum, and its tellers."""

    cells: int
    outcome: Outcome
    facts: SumFacts
    times: TellerTimes

    @property
    def most_seconds(self) -> float:
        """Of a teller."""
        return max(START_SECONDS, MOST_SECONDS * self.outcome.members * self.cells / 1e7)

    @property
    def ok(self) -> bool:
        """True if all that the command promises holds."""
        life, facts = self.outcome, self.facts
        accepted = all(set(words) == {"accepted"} for words in life.words.values())
        whole = (life.lost, life.doubled, life.strange, facts.off_list) == (0, 0, 0, 0)
        found = life.included == len(life.downloaded)
        told = tuple(life.audit[name] for name in ("findings", "enrolled", "packets", "model_checked"))
        audited = told == ([], life.members, life.members, True)
        small = max(life.downloaded, default=0) <= MOST_BYTES and max(self.times.whole) <= self.most_seconds
        return accepted and whole and found and audited and small and facts.farthest <= MOST_SIGMAS

    def rows(self) -> list[Figure]:
        """One for each stage. Tellers have no part in the last two."""
        stages = zip(self.outcome.stages, [*self.times.rows, [0.0] * 2, [0.0] * 2], strict=True)
        return [
            {**stage.row(self.outcome.members), "one_cpu_s": round(one, 1), "two_cpu_s": round(two, 1)}
            for stage, (one, two) in stages
        ]

    def about(self) -> Figure:
        """The figures of the whole."""
        life, facts = self.outcome, self.facts
        return {
            "members": life.members, "cells": self.cells,
            "teller_cpu_s": ", ".join(f"{spent:.1f}" for spent in self.times.whole),
            "most_teller_cpu_s": round(self.most_seconds, 1),
            "aggregator_cpu_s": round(sum(stage.serving for stage in life.stages), 1),
            "driver_cpu_s": round(sum(stage.driving for stage in life.stages), 1),
            "bytes_of_each_real_peer": ", ".join(map(str, life.downloaded)),
            "peers_that_found_their_packet": life.included,
            "answers": "; ".join(f"{what}: {dict(words)}" for what, words in life.words.items()),
            "lost": life.lost, "doubled": life.doubled, "strange": life.strange, "off_the_list": facts.off_list,
            "farthest_cell_in_sigmas": round(facts.farthest, 2), "mean_square_of_noise": round(facts.spread, 3),
            "peak_mib": round(life.peak), "audit": str(life.audit), "load": round(os.getloadavg()[0], 1),
        }  # fmt: skip


def record_of(manifest: Manifest, key: bytes) -> Record:
    """A made-up person: the categories that a key draws."""
    drawn = hashlib.shake_128(key).digest(len(manifest.features) + 1)
    values: dict[str, float | str | None] = {
        one.name: str(byte % CATEGORIES) for one, byte in zip(manifest.features, drawn[1:], strict=True)
    }
    return Record(values, ("low", "high")[drawn[0] % 2])


@lru_cache(maxsize=1)
def _manifest(manifest: bytes) -> Manifest:
    return PROTOCOLS.manifest(manifest)


def vector_for(manifest_bytes: bytes, key: bytes) -> Sequence[int]:
    """The contribution of the member with this key."""
    manifest = _manifest(manifest_bytes)
    return vector_of(manifest, manifest.survey(0), record_of(manifest, key))


def row_of(manifest: Manifest, number: int) -> Row:
    """A real peer's row: the number's digest is in place of a key."""
    record = record_of(manifest, _stand_in(number))
    return (*(str(record.values[one.name]) for one in manifest.features), str(record.label))


def _stand_in(number: int) -> bytes:
    return hashlib.sha256(str(number).encode()).digest()


def exact_sum(life: Life) -> list[int]:
    """Of all members, over the cells."""
    study = life.manifest.to_bytes()
    keys = [key for number in range(len(life.parts)) for key in keys_of(life.made, number)]
    keys += [_stand_in(number) for number in range(life.real)]
    total = [0] * life.manifest.survey(0).m
    for key in keys:
        total = list(map(add, total, vector_for(study, key)))
    return total


async def live(folder: Path, members: int, cells: int, real: int, cores: int) -> SummedLife:
    """The whole study, in a folder of its own."""
    clock, home = FileClock(folder / "clock", time.time()), folder / "aggregator"
    places = named(folder)
    serving = [Program(clock, ("teller", "serve", "--home", str(folder / name), "--json")) for name in NAMES]
    words = ("--home", str(home), "--port", "0", "--processes", "1", "--json")
    program, peers, times = Program(clock, ("aggregator", "serve", *words)), RealPeers(clock), TellerTimes(serving)
    try:
        for teller in serving:
            await teller.start()
        text = study_text("tables-sum", places, cells // (2 * CATEGORIES), (20, members), SECONDS)
        async with AggregatorApp(home, clock, os.urandom, processes=0, protocols=PROTOCOLS) as app:
            manifest = await app.create_study(PROTOCOLS.proposal(text))
        life = Life(folder, members, real, clock, manifest)
        life.made.mkdir()
        address = (await program.start())["address"]
        life.port = int(address.rpartition(":")[2])
        watch = Watch(program)
        invite = Invite(address, manifest.aggregator_key, manifest.study_id)
        columns = (*(one.name for one in manifest.features), manifest.label.name)
        await peers.join(folder, [invite] * real, manifest.epsilon, columns, partial(row_of, manifest))
        await _through(life, peers, watch, times, cores)
        traffic = tuple(route.received + route.sent for route in peers.routes)
        included = peers.included()
    finally:
        peers.close()
        await program.stop()
        for teller in serving:
            await teller.stop()
    outcome = await checked(life, watch, traffic, included)
    return SummedLife(manifest.surveys[0].m, outcome, _facts(life), times)


async def _through(life: Life, peers: RealPeers, watch: Watch, times: TellerTimes, cores: int) -> None:
    """As in `benchmarks.life`, to the published report and the end of the real peers."""
    timetable, manifest = life.manifest.timetable, life.manifest.to_bytes()
    (window,) = life.manifest.windows

    def note(name: str, beside: float = 0.0) -> None:
        watch.note(name, beside)
        times.note()

    await peers.live(timetable.enrol_closes - DAY)
    note("real peers enrol")
    parts = [(life.made, number, manifest, count) for number, count in enumerate(life.parts)]
    note("enrolments are made", await made(make_enrolments, parts, cores))
    await life.enrol()
    note("enrolments are sent")
    await peers.live(timetable.enrol_closes - 1)
    life.clock.set(timetable.enrol_closes)
    issued = await life.issued(await life.published("credentials"))
    note("roster closes, credentials are issued")
    vectors = partial(vector_for, manifest)
    work = [(*one, vectors) for one in life.work_on(manifest, issued)]
    note("packets are made", await made(make_packets, work, cores))
    await peers.live(window.opens + 1)
    await life.send()
    note("packets are sent")
    await peers.live(window.closes)
    note("real peers send")
    await life.published("sums")
    note("tellers add up")
    await life.published("report")
    note("transcript, model and report are published")
    await peers.live(timetable.ends + DAY)
    note("real peers look for their packets")


def _facts(life: Life) -> SumFacts:
    """From the exported document of the sum, and the contributions that were made."""
    manifest, export = life.manifest, life.folder / "export"
    chain = parse_chain((export / "heads").read_bytes(), manifest.aggregator_key, manifest.study_id)
    head = find(chain, "sums")
    assert head is not None
    body = (export / "documents" / str(head.number)).read_bytes()
    found = read_sum(manifest, 0, body)
    exact = exact_sum(life)
    away = [(value - cell) / sqrt(found.noise) for value, cell in zip(found.values, exact, strict=True)]
    return SumFacts(life.members - found.accepted, max(map(abs, away)), sum(one * one for one in away) / len(away))


async def measure(told: argparse.Namespace) -> SummedLife:
    """In the folder that is to be kept, or in one that goes."""
    asked = told.members, told.cells, told.peers, told.cores
    if told.keep is not None:
        told.keep.mkdir(parents=True)
        return await live(told.keep, *asked)
    with tempfile.TemporaryDirectory() as folder:
        return await live(Path(folder), *asked)


def main() -> None:
    """Measure and publish. Ends with 1 where one of the five does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=10_000)
    parser.add_argument("--cells", type=int, default=1000, help=f"a multiple of {2 * CATEGORIES}")
    parser.add_argument("--peers", type=int, default=3, help="how many of the members are real peers")
    parser.add_argument("--cores", type=int, default=os.cpu_count(), help="cores that make packets")
    parser.add_argument("--keep", type=Path, help="a new folder for homes, packets and export")
    found = asyncio.run(measure(parser.parse_args()))
    publish("life_sums", found.rows(), found.about())
    raise SystemExit(0 if found.ok else 1)


if __name__ == "__main__":
    main()
