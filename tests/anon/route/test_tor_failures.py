"""Starts of a real tor that cannot succeed: each ends in its right reason, within its time limit, leaving nothing
behind."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from anon.errors import Refused, Unreachable
from anon.route.tor import TorProcess, torrc_of_client

ROOT = Path(__file__).resolve().parents[3]
CLOSED = ("UseBridges 1", "Bridge 127.0.0.1:1")
NOWHERE = (f"DirAuthority none orport=1 v3ident={'A' * 40} 127.0.0.1:1 {'B' * 40}",)


async def failure(folder: Path, extra: tuple[str, ...], seconds: float) -> tuple[str, float]:
    """The message of the failed start, and the seconds until it came."""
    began = time.monotonic()
    tor = None
    try:
        tor = await TorProcess.start(torrc_of_client(folder, extra), folder)
        await tor.bootstrap(seconds)
    except Unreachable as error:
        return str(error), time.monotonic() - began
    finally:
        if tor is not None:
            await tor.stop()
    raise AssertionError("it started")


@pytest.mark.tor
@pytest.mark.parametrize(
    ("extra", "reason", "said"),
    [
        (("UseBridges 1",), "bad-torrc", "you must specify at least one bridge"),
        (("UseBridges 7",), "bad-torrc", "UseBridges"),
        (("Nonsense 3",), "bad-torrc", "Unknown option 'Nonsense'"),
        (("Bridge nowhere:x",), "bad-torrc", "Bridge"),
    ],
)
async def test_a_bad_line_is_quoted_at_once(tmp_path: Path, extra: tuple[str, ...], reason: str, said: str) -> None:
    text, seconds = await failure(tmp_path / "tor", extra, 30)
    assert reason in text
    assert said in text
    assert "ANONML_TORRC" in text
    assert seconds < 5


@pytest.mark.tor
@pytest.mark.soak
async def test_a_bridge_that_refuses(tmp_path: Path) -> None:
    text, seconds = await failure(tmp_path / "tor", CLOSED, 30)
    assert "bridge-refused while connecting" in text
    assert "another bridge" in text
    assert seconds < 20


@pytest.mark.tor
async def test_a_time_limit_is_kept_and_the_reason_is_the_one_known_by_then(tmp_path: Path) -> None:
    text, seconds = await failure(tmp_path / "tor", CLOSED, 3)
    assert "bridge-refused" in text
    assert seconds < 5


@pytest.mark.tor
async def test_authorities_that_refuse_are_not_called_a_missing_network(tmp_path: Path) -> None:
    text, _ = await failure(tmp_path / "tor", NOWHERE, 3)
    assert "no-network" not in text


@pytest.mark.tor
async def test_a_transport_that_is_not_there(tmp_path: Path) -> None:
    extra = ("UseBridges 1", "Bridge obfs4 127.0.0.1:1", "ClientTransportPlugin obfs4 exec /nonexistent/obfs4proxy")
    text, seconds = await failure(tmp_path / "tor", extra, 30)
    assert "no-transport" in text
    assert "ClientTransportPlugin" in text
    assert seconds < 15


@pytest.mark.tor
@pytest.mark.soak
async def test_a_folder_in_use(tmp_path: Path) -> None:
    folder = tmp_path / "tor"
    first = await TorProcess.start(torrc_of_client(folder / "data", ("DisableNetwork 1",)), folder)
    try:
        text, seconds = await failure(folder / "data", ("DisableNetwork 1",), 30)
        assert "folder-in-use" in text
        assert "end the other tor" in text
        assert seconds < 15
        assert first.alive
    finally:
        await first.stop()


@pytest.mark.tor
async def test_a_tor_killed_while_it_starts(tmp_path: Path) -> None:
    folder = tmp_path / "tor"
    tor = await TorProcess.start(torrc_of_client(folder, NOWHERE), folder)
    try:
        bootstrapping = asyncio.create_task(tor.bootstrap(30))
        await asyncio.sleep(0.3)
        os.kill(tor.pid, signal.SIGKILL)
        began = time.monotonic()
        with pytest.raises(Unreachable, match="tor-ended"):
            await bootstrapping
        assert time.monotonic() - began < 5
    finally:
        await tor.stop()


@pytest.mark.slow
async def test_no_tor_and_what_is_not_tor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("true", "false", "cat"):
        program = shutil.which(name)
        assert program is not None
        with pytest.raises(Unreachable):
            await TorProcess.start("", tmp_path / "tor", 1, program=Path(program))
    monkeypatch.setenv("ANONML_TOR", str(tmp_path / "none"))
    with pytest.raises(Refused, match="ANONML_TOR"):
        await TorProcess.start("", tmp_path / "tor", 1)
    text = tmp_path / "text"
    text.write_bytes(b"\x7fELFnot")
    text.chmod(0o755)
    with pytest.raises(Refused, match="no-tor"):
        await TorProcess.start("", tmp_path / "tor", 1, program=text)
    assert list((tmp_path / "tor").iterdir()) == []


NO_NETWORK = """
import asyncio, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.anon.route.test_tor_failures import failure
print(*asyncio.run(failure(Path(sys.argv[1]), (), 40)), sep="|")
"""


def _namespaces() -> bool:
    unshare = shutil.which("unshare")
    return (
        unshare is not None
        and subprocess.run([unshare, "-rn", "true"], check=False, capture_output=True).returncode == 0
    )


@pytest.mark.tor
@pytest.mark.skipif(not _namespaces(), reason="this machine allows no network namespaces")
def test_a_machine_without_a_network(tmp_path: Path) -> None:
    """The true authorities, from a namespace in which there is no interface."""
    command = ["unshare", "-rn", sys.executable, "-c", NO_NETWORK, str(tmp_path / "tor"), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT, check=True)
    text, seconds = done.stdout.strip().split("|")
    assert "no-network while starting" in text
    assert "whether this machine is online" in text
    assert float(seconds) < 30
