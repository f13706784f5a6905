"""Opening a link in the user's browser, from a process of its own, so that the browser inherits nothing of ours.

The standard library chooses the browser and starts it with the environment of the process it is called in. That process
is therefore one that has the desktop's variables and no others. The link travels in a variable, which other users
cannot read, and is taken out before the browser starts.
"""

from __future__ import annotations

import os
import subprocess
import sys

from anon.machine.environment import Child, for_child

WORD = "--open-link"
"""Tells a program that brings its Python along (PyInstaller) to open the link instead of running a command."""
_LINK = "ANONML_LINK"
_PROGRAM = f"import os, sys, webbrowser; sys.exit(not webbrowser.open(os.environ.pop({_LINK!r})))"


def open_link(link: str) -> bool:
    """Open a link, and whether a browser was found. May wait for a browser that runs in the terminal."""
    words = [sys.executable, WORD] if getattr(sys, "frozen", False) else [sys.executable, "-I", "-c", _PROGRAM]
    surroundings = for_child(Child.DESKTOP)
    try:
        done = subprocess.run(words, env={**surroundings, _LINK: link}, check=False)  # noqa: S603
    except OSError:
        return False
    return done.returncode == 0


def open_given() -> int:
    """The child's part in a bundled program: open the link that it was given; the exit code."""
    import webbrowser

    return int(not webbrowser.open(os.environ.pop(_LINK)))
