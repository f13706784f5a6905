"""Text that somebody else wrote, on a terminal: inside a line of ours, in a cell of a table, or in a frame of its own.

Every module that prints takes `inline`, `Foreign` or `framed` from here. A text that runs from right to left is put
between FSI and PDI (UAX #9) and not refused: Arabic and Hebrew titles are legitimate. Terminals without bidirectional
text show these two as nothing.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from itertools import accumulate

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text

from anon.text.foreign import Quoted, escaped, isolated, shown
from anon.values import frozen

_LEAST_COLUMNS = 8
_TAB = "    "
_GUTTER = "│ "


def inline(text: str) -> str:
    """The text as part of a line of ours. It begins no line, and a `Terminal` knows no markup."""
    return shown(text)


def short(text: str) -> str:
    """`inline`, as a stranger's: between marks, and cut so that it cannot fill a line of ours and begin another."""
    return inline(Quoted(text))


@frozen
class Foreign:
    """The text as a cell of a table, or between lines of ours. With `lines` its own line ends are kept."""

    text: str
    lines: bool = False

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """As wide as it likes."""
        widest = max(map(_width, self._escaped().split("\n")))
        return Measurement(min(_LEAST_COLUMNS, widest), max(widest, 1)).clamp(max_width=options.max_width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Each line isolated by itself, after wrapping: what is open at a line's end would reach the next cell."""
        for line in wrapped(self._escaped(), options.max_width):
            yield Text(isolated(line), no_wrap=True, overflow="ignore", end="\n")

    def _escaped(self) -> str:
        return escaped(self.text, lines=self.lines).replace("\t", _TAB)


@frozen
class framed:
    """The text under a title of ours, each of its lines behind a bar: none can pass for a line of this program's."""

    text: str
    title: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The bar stands on the left alone, so that no width that a terminal disputes can move it."""
        yield Text(f"╭─ {shown(self.title)}", no_wrap=True, overflow="ellipsis")
        plain = escaped(self.text, lines=True).replace("\t", _TAB)
        for line in wrapped(plain, options.max_width - len(_GUTTER)):
            yield Text(_GUTTER + isolated(line), no_wrap=True, overflow="ignore")
        yield Text("╰─")


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most `width` columns on any terminal, broken at spaces where there are any."""
    return [part for line in text.split("\n") for part in _parts(line, max(width, 2))]


def _parts(line: str, width: int) -> Iterator[str]:
    while line and (end := _fits(line, width)) < len(line):
        space = line.rfind(" ", 0, end + 1)
        cut = space if line[:space].strip() and space > 0 else end
        yield line[:cut].rstrip(" ")
        line = line[cut:].lstrip(" ")
    yield line


def _fits(line: str, width: int) -> int:
    """How many characters fit. A mark stays with its letter."""
    ends = accumulate(map(_columns, line))
    fits = next((index for index, end in enumerate(ends) if end > width), len(line))
    while 1 < fits < len(line) and unicodedata.category(line[fits])[0] == "M":
        fits -= 1
    return max(fits, 1)


def _columns(sign: str) -> int:
    """The most columns that any terminal gives a character; a mark is counted too: rather too many than too few."""
    return 1 if sign.isascii() or unicodedata.east_asian_width(sign) in ("N", "Na", "H") else 2


def _width(text: str) -> int:
    return sum(map(_columns, text))
