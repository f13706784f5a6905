"""`anonml testnet up|status|down` as people use it."""

from __future__ import annotations

import json
import os
import signal
import time
import uuid
from contextlib import suppress
from pathlib import Path

import pytest

from anon.kit.testnet.background import stop
from anon.kit.testnet.state import NetworkState
from anon.route import SocksRoute
from anon.route.tor import TorProcess, torrc_of_client
from anon.route.tor.torrc import checked_extra
from tests.tor.testnet_trial import Trial, marked, testnet, try_once

pytestmark = pytest.mark.tor


def fit(trial: Trial) -> bool:
    """True if the trial keeps the command's promises: seconds, bytes of memory, and nothing left behind."""
    return trial.seconds < 45 and trial.most < 250e6 and not trial.left and trial.gone < 2


def test_it_stands_quickly_and_a_killed_owner_leaves_nothing(tmp_path: Path) -> None:
    trial = try_once(tmp_path / "net", "SIGKILL of the owner")
    assert trial.processes == 7, "an owner, five relays, a client"
    assert fit(trial), trial
    state = NetworkState(tmp_path / "net")
    assert state.network.exists(), "a killed owner could not tidy up"
    assert stop(state) is None
    assert not state.network.exists()


async def test_up_serves_others_and_down_leaves_nothing(tmp_path: Path) -> None:
    """One network: its exports, what status says, a second `up`, and its end."""
    mark, folder = uuid.uuid4().hex, tmp_path / "net"
    try:
        up = testnet(mark, "up", "--folder", folder)
        assert up.returncode == 0, up.stderr
        (line,) = up.stdout.splitlines()
        torrc = line.removeprefix("export ANONML_TORRC=")
        status = json.loads(testnet("", "status", "--folder", folder, "--json").stdout)
        assert (status["running"], status["relays"], status["processes"]) == (True, 5, 7)
        assert 0 < status["pss"] <= status["rss"] < 250e6
        assert abs(status["since"] - time.time()) < 60
        second = testnet("", "up", "--folder", folder)
        assert (second.returncode, "already" in second.stderr) == (4, True)
        await _exchange(Path(torrc), tmp_path / "service", status["socks"])
        start = time.monotonic()
        down = testnet("", "down", "--folder", folder)
        assert down.returncode == 0, down.stderr
        assert (time.monotonic() - start < 2, marked(mark), list(folder.glob("net*"))) == (True, [], [])
        assert json.loads(testnet("", "status", "--folder", folder, "--json").stdout) == {"running": False}
        assert testnet("", "down", "--folder", folder).stdout == "none ran\n"
    finally:
        for pid in marked(mark):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


async def _exchange(torrc: Path, folder: Path, proxy: str) -> None:
    """A tor of somebody else joins by the exported lines and serves; the network's own client reaches it."""
    from anon.kit.testnet.probe import serving

    extra = checked_extra(torrc.read_text())
    tor = await TorProcess.start(torrc_of_client(folder / "data", extra), folder)
    try:
        await tor.bootstrap(30)
        host, _, port = proxy.removeprefix("socks://").rpartition(":")
        async with serving(tor.controller) as service:
            await service.answered(SocksRoute(host, int(port), timeout=6), 30)
    finally:
        await tor.stop()
