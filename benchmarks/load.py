"""A load test that anyone can repeat: packets with real tokens, sent at given rates to a server on loopback.

    python -m benchmarks.load [--rate 100 200 400] [--packets 1000] [--processes 1] [--kept FOLDER]

The load is open: each packet has its time, drawn beforehand (Poisson, a fixed seed), and leaves then, however slow the
server is. A latency counts from that time. Each comes over a fresh connection, as peers send. Every tenth is sent
once more after its answer, as a peer does that lost it.

Members are enrolled and packets made beforehand, in all cores, and kept in a folder for later runs. A run works on a
copy. It sends `--packets` for each rate, each packet once, and ends by itself.

A rate is not met where clients and server share the cores and these are full; `seconds` says how long it took. `lost`:
packets that were answered "accepted" and are not in the database. `doubled`: rows beyond one for each of them. Prints a
table and writes benchmarks/out/load.json.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from multiprocessing import get_context
from pathlib import Path

import cbor2
from attrs import frozen
from nacl.signing import SigningKey

from aggregator.app import AggregatorApp
from anon.credential import CommitmentSecrets, PublicKey, commit, finalize, pseudonym, signer_nym_entropy
from anon.ldp import RawCategory
from anon.protocols.outgoing import SurveyAnswer
from anon.protocols.posts import sealed_enrolment
from anon.protocols.sortition import draw, tag_context
from anon.wire.messages import Enrolment, credential_header, sign_enrolment
from benchmarks.closed_enrolment import members_of
from benchmarks.figures import Figure, publish
from benchmarks.server import ENROL, SETTLE, STUDY, cpu_seconds, post
from examples.protocols import PROTOCOLS
from peer.release import release

KEPT = Path(__file__).parent / "out" / "load"
WARM_UP = 64
MOST_OPEN = 2000
"""Connections at once. A packet whose turn comes beyond them counts as not sent: descriptors are bounded."""
AGAIN = 10
AT_ONCE = 250
SECONDS_FOR_AN_ANSWER = 60.0
LASTS = "60d"


@frozen
class Member:
    """One enrolled key with its secrets, and its packet's way: all that passes between processes."""

    key: bytes
    contribution: bytes
    secrets: CommitmentSecrets


@frozen
class Made:
    """A finished packet, and the digest by which the database knows it."""

    sealed: bytes
    digest: bytes


def enrolments(manifest_bytes: bytes, count: int) -> list[tuple[Member, bytes]]:
    """Fresh members with their sealed posts. Runs in a process of its own."""
    manifest, made = PROTOCOLS.manifest(manifest_bytes), []
    for _ in range(count):
        member = Member(os.urandom(32), os.urandom(32), commit(1, os.urandom))
        key = SigningKey(member.key)
        proof = member.secrets.commitment_with_proof
        one = Enrolment(manifest.study_id, bytes(key.verify_key), member.contribution, proof, b"")
        made.append((member, sealed_enrolment(manifest, sign_enrolment(one, key))))
    return made


def packets(
    manifest_bytes: bytes, header: bytes, seed: bytes, members: Sequence[tuple[Member, bytes]]
) -> list[tuple[bytes, bytes]]:
    """A packet of each member with the signature that it got, sealed, and its digest. Runs in a process of its own."""
    manifest, made = PROTOCOLS.manifest(manifest_bytes), []
    for member, signature in members:
        entropy = signer_nym_entropy(seed, bytes(SigningKey(member.key).verify_key))
        key = PublicKey(manifest.credential_key)
        credential = finalize(key, header, signature, entropy, member.secrets)
        survey = manifest.survey(draw(manifest.slots[0], seed, pseudonym(credential, tag_context(manifest, 0))))
        answer = SurveyAnswer(0, survey.survey, RawCategory(0, survey.m))
        released = release(manifest.study_id, manifest, answer, credential, os.urandom)
        made.append((released.sealed.ciphertext, released.digest))
    return made


