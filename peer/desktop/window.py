"""The page in a window of its own, by toga where it is installed: what the desktop and mobile shells show."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from peer.desktop.page import Page

NAME = "AnonML"
IDENTIFIER = "org.anonml.peer"


def has_window() -> bool:
    """True if toga is here to draw one."""
    return find_spec("toga") is not None


def show(page: Page) -> None:
    """Show the page of a started `Page` until the window is closed."""
    application(page).main_loop()


def application(page: Page) -> Any:
    """The toga application: one window, filled by the page."""
    import toga

    class Shell(toga.App):  # type: ignore[misc, name-defined, unused-ignore]
        def startup(self) -> None:
            window = toga.MainWindow(title=NAME)  # type: ignore[no-untyped-call, unused-ignore]
            window.content = toga.WebView(url=page.link())
            self.main_window = window
            window.show()

    return Shell(NAME, IDENTIFIER)
