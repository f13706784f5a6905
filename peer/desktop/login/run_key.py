"""A value of Windows' Run key, and the home it was written for. Quoting as CommandLineToArgvW reads it."""

from __future__ import annotations

import re
from subprocess import list2cmdline

from peer.desktop.login.item import LoginItem

NAME = "AnonML peer"
_OURS = " peer run --stay "


def render(item: LoginItem) -> str:
    """The command line. Variables are not in it: what is set for the user holds there by itself."""
    return list2cmdline(item.command)


def home_of(text: str) -> str | None:
    """The home that this value was written for, or None when it is not ours."""
    _, found, rest = text.partition(_OURS)
    named = re.search(r'--home (?:"(.*)"|(\S+))$', rest) if found else None
    if named is None:
        return None
    if named[1] is None:
        return named[2]
    trailing = len(named[1]) - len(named[1].rstrip("\\"))
    return named[1][: len(named[1]) - trailing // 2]
