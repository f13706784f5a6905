"""The choices of a tray icon, as values. No title, no number of anybody's: whoever looks over a shoulder sees it."""

from __future__ import annotations

import time
from enum import StrEnum

from anon.values import frozen
from peer.desktop.served import ServedPage
from peer.run.supervisor import Running

PAUSE_SECONDS = 86400.0


class MenuChoice(StrEnum):
    """The choices."""

    OPEN = "Open my page"
    PAUSE = "Pause for a day"
    RESUME = "Go on"
    QUIT = "Quit"


@frozen
class View:
    """The facts behind the menu. `paused_until` is the end of the home's pause, None without one."""

    under_way: int
    paused_until: float | None
    running: Running


@frozen
class Menu:
    """A line that says how things stand, and what can be chosen, the first by a click on the icon itself."""

    line: str
    choices: tuple[MenuChoice, ...]


def view_of(server: ServedPage) -> View:
    """How a served home stands now."""
    peer = server.site.peer
    return View(len(peer.store.active()), peer.paused_until(), server.supervisor.running)


def menu(view: View) -> Menu:
    """The menu of the moment."""
    pausing = MenuChoice.PAUSE if view.paused_until is None else MenuChoice.RESUME
    return Menu(_line(view), (MenuChoice.OPEN, pausing, MenuChoice.QUIT))


def choose(choice: MenuChoice, server: ServedPage, now: float) -> None:
    """Do what was chosen with the home: pausing and going on. Raises `Refused` as `PeerApp.pause` does."""
    if choice is MenuChoice.PAUSE:
        server.site.peer.pause(now + PAUSE_SECONDS)
    elif choice is MenuChoice.RESUME:
        server.site.peer.resume()


def _line(view: View) -> str:
    if view.running is Running.FAULTY:
        return "Something needs you: open your page"
    if view.paused_until is not None:
        if view.paused_until == float("inf"):
            return "Paused"
        return time.strftime("Paused until %A %H:%M", time.localtime(view.paused_until))
    if view.under_way == 0:
        return "No study under way"
    return "One study under way" if view.under_way == 1 else f"{view.under_way} studies under way"
