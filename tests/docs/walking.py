"""Steps as a person counts them: a command that is typed, a file that is edited, a button that is pressed.

Filling in a form is part of pressing the button that sends it. Waiting is no step. A walk reaches programs and pages
through these functions alone, so that no step goes uncounted.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen, TimeoutExpired

from attrs import define, field

from tests.support.browsing import Browser
from tests.support.installing import Installed

PATIENCE = 240.0


@define
class Steps:
    """The steps that were taken, in order."""

    done: list[str] = field(factory=list)

    def type(self, installed: Installed, *words: str) -> str:
        """A command that ends."""
        self.done.append(" ".join(words))
        return installed.run(*words)

    def start(self, installed: Installed, *words: str, log: Path, browser: str = "") -> Popen[bytes]:
        """A command that goes on."""
        self.done.append(" ".join(words))
        return installed.begin(*words, log=log, browser=browser)

    def edit(self, file: Path, change: Callable[[str], str]) -> None:
        """A file, in an editor."""
        self.done.append(f"edit {file.name}")
        file.write_text(change(file.read_text("utf-8")), "utf-8")

    def press(self, browser: Browser, words: str) -> None:
        """A button."""
        self.done.append(words)
        browser.press(words)


def until(reached: Callable[[], object], what: str, seconds: float = PATIENCE) -> None:
    """Wait."""
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.1)


def ended(process: Popen[bytes] | None) -> int | None:
    """Ctrl-C, and its exit code; None for one that never began."""
    if process is None:
        return None
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    try:
        return process.wait(30)
    except TimeoutExpired:
        process.kill()
        return process.wait()
