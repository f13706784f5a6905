"""Notifications: switched on and off by command, and really shown over a bus of its own by a desktop of its own."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anon.errors import Refused
from peer.desktop import notifications as notices
from peer.desktop.notifier import reminding
from peer.run.notices import (
    SENTENCES,
    Matter,
)
from peer.run.supervisor import Supervisor
from peer.store.home import PeerHome
from tests.support.fake_aggregator import DECLARED, FakeAggregator, peer
from tests.support.peer_command import Command

pytestmark = pytest.mark.process

def test_it_is_switched_on_and_off_and_off_at_first(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command("notify", "status", "--json").json == {"on": False}
    assert not command.home.exists()
    if notices.sys.platform == "linux":
        monkeypatch.setattr(notices, "find_spec", lambda name: None)
        monkeypatch.setenv("PATH", "/nowhere")
        done = command("notify", "on")
        assert done.code == 4 and "apt install libnotify-bin" in done.err and "pipx install" in done.err
        monkeypatch.undo()
    command("budget")
    PeerHome(command.home).write_settings(PeerHome(command.home).settings())
    assert command("notify", "on").code == 0 and command("notify", "status", "--json").json == {"on": True}
    assert command("notify", "off").code == 0 and command("notify", "status").out.strip() == "off"


# A desktop


@pytest.fixture
def bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A session bus of its own; its address is in the environment."""
    if shutil.which("dbus-daemon") is None:
        pytest.skip("dbus-daemon is missing")
    command = [
        "dbus-daemon",
        "--session",
        "--nofork",
        "--nopidfile",
        "--print-address",
        f"--address=unix:path={tmp_path}/bus",
    ]
    daemon = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert daemon.stdout is not None
        address = daemon.stdout.readline().strip()
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
        yield address
    finally:
        daemon.terminate()
        daemon.communicate()


ANSWERS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "Notify": ("u", (1,)),
    "GetServerInformation": ("ssss", ("test", "test", "1", "1.2")),
    "GetCapabilities": ("as", (["body"],)),
}


class Desktop(threading.Thread):
    """Takes notifications as a desktop does, and keeps them."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.taken: list[tuple[Any, ...]] = []
        self.ready = threading.Event()

    def run(self) -> None:
        jeepney, blocking = pytest.importorskip("jeepney"), pytest.importorskip("jeepney.io.blocking")
        with blocking.open_dbus_connection(bus="SESSION") as connection:
            asked = jeepney.message_bus.RequestName("org.freedesktop.Notifications")
            connection.send_and_get_reply(asked)
            self.ready.set()
            while True:
                try:
                    message = connection.receive()
                except (ConnectionError, OSError):
                    return
                if message.header.message_type is jeepney.MessageType.method_call:
                    self.taken.append(message.body)
                    member = message.header.fields[jeepney.HeaderFields.member]
                    connection.send(jeepney.new_method_return(message, *ANSWERS[member]))


@pytest.mark.parametrize("way", ["_by_dbus", "_by_notify_send"])
def test_a_desktop_takes_it_with_nothing_but_the_sentence(bus: str, way: str) -> None:
    pytest.importorskip("jeepney")
    if way == "_by_notify_send" and shutil.which("notify-send") is None:
        pytest.skip("notify-send is missing")
    desktop = Desktop()
    desktop.start()
    assert desktop.ready.wait(5)
    asyncio.run(getattr(notices, way)(SENTENCES[Matter.ANSWER]))
    shown = [body for body in desktop.taken if len(body) == 8]
    assert [(body[0], body[3], body[4]) for body in shown] == [("AnonML", "AnonML", "A study waits for your answer.")]


def test_no_desktop_is_one_clear_line(bus: str) -> None:
    pytest.importorskip("jeepney")
    with pytest.raises(Refused, match="log in to one"):  # the bus is there, and nobody on it shows notifications
        asyncio.run(notices._by_dbus("x"))
    os.environ["DBUS_SESSION_BUS_ADDRESS"] = "unix:path=/nowhere/bus"
    with pytest.raises(Refused, match="log in to one"):
        asyncio.run(notices._by_dbus("x"))


async def test_where_nothing_can_notify_the_peer_runs_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> Any:
        raise Refused("nothing here can notify")

    monkeypatch.setattr("peer.desktop.notifier.notices_here", none)
    aggregator = FakeAggregator.with_study(DECLARED)
    app = peer(tmp_path, aggregator, notifications=True)
    async with reminding(app, PeerHome(tmp_path), Supervisor(app.run), aggregator.clock, os.urandom):
        pass
