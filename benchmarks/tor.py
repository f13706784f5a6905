"""Packets through Tor: rate, latency and circuits over a private network, and what a peer needs for a 13-packet study.

    python -m benchmarks.tor [--first 24]

A private network of five relays on this machine; the real aggregator in a process of its own, as an onion service on a
tor of its own; real packets with real tokens, each sent by the real routes: `socks` through the network's client, `tor`
through a tor of the route's own. Every latency is from the call to the committed answer. Circuits are counted on the
sender's control port. The negative control sends over one shared keep-alive session, and has one circuit. All of it
shares the machine's cores. Prints two tables and writes benchmarks/out/tor.json.
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
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from aiohttp_socks import ProxyConnector, ProxyType
from attrs import frozen

from anon.errors import Refused, Unreachable
from anon.kit.testnet import PrivateNetwork
from anon.route import Route, SocksRoute
from anon.route.tor import Controller, Events, TorKeeper, TorProcess, TorRoute, find_tor, torrc_of_client
from anon.wire.replies import REPLY_BYTES, parse_reply
from benchmarks.figures import Figure, publish
from benchmarks.server import prepare
from benchmarks.tor_peer import peer_of_13_packets

CONCURRENCY = (1, 8, 32)
WARM_UP = 8
CONTROL = 20
"""Requests of the negative control: few enough to end before tor renews a circuit by itself."""

Post = Callable[[bytes], Awaitable[bytes]]


@frozen
class Target:
    """Where packets go: the onion address and the study's path."""

    onion: str
    path: str

    def by(self, route: Route) -> Post:
        """One packet over this route; the answer."""

        async def post(packet: bytes) -> bytes:
            return (await route.post(self.onion, self.path, packet, REPLY_BYTES)).body

        return post

    @asynccontextmanager
    async def by_one_session(self, host: str, port: int) -> AsyncIterator[Post]:
        """The negative control: what a careless client does."""
        connector = ProxyConnector(proxy_type=ProxyType.SOCKS5, host=host, port=port, rdns=True)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def post(packet: bytes) -> bytes:
                async with session.post(f"http://{self.onion}{self.path}", data=packet) as answer:
                    return await answer.read()

            yield post


class Circuits:
    """The distinct circuits over which streams were opened, by the control port's STREAM events."""

    def __init__(self, controller: Controller, events: Events) -> None:
        self._controller = controller
        self._events = events
        self._seen: set[str] = set()

    async def follow(self) -> None:
        """Until cancelled."""
        async for event in self._events:
            words, _ = event.arguments()
            if event.name == "STREAM" and words[1] == "SUCCEEDED":
                self._seen.add(words[2])

    async def counted(self) -> int:
        """How many until now; what was reported before this call is in."""
        await self._controller.get_info("version")
        await asyncio.sleep(0.1)
        return len(self._seen)


@asynccontextmanager
async def counting(controller: Controller) -> AsyncIterator[Circuits]:
    """The circuits of this block."""
    async with controller.watching("STREAM") as events:
        circuits = Circuits(controller, events)
        task = asyncio.create_task(circuits.follow())
        try:
            yield circuits
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def load(post: Post, packets: list[bytes], concurrency: int) -> tuple[float, list[float], int]:
    """Seconds for all, the latency of each that was accepted, and how many attempts failed and were repeated."""
    turns = asyncio.Semaphore(concurrency)
    latencies: list[float] = []
    failures = 0

    async def one(packet: bytes) -> None:
        nonlocal failures
        async with turns:
            while True:
                start = time.perf_counter()
                try:
                    word = parse_reply(await post(packet))
                except Unreachable:
                    failures += 1
                    continue
                latencies.append(time.perf_counter() - start)
                assert word == "accepted", word
                return

    start = time.perf_counter()
    await asyncio.gather(*(one(packet) for packet in packets))
    return time.perf_counter() - start, latencies, failures