async def prepare(folder: Path, count: int) -> None:
    """A home with a study whose window is open for two months, and a packet of each of its members."""
    shutil.rmtree(folder, ignore_errors=True)
    now = [time.time() - ENROL - SETTLE - 1]
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        loop, parts = asyncio.get_running_loop(), [min(AT_ONCE, count - done) for done in range(0, count, AT_ONCE)]
        home, cores = folder / "home", os.cpu_count() or 1
        async with AggregatorApp(home, lambda: now[0], os.urandom, processes=cores, protocols=PROTOCOLS) as app:
            proposal = PROTOCOLS.proposal(STUDY.replace('collect = "1h"', f'collect = "{LASTS}"'))
            manifest = await app.create_study(proposal)
            live, body = app.study(manifest.study_id), manifest.to_bytes()
            ways = await asyncio.gather(*(loop.run_in_executor(pool, enrolments, body, part) for part in parts))
            for way in ways:
                words = await asyncio.gather(*(live.enrol(sealed) for _, sealed in way))
                if set(words) != {"accepted"}:
                    raise RuntimeError(f"an enrolment was answered {set(words)}")
            now[0] = manifest.timetable.enrol_closes
            await app.tick()
            issued = live.packet_intake.issued
            if issued is None:
                raise RuntimeError("the roster was not closed")
            header = credential_header(live.study, issued.roster_digest)
            own = {entry.key: signature for entry, signature in await members_of(live)}
            holding = [[(one, own[bytes(SigningKey(one.key).verify_key)]) for one, _ in way] for way in ways]
            made = await asyncio.gather(
                *(loop.run_in_executor(pool, packets, body, header, issued.seed, part) for part in holding)
            )
    study = {"study": live.study, "closes": now[0] + 59 * 86400, "packets": list(chain.from_iterable(made))}
    (folder / "packets.cbor").write_bytes(cbor2.dumps(study))


def load_kept(folder: Path, count: int) -> tuple[str, list[Made]] | None:
    """The study and its packets, None if there are too few or its window is nearly over."""
    try:
        kept = cbor2.loads((folder / "packets.cbor").read_bytes())
    except OSError:
        return None
    if len(kept["packets"]) < count or kept["closes"] < time.time():
        return None
    return kept["study"].hex(), [Made(*one) for one in kept["packets"]]


@frozen
class Answered:
    """One rate's outcome: latencies in seconds, by packet words, and what came of the second sending."""

    latencies: list[float]
    accepted: list[bytes]
    words: Counter[str]
    again: Counter[str]
    seconds: float


async def offer(
    send: Callable[[bytes], asyncio.Future[str]], made: Sequence[Made], rate: float, seed: int
) -> Answered:
    """Each packet at its own time. `send` answers with a word."""
    drawn, at, open_now = random.Random(seed), 0.0, 0
    latencies: list[float] = []
    accepted: list[bytes] = []
    words: Counter[str] = Counter()
    again: Counter[str] = Counter()
    start = time.perf_counter()

    async def one(packet: Made, due: float, twice: bool) -> None:
        nonlocal open_now
        await asyncio.sleep(due - (time.perf_counter() - start))
        if open_now >= MOST_OPEN:
            words["not sent"] += 1
            return
        open_now += 1
        word = await _word(send(packet.sealed))
        latencies.append(time.perf_counter() - start - due)
        words[word] += 1
        if word == "accepted":
            accepted.append(packet.digest)
        if twice:
            again[await _word(send(packet.sealed))] += 1
        open_now -= 1

    tasks = []
    for number, packet in enumerate(made):
        at += drawn.expovariate(rate)
        tasks.append(asyncio.create_task(one(packet, at, number % AGAIN == 0)))
    await asyncio.gather(*tasks)
    return Answered(latencies, accepted, words, again, time.perf_counter() - start)


async def _word(answer: asyncio.Future[str]) -> str:
    try:
        return await asyncio.wait_for(answer, SECONDS_FOR_AN_ANSWER)
    except TimeoutError:
        return "no answer"
    except OSError as error:
        return type(error).__name__


def quantile(sorted_values: Sequence[float], share: float) -> float:
    """The value below which this share of the values lies; 0 for none."""
    return sorted_values[min(int(len(sorted_values) * share), len(sorted_values) - 1)] if sorted_values else 0.0


def peak_memory(pid: int) -> float:
    """The most MiB that the server's process and its workers held, each at its own peak."""
    lines = [Path(f"/proc/{one}/status").read_text().splitlines() for one in (pid, *children(pid))]
    return sum(int(line.split()[1]) for status in lines for line in status if line.startswith("VmHWM")) / 1024


