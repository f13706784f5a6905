"""Packets per second accepted end to end: a server process on this machine, real tokens, real HTTP, durable commits.

    python -m benchmarks.server [--first 500] [--processes 1]

Tokens are made beforehand. Each packet comes over a fresh loopback connection, as peers send them; the load comes from
this process, so server, workers and load share the machine's cores. The work grows from 1x to 4x. Prints a table and
writes benchmarks/out/server.json.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from attrs import evolve
from nacl.signing import SigningKey

from aggregator.app import AggregatorApp
from aggregator.study.live import LiveStudy
from anon.credential import (
    CommitmentSecrets,
    PublicKey,
    commit,
    finalize,
    present,
    pseudonym,
    signer_nym_entropy,
)
from anon.ldp import RawCategory
from anon.protocols.posts import sealed_enrolment, sealed_packet
from anon.protocols.sortition import draw, occasion_of, tag_context
from anon.wire.messages import (
    Enrolment,
    credential_header,
    sign_enrolment,
)
from anon.wire.packets import Packet
from anon.wire.replies import REPLY_BYTES, parse_reply
from benchmarks.closed_enrolment import members_of
from benchmarks.figures import Figure, publish
from examples.protocols import PROTOCOLS

GROWTH = (1, 2, 4)
CONNECTIONS = 64
SETTLE, ENROL = 20, 100
STUDY = f"""
version = 1
title = "Load"
purpose = "To measure the server."
contact = "nobody@example.org"
[tables]
person = ["sex", "income"]
[label]
name = "income"
description = "Income"
query = "SELECT income FROM person"
positive = ["high"]
negative = ["low"]
missing = "negative"
[[features]]
name = "sex"
kind = "categorical"
description = "Sex"
query = "SELECT sex FROM person"
categories = ["Female", "Male"]
missing = "Male"
[design]
kind = "one-packet"
epsilon = 2.0
[schedule]
enrol = "{ENROL}s"
settle = "{SETTLE}s"
collect = "1h"
[cohort]
minimum = 2
admission = "open"
"""


class Member:
    """One enrolled key with its secrets."""

    def __init__(self) -> None:
        self.key = SigningKey(os.urandom(32))
        self.contribution = os.urandom(32)
        self.secrets: CommitmentSecrets = commit(1, os.urandom)

    def enrolment(self, live: LiveStudy) -> bytes:
        """Sealed."""
        proof = self.secrets.commitment_with_proof
        one = Enrolment(live.study, bytes(self.key.verify_key), self.contribution, proof, b"")
        return sealed_enrolment(live.manifest, sign_enrolment(one, self.key))


async def prepare(home: Path, count: int) -> tuple[list[bytes], dict[str, float], str]:
    """Enrol `count` members, close, issue, and make one sealed packet each, on a clock that ends at the real time."""
    now = [time.time() - ENROL - SETTLE - 1]
    seconds: dict[str, float] = {}
    async with AggregatorApp(home, lambda: now[0], os.urandom, processes=1, protocols=PROTOCOLS) as app:
        manifest = await app.create_study(PROTOCOLS.proposal(STUDY))
        live = app.study(manifest.study_id)
        members = [Member() for _ in range(count)]
        posts = [member.enrolment(live) for member in members]
        start = time.perf_counter()
        words = await asyncio.gather(*(live.enrol(post) for post in posts))
        seconds["enrol"] = time.perf_counter() - start
        assert set(words) == {"accepted"}, set(words)
        now[0] = manifest.timetable.enrol_closes
        start = time.perf_counter()
        await app.tick()
        seconds["issue"] = time.perf_counter() - start
        packets = await _packets(live, members)
        return packets, seconds, live.study.hex()


async def _packets(live: LiveStudy, members: list[Member]) -> list[bytes]:
    signatures = {entry.key: signature for entry, signature in await members_of(live)}
    assert live.packet_intake.issued is not None
    header = credential_header(live.study, live.packet_intake.issued.roster_digest)
    seed, context = live.packet_intake.issued.seed, tag_context(live.manifest, 0)
    packets = []
    for member in members:
        key = bytes(member.key.verify_key)
        entropy = signer_nym_entropy(seed, key)
        credential = finalize(
            PublicKey(live.manifest.credential_key), header, signatures[key], entropy, member.secrets
        )
        survey = live.manifest.surveys[draw(live.manifest.slots[0], seed, pseudonym(credential, context))]
        report = bytes(survey.build().perturb(RawCategory(0, survey.m), os.urandom))
        packet = Packet(occasion_of(live.manifest, 0), survey.survey, report, (), b"")
        token = present(credential, context, packet.presentation_header(), os.urandom)
        packets.append(sealed_packet(live.manifest, evolve(packet, token=token)).ciphertext)
    return packets


async def post(port: int, path: str, body: bytes, host: str = "127.0.0.1") -> str:
    """One packet over one fresh connection; the answer's word."""
    reader, writer = await asyncio.open_connection(host, port)
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode() + body)
    answer = await reader.read()
    writer.close()
    return parse_reply(answer[-REPLY_BYTES:])


