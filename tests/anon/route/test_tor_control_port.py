"""A real tor is spoken to over a port where there are no unix sockets, and only by who knows its cookie."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from anon.errors import Refused
from anon.route.tor import TorProcess
from anon.route.tor.control import Controller

pytestmark = pytest.mark.tor


async def test_tor_obeys_over_a_port_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(asyncio, "open_unix_connection")
    folder = tmp_path / "tor folder"
    tor = await TorProcess.start("DisableNetwork 1\nSocksPort 127.0.0.1:auto\n", folder, 60)
    try:
        assert (folder / "control").read_text().startswith("PORT=127.0.0.1:")
        assert (await tor.controller.get_info("process/pid"))["process/pid"] == str(tor.pid)
        with pytest.raises(Refused):
            await Controller.connect(folder / "control", bytes(32))
    finally:
        await tor.stop()
    assert not (folder / "control").exists() and tor.alive is False
