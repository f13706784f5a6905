"""macOS' ways in this system's place: scripts stand for its programs. Nothing here ran on a Mac."""

from __future__ import annotations

import os
import plistlib
import re
import sys
import time
from pathlib import Path

import pytest

from anon.errors import Refused
from anon.machine.clock import elapsed_seconds
from anon.queries import sandbox
from benchmarks import rooms
from peer.desktop.notifications import notices_here
from tests.support.peer_command import Command

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="stands in for a system that is not here"),
]

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the words that the programs were asked, one a line. `osascript` fails while a file `mute` is beside
    it."""
    file, programs = tmp_path / "asked", tmp_path / "programs"
    programs.mkdir()
    for name in ("launchctl", "osascript"):
        (programs / name).write_text(
            f"#!/bin/sh\nprintf '%s\\n' {name} \"$@\" >> '{file}'\ntest ! -e '{tmp_path}/mute'\n"
        )
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(sys, "platform", "darwin")
    return file


def test_an_agent_is_loaded_shown_and_unloaded_by_the_command(command: Command, user: Path, asked: Path) -> None:
    agent = user / "Library/LaunchAgents/org.anonml.peer.plist"
    assert command("autostart", "on", "--as-root").code == 0
    words = plistlib.loads(agent.read_bytes())["ProgramArguments"]
    assert words[-2:] == ["--home", str(command.home)] and "--stay" in words
    assert asked.read_text().splitlines() == ["launchctl", "bootstrap", f"gui/{os.getuid()}", str(agent)]
    assert command("autostart", "status", "--json").json["on"] is True
    assert command("autostart", "off").code == 0 and not agent.exists()
    assert asked.read_text().splitlines()[4:] == ["launchctl", "bootout", f"gui/{os.getuid()}/org.anonml.peer"]


async def test_a_notification_is_one_text_of_one_script(asked: Path, tmp_path: Path) -> None:
    await notices_here()('a "quoted" \\ sentence')
    assert asked.read_text().splitlines() == [
        "osascript", "-e", 'display notification "a \\"quoted\\" \\\\ sentence" with title "AnonML"',
    ]
    (tmp_path / "mute").touch()
    with pytest.raises(Refused, match="log in to one"):
        await notices_here()("x")


def test_memory_and_time_are_counted_as_a_mac_tells_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No /proc, bytes where Linux tells kilobytes, and a monotonic clock that counts sleep under its own name."""
    monkeypatch.setattr(sandbox, "_STATM", tmp_path / "none")
    kilobytes = sandbox._memory()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert 0 < sandbox._memory() <= 2 * kilobytes / 1024
    monkeypatch.delattr("time.CLOCK_BOOTTIME")
    monkeypatch.setattr("time.clock_gettime", {time.CLOCK_MONOTONIC: 7.0}.__getitem__)
    assert elapsed_seconds() == 7.0


def test_macos_has_one_room_that_says_so() -> None:
    """Beside it a system is asked for by name in few places, each of which these tests or those of Tor live through."""
    text = (ROOT / "peer/desktop/login/macos.py").read_text("utf-8")
    assert text.startswith('"""macOS, on which nothing here ever ran')
    naming = {
        name
        for name, path in rooms.modules().items()
        if re.search("darwin|osascript|launchctl", path.read_text("utf-8"))
    }
    assert naming == {
        "anon.machine.clock", "anon.queries.sandbox", "anon.route.tor.program",
        "peer.desktop.login.macos", "peer.desktop.login.places", "peer.desktop.notifications",
    }
