"""Activity pages of Google Takeout (HTML): one long line, one `outer-cell` for each activity.

    <div class="outer-cell ..."><div class="mdl-grid">
      <div class="header-cell ..."><p class="mdl-typography--title">Search<br></p></div>
      <div class="content-cell ... mdl-typography--body-1">Searched for&nbsp;<a href="https://...">words</a><br>TIME<br></div>
      <div class="content-cell ... mdl-typography--text-right"></div>
      <div class="content-cell ... mdl-typography--caption"><b>Products:</b><br>&emsp;Search<br>...</div>

Class names are not translated, all words are. Entries are cut out by their class and read one at a time with a scanner
that takes time linear in their length.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Sequence

from attrs import define, field

from anon.tables.streams import CHUNK, Cell, ImportLimits, Origin, Skip
from peer.data.formats.takeout_dates import iso

OUTER = b'<div class="outer-cell'
_TOKEN = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*+)([^<>]*+)>|([^<]++)|<")
_ATTRIBUTE = re.compile(r'(class|href)\s*+=\s*+"([^"]*+)"')
_BOLD = "\0"
"""Marks the beginning of bold words while a cell is read; no text holds it."""
_END = re.compile(rb"<script|</body", re.IGNORECASE)


def is_activity_page(start: bytes) -> bool:
    """True if a page holds activities, by its beginning (the style sheet before the first is about 150 kB)."""
    return OUTER in start and b"content-cell" in start


def numbered_activities(origin: Origin, limits: ImportLimits) -> Iterator[tuple[int, dict[str, Cell] | Skip]]:
    """Every activity, from 1; a `Skip` for one that is too long or has no title."""
    for number, raw in enumerate(_cut(origin, limits), 1):
        yield number, raw if isinstance(raw, Skip) else _activity(raw)


def _cut(origin: Origin, limits: ImportLimits) -> Iterator[bytes | Skip]:
    """The text from one `outer-cell` to the next. The page's head is passed over."""
    held, begun, long = bytearray(), False, False
    with origin.open(limits) as stream:
        while chunk := stream.read(CHUNK):
            held += chunk
            while (position := held.find(OUTER)) >= 0:
                if begun:
                    yield Skip.LONG if long or position > limits.line_bytes else bytes(held[:position])
                del held[: position + len(OUTER)]
                begun, long = True, False
            if len(held) > limits.line_bytes or not begun:
                long = begun
                del held[: -len(OUTER)]
    if begun:
        yield Skip.LONG if long else _END.split(held, maxsplit=1)[0]


@define
class _Cell:
    """One inner cell: its lines of text, and the first link."""

    classes: str = ""
    lines: list[list[str]] = field(factory=lambda: [[]])
    """Each in the pieces it was read in: to add them up one by one would take the square of their number."""
    link: str | None = None

    def break_line(self) -> None:
        self.lines.append([])

    def filled(self, keep: str = "") -> list[str]:
        """The lines that hold something, with single spaces; the mark of bold ones only where it is to be kept."""
        plain = ("".join(piece for piece in line if keep or piece != _BOLD) for line in self.lines)
        return [line for line in (" ".join(line.split()) for line in plain) if line]


def _activity(raw: bytes) -> dict[str, Cell] | Skip:
    try:
        cells = _cells(raw.decode())
    except UnicodeDecodeError:
        return Skip.BROKEN
    header = _of(cells, "header-cell")
    body = next((cell for cell in cells if "body-1" in cell.classes and cell.filled()), None)
    if body is None:
        return Skip.BROKEN
    *said, time_text = body.filled()
    if not said:
        said, time_text = [time_text], ""
    return {
        "time": iso(time_text) if time_text else None,
        "time_text": time_text or None,
        "header": " ".join(header.filled()) if header else None,
        "title": said[0],
        "title_url": body.link,
        "subtitles": "\n".join(said[1:]) or None,
        **_caption(_of(cells, "caption")),
    }


def _caption(cell: _Cell | None) -> dict[str, Cell]:
    """Products stand under the first heading, in every language; the rest are details. Headings are bold."""
    lines = cell.filled(keep=_BOLD) if cell else []
    headings = [index for index, line in enumerate(lines) if line.startswith(_BOLD)] + [len(lines)]
    products = lines[headings[0] + 1 : headings[1]] if len(headings) > 1 else []
    rest = [line.removeprefix(_BOLD) for line in (lines[headings[1] :] if len(headings) > 1 else lines)]
    return {
        "products": json.dumps(products, ensure_ascii=False) if products else None,
        "details": "\n".join(rest) or None,
    }


def _of(cells: Sequence[_Cell], name: str) -> _Cell | None:
    return next((cell for cell in cells if name in cell.classes), None)


def _cells(text: str) -> list[_Cell]:
    """Cells in order; the text starts inside the tag of the outer one."""
    cells: list[_Cell] = []
    for closing, tag, attributes, words in (token.groups() for token in _TOKEN.finditer(text.partition(">")[2])):
        if tag == "div" and not closing:
            values = dict(_ATTRIBUTE.findall(attributes))
            cells.append(_Cell(values.get("class", "")))
        elif not cells:
            continue
        elif tag in ("br", "p"):
            cells[-1].break_line()
        elif tag == "b" and not closing:
            cells[-1].lines[-1].append(_BOLD)
        elif tag == "a" and not closing and cells[-1].link is None:
            cells[-1].link = html.unescape(dict(_ATTRIBUTE.findall(attributes)).get("href", "")) or None
        elif words:
            cells[-1].lines[-1].append(html.unescape(words).replace(_BOLD, ""))
    return cells
