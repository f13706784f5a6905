"""A stranger with a few circuits cannot hold many connections to an onion service: a circuit with too many streams is
closed.

The full size is in the soak. Attacks stay inside the private network, and are bounded in count and time.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest
from python_socks import ProxyType
from python_socks.async_.asyncio import Proxy

from anon.errors import Unreachable
from anon.kit.testnet import PrivateNetwork
from anon.route.tor import TorKeeper, TorRoute
from anon.serving.onion_service import STREAMS_OF_A_CIRCUIT
from anon.sharing import exchange
from tests.support.command_line import anonml
from tests.tor.test_teller_onion import _serving

pytestmark = pytest.mark.tor
HALF_A_HEAD = b"GET /v1/words HT"


async def held(socks: tuple[str, int], onion: str, circuit: str) -> asyncio.StreamReader:
    """A stream on the circuit of this name, on which half a head was sent. Raises `Exception` where there is none."""
    proxy = Proxy(ProxyType.SOCKS5, *socks, username=circuit, password=circuit, rdns=True)
    host, _, port = onion.rpartition(":")
    reader, writer = await asyncio.open_connection(
        sock=await proxy.connect(dest_host=host, dest_port=int(port), timeout=60)
    )
    writer.write(HALF_A_HEAD)
    reader.kept = writer  # type: ignore[attr-defined]
    return reader


async def attack(socks: tuple[str, int], onion: str, circuit: str, seconds: float) -> int:
    """Hold as many streams as stay open on one circuit, for so long; how many were begun."""
    begun, ends, open_ones = 0, time.monotonic() + seconds, []
    while time.monotonic() < ends:
        with suppress(Exception):
            open_ones.append(await held(socks, onion, circuit))
        begun += 1
        await asyncio.sleep(0.2)
    return begun


@pytest.mark.parametrize(("circuits", "posts"), [(2, 10), pytest.param(10, 200, marks=pytest.mark.soak)])
async def test_few_circuits_keep_nobody_out(
    tmp_path: Path, through_tor: PrivateNetwork, monkeypatch: pytest.MonkeyPatch, circuits: int, posts: int
) -> None:
    """As peers do, each honest exchange is tried up to four times, each time on a circuit of its own."""
    monkeypatch.setenv("ANONML_TORRC", str(through_tor.torrc_file))
    await anonml("teller", "init", "--name", "Ann", "--home", tmp_path / "home")
    process, onion = await _serving(tmp_path / "home")
    try:
        async with TorKeeper(tmp_path / "mallory") as mallory, TorKeeper(tmp_path / "honest") as keeper:
            socks, route, at_once = await mallory.socks(), TorRoute(keeper, timeout=60), asyncio.Semaphore(20)
            streams = [await held(socks, onion, "one") for _ in range(STREAMS_OF_A_CIRCUIT)]
            with suppress(Exception):
                await held(socks, onion, "one")
            for stream in streams:
                with suppress(ConnectionError):
                    assert await asyncio.wait_for(stream.read(), 30) == b"", "the whole circuit is closed"
            attacks = [asyncio.create_task(attack(socks, onion, str(number), posts)) for number in range(circuits)]

            async def got() -> bool:
                for _ in range(4):
                    with suppress(Unreachable):
                        async with at_once:
                            return (await route.get(onion, exchange.WORDS_PATH, exchange.SHORT)).status == 200
                return False

            assert await asyncio.gather(*(got() for _ in range(posts))) == [True] * posts
            assert sum(await asyncio.gather(*attacks)) > circuits
    finally:
        os.kill(process.pid, signal.SIGTERM)
        await asyncio.wait_for(process.wait(), 60)
