"""A tray icon, by pystray. It holds the main thread; the page is served beside it."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from anon.errors import AnonmlError, Refused
from anon.kit.page.browser import open_link
from anon.machine.extras import install
from anon.values import frozen
from peer.desktop.page import Page
from peer.desktop.tray_menu import MenuChoice, choose, menu, view_of

REDRAWN_SECONDS = 20.0
_SIDE = 64
_NO_PARTS = (
    "a tray icon needs the desktop's own parts, for this Python: `apt install python3-gi gir1.2-gtk-3.0 "
    "gir1.2-ayatanaappindicator3-0.1` (or PyGObject from elsewhere); `anonml peer open` needs nothing"
)
_NO_DISPLAY = "there is no screen for a tray icon here; `anonml peer open --no-browser` needs none"


def tray_here() -> Any:
    """The library. Raises `Refused` where a part of it is not installed, and where there is no screen.

    Bare X11 is not enough on Linux: pystray draws the icon there, but never hears a click, and does not end.
    """
    if find_spec("pystray") is None or find_spec("PIL") is None:
        raise Refused(f"a tray icon needs `{install('desktop')}`; `anonml peer open` needs nothing")
    if sys.platform == "linux":
        if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")) or not _has_bus():
            raise Refused(_NO_DISPLAY)
        if find_spec("gi") is None:
            raise Refused(_NO_PARTS)
    try:
        import pystray
    except Exception:  # a display that does not answer is told by an error of the display's own
        raise Refused(_NO_DISPLAY) from None
    if pystray.Icon.__module__ == "pystray._xorg":
        raise Refused(_NO_PARTS)
    return pystray


def _has_bus() -> bool:
    folder = os.environ.get("XDG_RUNTIME_DIR")
    return bool(os.environ.get("DBUS_SESSION_BUS_ADDRESS")) or (folder is not None and (Path(folder) / "bus").exists())


def show(page: Page, library: Any, open_link: Callable[[str], object] = open_link) -> None:
    """Show the icon until it is quit, or until Ctrl-C or SIGTERM. `page` is started."""
    icon = library.Icon("anonml", _picture(), "AnonML")
    ended = threading.Event()

    def stop() -> None:
        ended.set()
        icon.stop()

    icon.menu = library.Menu(lambda: _items(library, page, Doing(open_link, icon.update_menu, stop)))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop())
    threading.Thread(target=_redrawn, args=(icon, ended), daemon=True).start()
    try:
        icon.run()
    except Exception:
        if not ended.is_set():
            raise  # else it is the end of it: pystray asks a notification service to forget what was never shown
    finally:
        ended.set()


@frozen
class Doing:
    """Acts of a choice besides asking the page."""

    open_link: Callable[[str], object]
    redraw: Callable[[], object]
    stop: Callable[[], object]


def _items(library: Any, page: Page, doing: Doing) -> Iterator[Any]:
    offered = menu(page.ask(view_of))
    for choice in offered.choices:
        yield library.MenuItem(choice.value, _chosen(choice, page, doing), default=choice is MenuChoice.OPEN)
    yield library.Menu.SEPARATOR
    yield library.MenuItem(offered.line, None, enabled=False)


def _chosen(choice: MenuChoice, page: Page, doing: Doing) -> Callable[[], None]:
    def done() -> None:
        if choice is MenuChoice.QUIT:
            doing.stop()
            return
        opening = choice is MenuChoice.OPEN
        try:
            page.ask(lambda server: choose(choice, server, time.time()))
        except AnonmlError:
            opening = True  # the page says why not
        if opening:
            doing.open_link(page.link())
        doing.redraw()

    return done


def _redrawn(icon: Any, ended: threading.Event) -> None:
    while not ended.wait(REDRAWN_SECONDS):
        icon.update_menu()


def _picture() -> Any:
    """The page's own icon (`peer/web/static/icon.svg`), drawn."""
    from PIL import Image, ImageDraw

    picture = Image.new("RGBA", (_SIDE, _SIDE), (0, 0, 0, 0))
    draw = ImageDraw.Draw(picture)
    draw.rounded_rectangle((0, 0, _SIDE - 1, _SIDE - 1), 14, fill=(11, 90, 99, 255))
    for across, down, radius in ((18, 42, 6), (32, 20, 6), (46, 42, 6), (32, 42, 3)):
        draw.ellipse((across - radius, down - radius, across + radius, down + radius), fill=(255, 255, 255, 255))
    return picture
