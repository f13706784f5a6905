"""`anonml peer tray` and `window`: the page behind an icon, or in a window of its own."""

from __future__ import annotations

import signal
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import typer

from anon.kit.page.browser import open_link
from anon.kit.terminal.printing import Terminal
from anon.kit.terminal.progress import on_one_line
from anon.kit.terminal.wiring import Wiring, wiring_of
from peer.desktop import tray as desktop_tray
from peer.desktop import window as desktop_window
from peer.desktop.page import Page
from peer.desktop.served import ServedPage
from peer.network.routes import Routes
from peer.opening import DEFAULT_HOME, HomeOption, RouteOption, home_of, open_peer


def tray(context: typer.Context, home: HomeOption = DEFAULT_HOME, route: RouteOption = "auto") -> None:
    """An icon in the tray: open your page, pause for a day, quit. It runs your studies too, like `run`."""
    library = desktop_tray.tray_here()
    page = _started(home, route, wiring_of(context))
    try:
        desktop_tray.show(page, library)
    finally:
        page.stop()


def window(context: typer.Context, home: HomeOption = DEFAULT_HOME, route: RouteOption = "auto") -> None:
    """Your page in a window of its own; in your browser where toga is not installed. It runs your studies too."""
    page = _started(home, route, wiring_of(context))
    try:
        if desktop_window.has_window():
            desktop_window.show(page)
            return
        ending = _told_to_end()
        link = page.link()
        if not open_link(link):
            Terminal().print(f"open this link; it works once:\n{link}", soft_wrap=True)
        with suppress(KeyboardInterrupt):
            ending.wait()
    finally:
        page.stop()


def _started(home: Path, route: str, wiring: Wiring) -> Page:
    serve = wiring.one("the page")

    def make() -> tuple[ServedPage, Callable[[], Awaitable[None]]]:
        routes = Routes(route, home / "tor", on_one_line)
        return serve(open_peer(home, routes), home_of(home), guests=wiring.all("on the page")), routes.close

    page = Page(make)
    page.start()
    return page


def _told_to_end() -> threading.Event:
    """Set by Ctrl-C and by SIGTERM from now on, also while a browser is looked for."""
    ending = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ending.set())
    return ending
