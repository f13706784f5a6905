"""The zip for a Windows with nothing installed, as a student has it: unpacked on an empty disk C:, opened, walked.

A desktop of Wine's has no Python. `AnonML.exe` starts the one that lies beside it and opens the page, which Chromium
walks up to a packet that is found again in the published study.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

pytest.importorskip("selenium", reason="selenium is missing: install the extra `test`")

from anon.kit.testnet import PrivateNetwork
from anon.route.tor import TorKeeper
from peer.desktop.login import run_key
from tests.docs.newcomer_walk import COLUMNS
from tests.docs.walking import Steps, until
from tests.support.browsing import Browser, chromium
from tests.windows.course import MEMBERS, Course
from tests.windows.desktop import ICON, LONGEST, OUT, Desktop, cut, desktop, is_calm, lacking

pytestmark = [
    pytest.mark.process, pytest.mark.browser, pytest.mark.timeout(1800),
    pytest.mark.skipif(bool(lacking()), reason=lacking()),
]
ROOT = Path(__file__).resolve().parents[2]
MOST_ACTIONS = 10
MOST_BYTES = 60_000_000
WIDTH = 640
NEW, NEWER = "Neu für Änne 学生 😀", "Version 2"
"""Folders of the user's downloads."""
THROUGH_TOR = 20.0
"""How slow a study is: while members enrol, a manifest, a list and an answer come through a new circuit each."""
LINK = f"anonml://127.0.0.1:9/{'0' * 64}?key={'1' * 64}&code=a%20b"
RUN = r"HKCU\Software\Microsoft\Windows\CurrentVersion\Run"


@define
class Walk:
    """A student's way from the zip to a sent packet, and how long the page took to open."""

    steps: Steps = field(factory=Steps)
    seconds: float = 0.0
    audit: dict[str, Any] = field(factory=dict)


@pytest.fixture(scope="session")
def archive() -> Path:
    subprocess.run(["make", "windows-app"], cwd=ROOT, check=True, timeout=1800)
    (made,) = (ROOT / "dist").glob("AnonML-*-windows.zip")
    return made


def unpacked(windows: Desktop, archive: Path, name: str = NEW) -> Path:
    """The program in a folder of the user's."""
    place = windows.user / "Downloads" / name
    with zipfile.ZipFile(archive) as files:
        files.extractall(place)
    return place / "AnonML" / "AnonML.exe"


def walk(windows: Desktop, archive: Path, course: Course, *route: str) -> Walk:
    """A student's actions, each counted. The study begins once the page is there: no busy machine is late."""
    found = Walk()
    found.steps.done.append("unpack the zip")
    program = unpacked(windows, archive)
    began = time.monotonic()
    found.steps.done.append("open AnonML.exe")
    windows.begin(program, *route)
    link = windows.opened()
    found.seconds = time.monotonic() - began
    with chromium(windows.folder / "profile") as browser:
        browser.view(WIDTH, "light")
        browser.open(link)
        _keep(browser, "windows-1-welcome", 520)
        found.steps.press(browser, "Begin")
        invited = course.open(THROUGH_TOR if route else min(THROUGH_TOR, max(6.0, found.seconds / 6)))
        _take_part(browser, windows, found.steps, invited)
        until(lambda: _is_sent(browser), "a packet is acknowledged", 2 * LONGEST)
        _keep(browser, "windows-4-sent", 540)
    found.audit = course.audit()
    return found


def _take_part(browser: Browser, windows: Desktop, steps: Steps, link: str) -> None:
    browser.type("#link", link)
    steps.press(browser, "Continue")
    file = windows.user / "my-course.csv"
    file.write_bytes(f"{COLUMNS}\r\n31,often,0\r\n".encode())
    browser.find("#file").send_keys(str(file))
    _keep(browser, "windows-2-data", 940)
    steps.press(browser, "Look at it")
    browser.type("#minimum_cohort", str(MEMBERS))
    browser.type("#minimum_window", "0")  # beyond this computer no window of seconds is joined otherwise
    steps.press(browser, "Import, and read what is asked")
    decide = browser.find("section.decide").rect
    _keep(browser, "windows-3-decide", int(decide["y"] + decide["height"]) + 24, int(decide["y"]) - 170)
    steps.press(browser, "Yes, take part")
    assert "You take part" in browser.text, browser.text[:500]


def _keep(browser: Browser, name: str, bottom: int, top: int = 0) -> None:
    cut(browser.shot(name, OUT), (0, top, WIDTH, bottom))


def _is_sent(browser: Browser) -> bool:
    time.sleep(2)
    browser.open(browser.driver.current_url)
    return "delivered" in browser.text


@contextmanager
def beside(folder: Path, **course: Any) -> Iterator[tuple[Desktop, Course]]:
    """A fresh Windows and a course, both ended in the end."""
    with ExitStack() as stack:
        taught = Course(folder / "course", **course)
        stack.callback(taught.close)
        yield stack.enter_context(desktop(folder / "windows")), taught