def children(pid: int) -> list[int]:
    """The processes that this one started, and theirs."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    found = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    return found + [deeper for child in found for deeper in children(child)]


def missing_and_doubled(accepted: Sequence[bytes], stored: Sequence[bytes]) -> tuple[int, int]:
    """How many accepted packets are not stored, and how many rows there are beyond one for each stored packet."""
    return len(set(accepted) - set(stored)), len(stored) - len(set(stored))


async def measure(options: argparse.Namespace) -> list[Figure]:
    """One row for each rate."""
    count, folder = options.packets * len(options.rate) + WARM_UP, options.kept / "study"
    kept = load_kept(folder, count)
    if kept is None:
        start = time.perf_counter()
        await prepare(folder, count)
        print(f"{count} members and packets made in {time.perf_counter() - start:.0f} s")
        kept = load_kept(folder, count)
        if kept is None:
            raise RuntimeError("what was prepared cannot be read")
    study, made = kept
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch) / "home"
        shutil.copytree(folder / "home", home)
        command = [sys.executable, "-m", "benchmarks.server", "--serve", str(home), "--processes"]
        server = await asyncio.create_subprocess_exec(*command, str(options.processes), stdout=subprocess.PIPE)
        try:
            if server.stdout is None:
                raise RuntimeError("the server has no output")
            port = int(await server.stdout.readline())
            rows, accepted = await _rates(server.pid, port, study, made, options)
        finally:
            server.send_signal(signal.SIGINT)
            await server.wait()
        with sqlite3.connect(home / "aggregator.sqlite") as database:
            stored = [bytes(row[0]) for row in database.execute("SELECT digest FROM packets")]
    lost, doubled = missing_and_doubled(accepted, stored)
    rows[-1] |= {"lost": lost, "doubled": doubled}
    return rows


async def _rates(
    pid: int, port: int, study: str, made: list[Made], options: argparse.Namespace
) -> tuple[list[Figure], list[bytes]]:
    def send(packet: bytes) -> asyncio.Future[str]:
        return asyncio.ensure_future(post(port, f"/v1/{study}/packets", packet))

    warm = await offer(send, made[:WARM_UP], 100.0, 0)
    rows, accepted, start = [], list(warm.accepted), WARM_UP
    for rate in options.rate:
        before = cpu_seconds(pid)
        answered = await offer(send, made[start : start + options.packets], rate, start)
        cpu = cpu_seconds(pid) - before
        rows.append(row_of(rate, answered, cpu, peak_memory(pid)))
        accepted += answered.accepted
        start += options.packets
    return rows, accepted


def row_of(rate: float, answered: Answered, cpu: float, memory: float) -> Figure:
    """The table's row. Processor time is divided by the accepted packets; those sent again are in it."""
    ordered, taken = sorted(answered.latencies), len(answered.accepted)
    others = sum(answered.words.values()) - taken
    return {
        "offered_per_second": rate,
        "packets": sum(answered.words.values()),
        "accepted": taken,
        "other_answers": others,
        "again": sum(answered.again.values()),
        "again_accepted": answered.again["accepted"],
        "seconds": round(answered.seconds, 2),
        "accepted_per_second": round(taken / answered.seconds, 1),
        "p50_ms": round(quantile(ordered, 0.5) * 1e3, 1),
        "p95_ms": round(quantile(ordered, 0.95) * 1e3, 1),
        "p99_ms": round(quantile(ordered, 0.99) * 1e3, 1),
        "server_cpu_ms_each": round(cpu / max(taken, 1) * 1e3, 3),
        "memory_mib": round(memory, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, nargs="+", default=[100.0, 200.0, 400.0], help="packets offered a second")
    parser.add_argument("--packets", type=int, default=1000, help="packets for each rate")
    parser.add_argument("--processes", type=int, default=1, help="worker processes of the server")
    parser.add_argument("--kept", type=Path, default=KEPT, help="where members and packets are kept for later runs")
    options = parser.parse_args()
    rows = asyncio.run(measure(options))
    about: Figure = {"cores": os.cpu_count(), "worker_processes": options.processes}
    publish("load", rows, about)


if __name__ == "__main__":
    main()
