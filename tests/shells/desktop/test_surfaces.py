"""The page behind a tray icon and in a window. The icon is real (X11, GTK, a session bus, a click) where those parts
are installed; the window is toga's own dummy backend: no window on a screen was seen."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from anon.errors import Refused
from peer.app import PeerApp
from peer.desktop import tray
from peer.desktop.page import Page
from peer.desktop.tray_menu import MenuChoice, View, menu
from peer.run.supervisor import Running
from peer.store.home import PeerHome
from peer.web.server import PageServer
from tests.support.peer_command import Command

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[3]


# The page in a thread


@contextmanager
def paged(home: Path, closed: list[str]) -> Iterator[Page]:
    def make() -> tuple[PageServer, Callable[[], Awaitable[None]]]:
        def no_route() -> Any:
            raise AssertionError("nothing is due")

        async def close() -> None:
            closed.append("routes")

        return PageServer(PeerApp(PeerHome(home), no_route, time.time, os.urandom), PeerHome(home)), close

    page = Page(make)
    page.start()
    try:
        yield page
    finally:
        page.stop()


def test_a_page_in_a_thread_answers_and_ends_in_order(tmp_path: Path) -> None:
    async def asked(link: str) -> int:
        import aiohttp

        async with (
            aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session,
            session.get(link) as answer,
        ):
            return answer.status

    closed: list[str] = []
    with paged(tmp_path, closed) as page:
        link = page.link()
        assert asyncio.run(asked(link)) == 200 and page.link() != link
        with pytest.raises(Refused, match="another process"), PeerHome(tmp_path).running():
            pass
        with pytest.raises(Refused, match="year"):
            page.ask(lambda server: server.site.peer.pause(0))
        assert closed == []
    assert closed == ["routes"]
    with PeerHome(tmp_path).running():
        pass


def test_what_keeps_it_from_starting_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match="choose a folder"), paged(tmp_path / "file", []):
        pass


# The menu


@pytest.mark.parametrize(("view", "line", "second"), [
    (View(0, None, Running.HERE), "No study under way", MenuChoice.PAUSE),
    (View(1, None, Running.HERE), "One study under way", MenuChoice.PAUSE),
    (View(3, None, Running.ELSEWHERE), "3 studies under way", MenuChoice.PAUSE),
    (View(3, float("inf"), Running.HERE), "Paused", MenuChoice.RESUME),
    (View(0, None, Running.FAULTY), "Something needs you: open your page", MenuChoice.PAUSE),
])
def test_the_menu_says_how_things_stand(view: View, line: str, second: MenuChoice) -> None:
    assert menu(view).line == line and menu(view).choices == (MenuChoice.OPEN, second, MenuChoice.QUIT)


def test_the_end_of_a_pause_is_said_in_local_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert menu(View(1, 1_000_000_000.0, Running.HERE)).line == "Paused until Sunday 01:46"


class _Library:
    """The names of pystray that the menu uses."""

    class Menu:
        SEPARATOR = "-"

    @staticmethod
    @frozen
    class MenuItem:
        text: str
        action: Any
        default: bool = False
        enabled: bool = True


def test_every_choice_does_what_it_says(tmp_path: Path) -> None:
    done: list[str] = []
    doing = tray.Doing(done.append, lambda: done.append("drawn"), lambda: done.append("stopped"))
    with paged(tmp_path, []) as page:
        def choose(text: str) -> None:
            items = {one.text: one for one in tray._items(_Library, page, doing) if one != "-"}
            assert [one.text for one in items.values() if one.default] == [MenuChoice.OPEN]
            items[text].action()

        choose(MenuChoice.OPEN)
        assert done == [page.link(), "drawn"]
        choose(MenuChoice.PAUSE)
        until = page.ask(lambda server: server.site.peer.paused_until())
        assert until is not None and 86300 < until - time.time() <= 86400
        choose(MenuChoice.RESUME)
        assert page.ask(lambda server: server.site.peer.paused_until()) is None
        choose(MenuChoice.QUIT)
        assert done[-1] == "stopped"


def test_without_a_screen_it_is_one_clear_line(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    done = command("tray")
    assert done.code == 4 and "no screen" in done.err and not command.home.exists()
    monkeypatch.setattr(tray, "find_spec", lambda name: None)
    assert "whl[" in command("tray").err and "desktop" in command("tray").err


# A screen


def _gi() -> Path | None:
    """The folder of the system's PyGObject, if it was built for this Python."""
    place = Path("/usr/lib/python3/dist-packages/gi")
    return place if list(place.glob(f"_gi.cpython-{sys.version_info.major}{sys.version_info.minor}-*")) else None