async def load(port: int, study: str, packets: list[bytes]) -> tuple[float, float]:
    """Seconds for all of these packets, and the median latency in milliseconds."""
    turns = asyncio.Semaphore(CONNECTIONS)
    latencies: list[float] = []

    async def one(packet: bytes) -> None:
        async with turns:
            start = time.perf_counter()
            word = await post(port, f"/v1/{study}/packets", packet)
            latencies.append(time.perf_counter() - start)
            assert word == "accepted", word

    start = time.perf_counter()
    await asyncio.gather(*(one(packet) for packet in packets))
    return time.perf_counter() - start, sorted(latencies)[len(latencies) // 2] * 1e3


def cpu_seconds(pid: int) -> float:
    """Processor time of a process and its children so far."""
    total = 0.0
    for one in [pid, *_descendants(pid)]:
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def _descendants(pid: int) -> list[int]:
    found = [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]
    return found + [deeper for child in found for deeper in _descendants(child)]


async def serve(home: Path, processes: int) -> None:
    """The server process's part."""
    async with AggregatorApp(home, processes=processes, protocols=PROTOCOLS) as app:
        with suppress(asyncio.CancelledError):
            await app.serve("127.0.0.1", 0, lambda port: print(port, flush=True))


async def measure(first: int, processes: int) -> None:
    """Prepare, serve, load, publish."""
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch) / "home"
        total = first * sum(GROWTH)
        warm_up = 64
        packets, seconds, study = await prepare(home, total + warm_up)
        command = [sys.executable, "-m", "benchmarks.server", "--serve", str(home), "--processes", str(processes)]
        server = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        try:
            assert server.stdout is not None
            port = int(await server.stdout.readline())
            await _until_open(port, study, packets[0])
            await load(port, study, packets[:warm_up])
            rows, start = [], warm_up
            for growth in GROWTH:
                rows.append(await _row(server.pid, port, study, packets[start : start + growth * first], growth))
                start += growth * first
        finally:
            server.send_signal(signal.SIGINT)
            await server.wait()
    about: Figure = {
        "cores": os.cpu_count(),
        "worker_processes": processes,
        "connections_at_once": CONNECTIONS,
        "enrol_ms_each": round(seconds["enrol"] / (total + warm_up) * 1e3, 3),
        "issue_ms_each": round(seconds["issue"] / (total + warm_up) * 1e3, 3),
    }
    publish("server", rows, about)


async def _until_open(port: int, study: str, packet: bytes) -> None:
    for _ in range(100):
        if await post(port, f"/v1/{study}/packets", packet) == "accepted":
            return
        await asyncio.sleep(0.2)


async def _row(pid: int, port: int, study: str, packets: list[bytes], growth: int) -> Figure:
    before = cpu_seconds(pid)
    seconds, latency = await load(port, study, packets)
    cpu = cpu_seconds(pid) - before
    return {
        "work": f"{growth}x",
        "packets": len(packets),
        "seconds": round(seconds, 3),
        "packets_per_second": round(len(packets) / seconds, 1),
        "server_cpu_ms_each": round(cpu / len(packets) * 1e3, 3),
        "median_latency_ms": round(latency, 1),
    }


def main() -> None:
    """Measure; or, as the process that is measured, serve."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=500, help="packets of the first round")
    parser.add_argument("--processes", type=int, default=1, help="worker processes of the server")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options.serve, options.processes))
    else:
        asyncio.run(measure(options.first, options.processes))


if __name__ == "__main__":
    main()
