"""The window of a console that is closed in the middle of a run, on a Windows desktop by Wine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.windows.desktop import Desktop, desktop, lacking
from tests.windows.wine import PYTHON, needs_windows, of_windows

pytestmark = [
    pytest.mark.process, pytest.mark.timeout(600), needs_windows, pytest.mark.skipif(bool(lacking()), reason=lacking()),
]  # fmt: skip
CLOSED = """
import ctypes, json, subprocess, sys, time
from ctypes import wintypes
from pathlib import Path
user = ctypes.WinDLL("user32")
home, own_console, close = Path(sys.argv[1]), 0x10, 0x10
child = subprocess.Popen([sys.executable, "-m", "anonml", "peer", "run", "--stay", "--home", home],
                         creationflags=own_console)
while not (home / "lock").exists() and child.poll() is None:
    time.sleep(0.1)
time.sleep(2)
found = []
@ctypes.WINFUNCTYPE(wintypes.BOOL, wintypes.HWND, wintypes.LPARAM)
def look(window, _):
    name = ctypes.create_unicode_buffer(200)
    user.GetClassNameW(window, name, 200)
    found.extend([window] if "Console" in name.value and user.IsWindowVisible(window) else [])
    return True
user.EnumWindows(look, 0)
ran = child.poll() is None
for window in found:
    user.PostMessageW(window, close, 0, 0)
try:
    child.wait(60)
finally:
    child.kill()
print(json.dumps({"ran": ran, "windows": len(found), "ended": child.returncode is not None}))
"""
"""Runs a peer in a console of its own, and closes its window as a user does."""


@pytest.fixture
def windows(tmp_path: Path) -> Iterator[Desktop]:
    with desktop(tmp_path / "desktop") as fresh:
        yield fresh


@pytest.mark.soak  # a disk C: of its own, and five programs
def test_a_console_whose_window_is_closed_leaves_a_whole_home(windows: Desktop, tmp_path: Path) -> None:
    home, person = of_windows(tmp_path / "home"), tmp_path / "person.csv"
    person.write_text("age,tired\n30,1\n")
    anonml = (PYTHON, "-m", "anonml", "peer")
    windows.run(*anonml, "import", of_windows(person), "--home", home)
    told = windows.run(PYTHON, "-c", CLOSED, home)
    assert json.loads(told.splitlines()[-1]) == {"ran": True, "windows": 1, "ended": True}
    windows.run(*anonml, "run", "--once", "--home", home)
    windows.run(*anonml, "backup", of_windows(tmp_path / "copy.zip"), "--home", home)
    assert "person" in windows.run(*anonml, "tables", "--home", home)
