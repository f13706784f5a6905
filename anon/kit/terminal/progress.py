"""A line that tells on a terminal how far something has got."""

from __future__ import annotations

import sys

_CLEAR = "\r\x1b[K"


def on_one_line(line: str) -> None:
    """Show a line on a terminal in place of the last one; an empty line wipes it. Where nobody watches, nothing."""
    if sys.stderr.isatty():
        sys.stderr.write(_CLEAR + line)
        sys.stderr.flush()
