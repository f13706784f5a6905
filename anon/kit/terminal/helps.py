"""The help of every command, from the one file in which `python -m benchmarks.reference` writes it down.

So help loads no command. A test compares the file with the commands' own words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill
from typing import Any

FILE = Path(__file__).with_name("helps.json")
WIDEST, LEFT = 100, 30


def help_of(words: Sequence[str], groups: bool = False) -> str | None:
    """The help of the command of these words, such as peer and run. None for words that are no command; with `groups`
    for one that has no commands, too."""
    known: Any = {"commands": json.loads(FILE.read_text("utf-8"))}
    for word in words:
        known = known["commands"].get(word)
        if known is None:
            return None
    if groups and not known["commands"]:
        return None
    return "\n".join(_lines(known, ["anonml", *words], min(get_terminal_size().columns, WIDEST))) + "\n"


def _lines(known: Mapping[str, Any], path: Sequence[str], wide: int) -> Iterator[str]:
    yield f"Usage: {' '.join([*path, *known['usage']])}"
    for paragraph in known["about"].split("\n\n"):
        yield ""
        yield fill(" ".join(paragraph.split()), wide, initial_indent="  ", subsequent_indent="  ")
    for title, rows in groupby(known["given"], key=lambda row: row[0]):
        yield f"\n{title}"
        for _, names, meaning, default in rows:
            yield _row(names, f"{meaning} [{default}]" if default else meaning, wide)
    panels = dict.fromkeys(inner["panel"] for inner in known["commands"].values())
    for panel in panels:
        yield f"\n{panel}"
        for name, inner in known["commands"].items():
            if inner["panel"] == panel:
                yield _row(name, " ".join(inner["about"].partition("\n\n")[0].split()), wide)


def _row(name: str, meaning: str, wide: int) -> str:
    """The meaning stands beside a short name, and below a long one."""
    beside = f"  {name}".ljust(LEFT)
    if len(f"  {name}") >= LEFT:
        return f"  {name}\n" + fill(meaning, wide, initial_indent=" " * LEFT, subsequent_indent=" " * LEFT)
    return fill(beside + meaning, wide, subsequent_indent=" " * LEFT)
