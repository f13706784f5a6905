"""The whole life of a study with many members, by real programs on loopback, audited at its end.

    python -m benchmarks.life [--members 10000] [--peers 3] [--processes 1] [--keep FOLDER]

`anonml aggregator serve` runs on a SQLite home. Nearly all members are synthetic: the driver enrols real keys with
real commitments over HTTP, and makes a packet with a real token of each (`benchmarks.life_members`). It sends every
packet over HTTP, each tenth twice. `--peers` of the members are real peers in homes of their own, by the real peer's
code, from joining to finding their packets in the transcript. The bytes of all answers that they get after joining are
counted. At the end `anonml aggregator export` and `anonml aggregator audit` run, and the exported transcript is
compared with all packets that were sent.

Time stands still while there is work, and jumps between stages: the clock is a file (`benchmarks.life_program`).

Prints a row for each stage: seconds, processor time of the aggregator and of the driver with what makes its packets,
and the aggregator's memory at its peak in this stage, without and with its worker processes. Writes
benchmarks/out/life.json.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from aggregator.app import AggregatorApp
from anon.crypto import labels
from anon.study.manifest import Manifest
from anon.transparency.documents import parse_chain
from anon.transparency.transcript import parse_transcript
from anon.wire.cbor import sha256
from anon.wire.invite import Invite
from benchmarks.figures import Figure, publish
from benchmarks.life_figures import Outcome, Watch, compared
from benchmarks.life_members import make_enrolments, make_packets, read_parts, seconds_for
from benchmarks.life_peers import RealPeers
from benchmarks.life_program import FileClock
from benchmarks.life_running import Program, command
from benchmarks.life_study import STUDY, Life
from examples.protocols import PROTOCOLS

DAY = 86400


async def made(work: Callable[..., None], given: Sequence[tuple[object, ...]], cores: int | None = None) -> float:
    """Have all cores, or so many, do this work, once with each list of arguments; the processor time that it took."""
    loop, context = asyncio.get_running_loop(), get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.life_members"])
    with ProcessPoolExecutor(cores or os.cpu_count(), mp_context=context) as pool:
        tasks = (loop.run_in_executor(pool, partial(seconds_for, work, *one)) for one in given)
        return sum(await asyncio.gather(*tasks))


async def live(folder: Path, members: int, real: int, processes: int) -> Outcome:
    """The whole study, in a folder of its own."""
    clock = FileClock(folder / "clock", time.time())
    home = folder / "aggregator"
    async with AggregatorApp(home, clock, os.urandom, processes=0, protocols=PROTOCOLS) as app:
        manifest = await app.create_study(PROTOCOLS.proposal(STUDY.format(members=members)))
    words = ("--home", str(home), "--port", "0", "--processes", str(processes), "--json")
    program = Program(clock, ("aggregator", "serve", *words))
    life = Life(folder, members, real, clock, manifest)
    life.made.mkdir()
    peers = RealPeers(clock)
    try:
        address = (await program.start())["address"]
        life.port = int(address.rpartition(":")[2])
        watch = Watch(program)
        invite = Invite(address, manifest.aggregator_key, manifest.study_id)
        await peers.join(folder, [invite] * real, manifest.epsilon)
        await _through(life, peers, watch)
        downloaded, included = tuple(route.received for route in peers.routes), peers.included()
    finally:
        peers.close()
        await program.stop()
    return await checked(life, watch, downloaded, included)


async def _through(life: Life, peers: RealPeers, watch: Watch) -> None:
    """From the open enrolment to the published report, and to the end of the real peers."""
    times, manifest = life.manifest.timetable, life.manifest.to_bytes()
    (window,) = life.manifest.windows
    await peers.live(times.enrol_closes - DAY)
    watch.note("real peers enrol")
    parts = [(life.made, number, manifest, count) for number, count in enumerate(life.parts)]
    watch.note("enrolments are made", await made(make_enrolments, parts))
    await life.enrol()
    watch.note("enrolments are sent")
    await peers.live(times.enrol_closes - 1)
    life.clock.set(times.enrol_closes)
    heads = await life.published("credentials")
    watch.note("roster closes, credentials are issued")
    issued = await life.issued(heads)
    watch.note("packets are made", await made(make_packets, life.work_on(manifest, issued)))
    await peers.live(window.opens + 1)
    await life.send()
    watch.note("packets are sent")
    await peers.live(window.closes)
    watch.note("real peers send")
    await life.published("report")
    watch.note("transcript, model and report are published")
    await peers.live(times.ends + DAY)
    watch.note("real peers look for their packets")


async def checked(life: Life, watch: Watch, downloaded: tuple[int, ...], included: int) -> Outcome:
    """The export, its audit, and its packets beside those that were sent."""
    export = life.folder / "export"
    written = await command(life.clock, "aggregator", "export", export, "--home", life.home)
    watch.note_command("exported", written)
    audited = await command(life.clock, "aggregator", "audit", export)
    watch.note_command("audited", audited)
    sent = read_parts(life.made, "digests", life.parts)
    lost, strange, doubled = compared(sent, _transcribed(export, life.manifest))
    return Outcome(
        members=life.members,
        stages=tuple(watch.stages),
        words=life.words,
        downloaded=downloaded,
        included=included,
        lost=lost,
        strange=strange - life.real,
        doubled=doubled,
        audit=audited.said,
    )


def _transcribed(export: Path, manifest: Manifest) -> Iterator[bytes]:
    """The digest of each packet that an export has."""
    study = manifest.study_id
    heads = parse_chain((export / "heads").read_bytes(), manifest.aggregator_key, study)
    for one in (signed.head for signed in heads if signed.head.kind == "transcript"):
        for file in (export / "contents" / str(one.number)).iterdir():
            for packet in parse_transcript(file.read_bytes(), study)[1]:
                yield sha256(labels.PACKET_DIGEST, packet)


async def measure(options: argparse.Namespace) -> Outcome:
    """In the folder that is to be kept, or in one that goes."""
    asked = options.members, options.peers, options.processes
    if options.keep is not None:
        options.keep.mkdir(parents=True)
        return await live(options.keep, *asked)
    with tempfile.TemporaryDirectory() as folder:
        return await live(Path(folder), *asked)


def main() -> None:
    """Measure and publish. Ends with 1 where anything is lost, doubled, not audited or too large."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=10_000)
    parser.add_argument("--peers", type=int, default=3, help="how many of them are real peers")
    parser.add_argument("--processes", type=int, default=1, help="the aggregator's worker processes")
    parser.add_argument("--keep", type=Path, help="a new folder for homes, packets and export")
    outcome = asyncio.run(measure(parser.parse_args()))
    about: Figure = {
        "members": outcome.members,
        "bytes_of_each_real_peer": ", ".join(map(str, outcome.downloaded)),
        "peers_that_found_their_packet": outcome.included,
        "answers": "; ".join(f"{what}: {dict(words)}" for what, words in outcome.words.items()),
        "lost": outcome.lost,
        "doubled": outcome.doubled,
        "peak_mib": round(outcome.peak),
        "audit": str(outcome.audit),
        "cpu_s": round(sum(stage.serving + stage.driving for stage in outcome.stages), 1),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
    }
    publish("life", [stage.row(outcome.members) for stage in outcome.stages], about)
    raise SystemExit(0 if outcome.ok else 1)


if __name__ == "__main__":
    main()