def _missing() -> str:
    programs = [name for name in ("Xvfb", "trayer", "xdotool", "dbus-run-session") if shutil.which(name) is None]
    typelibs = [
        name
        for name in ("Gtk-3.0", "AyatanaAppIndicator3-0.1")
        if not list(Path("/usr/lib").glob(f"*/girepository-1.0/{name}.typelib"))
    ]
    return ", ".join([*programs, *typelibs, *([] if _gi() else ["PyGObject for this Python"])])


@contextmanager
def _screen() -> Iterator[str]:
    """A display of its own with a tray; its name."""
    with ExitStack() as ended:
        def started(*words: str, **more: Any) -> subprocess.Popen[Any]:
            process = subprocess.Popen(words, stderr=subprocess.DEVNULL, **more)
            ended.callback(process.communicate)
            ended.callback(process.terminate)
            return process

        server = started("Xvfb", "-displayfd", "1", "-screen", "0", "400x300x24", stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        display = f":{server.stdout.readline().strip()}"
        words = ("trayer", "--edge", "top", "--align", "left", "--widthtype", "request")
        started(*words, env=os.environ | {"DISPLAY": display}, stdout=subprocess.DEVNULL)
        yield display


@pytest.mark.skipif(bool(_missing()), reason=f"not installed: {_missing()}")
def test_a_click_on_a_real_icon_opens_the_page_and_the_end_is_in_order(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "gi").symlink_to(_gi())  # type: ignore[arg-type]
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >> {opened}\n')
    browser.chmod(0o755)
    with _screen() as display:
        surroundings = os.environ | {
            "DISPLAY": display, "BROWSER": str(browser), "PYTHONPATH": str(tmp_path / "parts"),
            "PYSTRAY_BACKEND": "gtk", "XDG_RUNTIME_DIR": str(tmp_path),
        }
        tail = f"echo $$ > {tmp_path}/pid; exec {sys.executable} -m anonml peer tray --home {tmp_path}/home"
        process = subprocess.Popen(
            ["dbus-run-session", "--", "sh", "-c", tail],
            cwd=ROOT,
            env=surroundings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            deadline = time.monotonic() + 30
            while not opened.exists() and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.5)
                subprocess.run(["xdotool", "mousemove", "12", "12", "click", "1"], env=surroundings, check=False)
            link = opened.read_text().split()[0]
            assert link.startswith("http://127.0.0.1:")
        finally:
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGTERM)
            said, _ = process.communicate(timeout=20)
        assert process.returncode == 0, said
    with PeerHome(tmp_path / "home").running():
        pass


# A window


def test_a_window_holds_the_page_and_nothing_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TOGA_BACKEND", "toga_dummy")
    pytest.importorskip("toga_dummy")
    from peer.desktop.window import application, has_window

    with paged(tmp_path, []) as page:
        shown = application(page).main_window
        assert has_window() and shown.visible and shown.title == "AnonML" and shown.content.url == page.link()


def test_without_toga_the_browser_opens(tmp_path: Path) -> None:
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.new; mv {opened}.new {opened}\n')
    browser.chmod(0o755)
    program = "import sys; sys.modules['toga'] = None; import anonml; anonml.main()"
    words = [sys.executable, "-c", program, "peer", "window", "--home", str(tmp_path / "home")]
    surroundings = os.environ | {"BROWSER": str(browser), "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(words, env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        deadline = time.monotonic() + 30
        while not opened.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
    finally:
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=20)
    assert process.returncode == 0 and opened.read_text().startswith("http://127.0.0.1:"), said


def test_no_command_pays_for_a_page_that_it_does_not_show() -> None:
    asked = (
        "import sys, peer.cli.main; print([one for one in ('jinja2', 'aiohttp.web_app', 'peer.web.server') if one in "
        "sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True, cwd=ROOT)
    assert found.stdout.strip() == "[]"
