"""Standard output and error that take every text, whatever the system's code page, and wherever there are none.

A console shows every character. A file or a pipe on Windows has the code page of the system, which may have neither a
letter of somebody's name nor a line of a table.
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from pathlib import Path


def take_every_text() -> None:
    """From now on a character that a stream's encoding lacks is written as `\\u5b66`, so that no two texts look alike.

    A program without a console has no streams (Windows' `pythonw`). Its words then go nowhere, and nobody answers it.
    """
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115, for as long as the program
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115, for as long as the program
        elif isinstance(stream, TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
            stream.reconfigure(errors="backslashreplace")
