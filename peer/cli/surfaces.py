"""`anonml peer tray` and `window`: the page behind an icon, or in a window of its own."""

from __future__ import annotations

import signal
import threading
import webbrowser
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from anon.connecting import on_one_line
from peer.cli.options import DEFAULT_HOME, HomeOption, RouteOption, home_of, open_peer
from peer.desktop import tray as desktop_tray
from peer.desktop import window as desktop_window
from peer.desktop.page import Page
from peer.routes import Routes

if TYPE_CHECKING:
    from peer.web.server import PageServer


def tray(home: HomeOption = DEFAULT_HOME, route: RouteOption = "auto") -> None:
    """An icon in the tray: open your page, pause for a day, quit. It runs your studies too, like `run`."""
    library = desktop_tray.tray_here()
    page = _started(home, route)
    try:
        desktop_tray.show(page, library)
    finally:
        page.stop()


def window(home: HomeOption = DEFAULT_HOME, route: RouteOption = "auto") -> None:
    """Your page in a window of its own; in your browser where toga is not installed. It runs your studies too."""
    page = _started(home, route)
    try:
        if desktop_window.has_window():
            desktop_window.show(page)
            return
        link = page.link()
        if not webbrowser.open(link):
            Console().print(f"open this link; it works once:\n{link}", highlight=False, soft_wrap=True)
        _until_told()
    finally:
        page.stop()


def _started(home: Path, route: str) -> Page:
    from peer.web.server import PageServer  # late: no other command needs the templates

    def make() -> tuple[PageServer, Callable[[], Awaitable[None]]]:
        routes = Routes(route, home / "tor", on_one_line)
        return PageServer(open_peer(home, routes), home_of(home)), routes.close

    page = Page(make)
    page.start()
    return page


def _until_told() -> None:
    told = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: told.set())
    with suppress(KeyboardInterrupt):
        told.wait()
