"""Pairing through a real (private) Tor network: who has a key gets in, who has none finds nothing, who is revoked is
out."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from aiohttp_socks import ProxyConnector

from anon.kit.testnet import PrivateNetwork
from anon.route.tor import TorProcess, torrc_of_client
from peer.pairing.service import TIME_OVER, Pairing, PairingOffer
from peer.pairing.state import folder_of
from peer.store.home import PeerHome
from tests.support.clock import Clock
from tests.support.fake_aggregator import DECLARED, FakeAggregator, peer
from tests.support.visiting import Visited

pytestmark = pytest.mark.tor
ROOT = Path(__file__).resolve().parents[3]
NO_KEY, WRONG_KEY = "0XF4", "0XF5"
"""Tor's extended errors (proposal 304): client authorization is missing; is not one that the service's description is
encrypted to."""


@asynccontextmanager
async def client(network: PrivateNetwork, folder: Path, auth_private: str = "") -> AsyncIterator[tuple[str, int]]:
    """A phone's tor, with the file that pairing prints for it or with none; where it listens for a browser."""
    keys = folder / "keys"
    keys.mkdir(mode=0o700, parents=True)
    if auth_private:
        (keys / "phone.auth_private").write_text(auth_private + "\n")
    tor = await TorProcess.start(
        torrc_of_client(folder / "data", [*network.lines, f"ClientOnionAuthDir {keys}"]), folder
    )
    try:
        await tor.bootstrap(30)
        yield await tor.socks()
    finally:
        await tor.stop()


@asynccontextmanager
async def browser(socks: tuple[str, int], host: str, **known: Any) -> AsyncIterator[Visited]:
    """A browser of that phone; each has circuits of its own."""
    password = secrets.token_hex(8)
    connector = ProxyConnector(host=socks[0], port=socks[1], username=password, password=password, rdns=True)
    timeout = aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.CookieJar(), timeout=timeout) as session:
        server = SimpleNamespace(address=f"http://{host}")
        yield Visited(server, known.get("peer"), known.get("aggregator"), known.get("home"), session)


async def _refused(socks: tuple[str, int], link: str) -> str:
    """The error of a browser without the key that it needs to learn where the onion service is."""
    async with browser(socks, "") as one:
        with pytest.raises(Exception) as caught:
            await one.get(link)
    return str(caught.value)


async def _wait(done: Any, seconds: float = 20) -> None:
    until = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < until
        await asyncio.sleep(0.05)


async def test_a_phone_with_its_key_comes_in_and_nobody_else(
    private_tor: PrivateNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANONML_TORRC", str(private_tor.torrc_file))
    aggregator = FakeAggregator.with_study(DECLARED, Clock())
    app, home = peer(tmp_path / "home", aggregator), PeerHome(tmp_path / "home")
    app.waiting[aggregator.study] = aggregator.invite
    offered: asyncio.Future[Sequence[PairingOffer]] = asyncio.get_running_loop().create_future()
    pairing = Pairing(app, home, ("phone", "tablet"), 900, offered.set_result, now=aggregator.clock)
    running = asyncio.create_task(pairing.run(asyncio.Event()))
    folder = folder_of(home)
    async with AsyncExitStack() as stack:
        stack.callback(app.close)
        done, _ = await asyncio.wait({running, offered}, timeout=60, return_when=asyncio.FIRST_COMPLETED)
        assert offered in done, running
        phone, tablet = offered.result()
        parts = [client(private_tor, tmp_path / name, line) for name, line in [
            ("p", phone.phone.key.file_line(phone.host)), ("t", tablet.phone.key.file_line(tablet.host)), ("n", ""),
        ]]
        with_key, with_other, without = await asyncio.gather(*map(stack.enter_async_context, parts))

        assert NO_KEY in (await _refused(without, phone.link)).upper()
        assert folder.state().phones[0].entered is None, "a link that never arrived is not used up"

        known = {"peer": app, "aggregator": aggregator, "home": home}
        page = await stack.enter_async_context(browser(with_key, phone.host, **known))
        assert "Waiting for your answer" in (await page.get(phone.link)).words, (
            "what was put off can be read on the phone"
        )
        preview = await page.upload("sleep.csv", b"age,cups,tired\n41,many,1\n")
        action = preview.url.removeprefix(page.server.address)
        imported = await page.post(action, preview.form(action) | {"answer": "import", "table": "person"})
        assert "Imported: 1 row into “person”" in imported.words, imported.words
        await page.post("/pause", (await page.get("/data")).form("/data/upload") | {"seconds": "3600"})
        assert app.paused_until() is not None
        assert (await page.get(phone.link)).status == 403
        await _wait(lambda: folder.state().phones[0].entered is not None)

        async with browser(with_other, tablet.host, **known) as early:
            assert (await early.get("/")).status == 401, "each phone's key opens, its link alone lets in"

        folder.wish_revoked(1)
        await _wait(lambda: folder.state().phones[0].revoked)
        with suppress(aiohttp.ClientError):
            assert (await page.get("/")).status == 401
        assert WRONG_KEY in (await _refused(with_key, phone.link)).upper(), "also a phone that remembers where it was"

        other = await stack.enter_async_context(browser(with_other, tablet.host, **known))
        assert (await other.get(tablet.link)).status == 200, "the others keep address, key and link"

        aggregator.clock.seconds += 901
        assert await asyncio.wait_for(running, 20) == TIME_OVER
        assert not folder.on() and not (folder.path / "sock").exists()
        with pytest.raises(Exception):  # noqa: B017
            await asyncio.wait_for(other.get("/"), 10)
        assert not list((folder.path / "incoming").glob("*/*"))


def _program(home: Path, *words: str, **more: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "anonml", "peer", "pair", "--home", str(home), *words]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def _said(home: Path, *words: str) -> tuple[int, str]:
    process = _program(home, *words)
    out, err = process.communicate(timeout=60)
    return process.returncode, out + err


def _children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_the_command_shows_lists_revokes_and_leaves_nothing(private_tor: PrivateNetwork, tmp_path: Path) -> None:
    """Once ended by the last revocation, once by being killed."""
    home, environment = tmp_path / "home", {**os.environ, "ANONML_TORRC": str(private_tor.torrc_file)}
    first = _program(home, "--json", "--name", "my phone", env=environment)
    try:
        [offer] = json.loads(first.stdout.readline())["phones"]
        assert offer["link"].startswith(f"http://{offer['host']}/enter?token=") and len(offer["key"]) == 52
        assert "my phone: its link was not used" in _said(home, "--list")[1]
        stored = b"".join(one.read_bytes() for one in home.rglob("*") if one.is_file())
        secret = [offer["host"][:56], offer["key"], offer["link"].rpartition("=")[2]]
        assert not [one for one in secret if one.encode() in stored]
        assert "revoked: my phone" in _said(home, "--revoke", "MY PHONE")[1]
        _out, err = first.communicate(timeout=30)
        assert first.returncode == 0 and "every phone is revoked" in err, err
    finally:
        first.kill()
        first.communicate()
    second = _program(home, "--json", env=environment)
    try:
        [again] = json.loads(second.stdout.readline())["phones"]
        assert again["host"] != offer["host"] and again["key"] != offer["key"]
        tors = _children(second.pid)
        second.send_signal(signal.SIGKILL)
        second.communicate(timeout=10)
        until = time.monotonic() + 5
        while any(Path(f"/proc/{one}").exists() for one in tors):
            assert time.monotonic() < until, "tor outlived its owner"
            time.sleep(0.05)
        assert tors and "pairing is off" in _said(home, "--list")[1]
    finally:
        second.kill()
        second.communicate()