def _demand_sent(found: Walk) -> None:
    assert len(found.steps.done) <= MOST_ACTIONS, found.steps.done
    assert found.audit["verdict"] == "all-checked"
    assert found.audit["packets"] == found.audit["enrolled"] == MEMBERS


@pytest.mark.soak
def test_a_student_with_nothing_installed_sends_a_packet_and_ends_the_program_in_order(
    archive: Path, tmp_path: Path
) -> None:
    """Then a second start opens the page of the first, the icon has a menu and shows a notification, a log-off ends
    the peer in order."""
    assert archive.stat().st_size <= MOST_BYTES
    with beside(tmp_path) as (windows, course):
        found = walk(windows, archive, course)
        _demand_sent(found)
        program = windows.user / "Downloads" / NEW / "AnonML" / "AnonML.exe"
        windows.run(program)
        assert "/enter?token=" in windows.opened()
        windows.point(*ICON, button=3)
        time.sleep(2)
        windows.picture("windows-menu")
        windows.point(10, 10, button=1)
        python = program.parent / "python" / "python.exe"
        assert "shown" in windows.run(python, "-X", "utf8", "-m", "anonml", "peer", "notify", "test")
        time.sleep(4)
        windows.picture("windows-notice")
        journal = windows.home / "peer.sqlite-wal"
        assert journal.exists(), "it runs"
        windows.run("wineboot", "--end-session")
        assert is_calm(journal), "a peer that ends in order closes its database"
        print(f"{len(found.steps.done)} actions: {found.steps.done}; the page opened after {found.seconds:.0f} s")


@pytest.mark.soak  # it builds the zip: a minute of processor time, for a launcher that hardly changes
def test_links_and_the_start_at_login_find_a_newer_version(archive: Path, tmp_path: Path) -> None:
    """Both are of the user's registry alone. A link that is handed over opens the page that begins with it."""
    with desktop(tmp_path / "windows") as windows:
        old = unpacked(windows, archive)
        windows.run(old, "--register")
        command = r"HKCU\Software\Classes\anonml\shell\open\command"
        assert f'{NEW}\\AnonML\\AnonML.exe" "%1"'.encode("cp1252", "replace")[-25:].decode() in windows.run(
            "reg", "query", command
        )
        python = old.parent / "python" / "python.exe"
        windows.run(python, "-X", "utf8", "-m", "anonml", "peer", "autostart", "on")
        assert "peer run --stay" in windows.run("reg", "query", RUN)
        new = unpacked(windows, archive, NEWER)
        windows.begin(new)
        assert "/enter?token=" in windows.opened()
        for key in (command, RUN):
            assert f"{NEWER}\\AnonML\\AnonML.exe" in windows.run("reg", "query", key)
        windows.run(new, LINK)  # as the command in the registry has it: Wine's `start` looks for no user's own schemes
        link = windows.opened()
        with chromium(windows.folder / "profile") as browser:
            browser.open(link)
            assert "127.0.0.1:9" in browser.text and browser.path.startswith("start"), browser.text[:300]
        windows.run("taskkill", "/im", "AnonML.exe")
        assert is_calm(windows.home / "peer.sqlite-wal")
        started = windows.begin(new, "peer", "run", "--stay", "--home", f"C:\\users\\{windows.user.name}\\.anonml-peer")
        until((windows.home / "peer.sqlite-wal").exists, "the peer runs at login", LONGEST)
        windows.run("taskkill", "/im", "AnonML.exe")
        assert is_calm(windows.home / "peer.sqlite-wal") and started.wait(60) == 0
        python = new.parent / "python" / "python.exe"
        windows.run(python, "-X", "utf8", "-m", "anonml", "peer", "autostart", "off")
        assert run_key.NAME not in windows.run("reg", "query", RUN)
        windows.run(new, "--unregister")
        windows.run("reg", "query", r"HKCU\Software\Classes\anonml", code=1)


@pytest.mark.soak
@pytest.mark.tor
def test_a_student_with_nothing_installed_sends_a_packet_through_tor(
    archive: Path, tmp_path: Path, private_tor: PrivateNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The aggregator is an onion service, which Windows' peer reaches by the port of this system's tor."""
    monkeypatch.setitem(os.environ, "ANONML_TORRC", str(private_tor.torrc_file))

    async def through() -> Walk:
        async with TorKeeper(tmp_path / "tor") as tor:
            host, port = await tor.socks()
            route = f"socks://{host}:{port}"
            with beside(tmp_path / "walk", serve=("--onion",), route=route) as (windows, course):
                return await asyncio.to_thread(walk, windows, archive, course, "--route", route)

    (tmp_path / "walk").mkdir()
    found = asyncio.run(through())
    _demand_sent(found)
    print(f"{len(found.steps.done)} actions: {found.steps.done}; the page opened after {found.seconds:.0f} s")
