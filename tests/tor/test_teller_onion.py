"""A teller behind its own onion service, in a private Tor network: asked through Tor, and at the same address again."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from anon.crypto.nacl import SigningKey
from anon.kit.testnet import PrivateNetwork
from anon.route.tor import TorKeeper, TorRoute
from anon.sharing import exchange
from tests.support.command_line import anonml, start

pytestmark = pytest.mark.tor
STARTING = 180


async def _serving(home: Path) -> tuple[asyncio.subprocess.Process, str]:
    """A process, once its own onion has answered it."""
    with home.with_suffix(".log").open("ab") as log:
        process = await start("teller", "serve", "--home", home, "--json", log=log)
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), STARTING)
    assert line, home.with_suffix(".log").read_text()
    return process, json.loads(line)["address"]


async def test_a_teller_is_asked_through_tor(
    tmp_path: Path, through_tor: PrivateNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANONML_TORRC", str(through_tor.torrc_file))
    home = tmp_path / "home"
    made = await anonml("teller", "init", "--name", "Ann", "--home", home)
    for end in (signal.SIGKILL, signal.SIGTERM):
        process, address = await _serving(home)
        try:
            assert address == made["address"]
            async with TorKeeper(tmp_path / f"tor-{end}") as keeper:
                route = TorRoute(keeper, timeout=60)
                said = await route.get(address, exchange.WORDS_PATH, exchange.SHORT)
                assert exchange.read_words(said.body) == ("Ann", made["words"])
                asked = exchange.ask_entry("Ann", address)
                reply = await route.post(address, asked.path, asked.body(SigningKey.generate(), b""), asked.most_reply)
                assert asked.answered(reply.status, reply.body).address == address
        finally:
            os.kill(process.pid, end)
            assert await asyncio.wait_for(process.wait(), 60) == (0 if end == signal.SIGTERM else -end)
    assert not (home / "onion.sock").exists()