async def row(name: str, post: Post, controller: Controller, packets: list[bytes], concurrency: int) -> Figure:
    """One line of the table."""
    async with counting(controller) as circuits:
        seconds, latencies, failures = await load(post, packets, concurrency)
        found = await circuits.counted()
    ordered = sorted(latencies)
    return {
        "route": name,
        "at_once": concurrency,
        "packets": len(packets),
        "seconds": round(seconds, 2),
        "packets_per_second": round(len(packets) / seconds, 2),
        "median_ms": round(ordered[len(ordered) // 2] * 1e3),
        "p95_ms": round(ordered[int(len(ordered) * 0.95)] * 1e3),
        "repeated": failures,
        "circuits": found,
    }


async def rows_of(
    network: PrivateNetwork, target: Target, packets: Iterator[bytes], first: int, scratch: Path
) -> list[Figure]:
    """Both routes at each concurrency, then the negative control."""
    rows: list[Figure] = []
    async with TorKeeper(scratch / "keeper", extra=lambda: network.lines) as keeper:
        tor, socks = TorRoute(keeper), SocksRoute(*network.socks)
        await load(target.by(tor), _take(packets, WARM_UP), 1)
        assert keeper.tor is not None
        await load(target.by(socks), _take(packets, WARM_UP), 1)
        ways: tuple[tuple[str, Route, Controller], ...] = (
            ("socks", socks, network.controller()),
            ("tor", tor, keeper.tor.controller),
        )
        for name, route, controller in ways:
            for concurrency in CONCURRENCY:
                some = _take(packets, _count(first, concurrency))
                rows.append(await row(name, target.by(route), controller, some, concurrency))
    async with target.by_one_session(*network.socks) as post:
        rows.append(await row("one session", post, network.controller(), _take(packets, CONTROL), 1))
    return rows


def _count(first: int, concurrency: int) -> int:
    return first * {1: 1, 8: 4, 32: 10}[concurrency]


def _take(packets: Iterator[bytes], count: int) -> list[bytes]:
    return [next(packets) for _ in range(count)]


@asynccontextmanager
async def serving(home: Path, scratch: Path, network: PrivateNetwork) -> AsyncIterator[str]:
    """The aggregator's process behind an onion service of a tor of its own; the onion address."""
    command = [sys.executable, "-m", "benchmarks.server", "--serve", str(home)]
    server = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        port = int(await server.stdout.readline())
        folder = scratch / "service"
        tor = await TorProcess.start(torrc_of_client(folder / "data", network.lines), folder)
        try:
            await tor.bootstrap(60)
            onion = await tor.controller.add_onion("NEW:ED25519-V3", [f"80,127.0.0.1:{port}"])
            yield f"{onion.service_id}.onion:80"
        finally:
            await tor.stop()
    finally:
        server.send_signal(signal.SIGINT)
        await server.wait()


async def measure(first: int) -> None:
    """Prepare, stand, serve, load, publish."""
    with tempfile.TemporaryDirectory(prefix="anonml-") as folder:
        scratch = Path(folder)
        total = 2 * WARM_UP + CONTROL + 2 * sum(_count(first, concurrency) for concurrency in CONCURRENCY)
        packets, _, study = await prepare(scratch / "home", total)
        async with PrivateNetwork(scratch / "net") as network:
            async with serving(scratch / "home", scratch, network) as onion:
                target = Target(onion, f"/v1/{study}/packets")
                rows = await rows_of(network, target, iter(packets), first, scratch)
            peer = await asyncio.to_thread(peer_of_13_packets, scratch / "study", network.torrc_file)
            ready: Figure = {"network_ready_seconds": round(network.seconds, 1)}
    publish("tor", rows, {"cores": os.cpu_count(), "packet_bytes": len(packets[0]), **ready, **peer})


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=24, help="packets at concurrency 1; four times at 8, ten at 32")
    first = parser.parse_args().first
    try:
        find_tor()
    except Refused as missing:
        print(f"packets through Tor are left out: {missing}")
        return
    asyncio.run(measure(first))


if __name__ == "__main__":
    main()
