"""Comma, semicolon, tab or bar separated values under a header (RFC 4180, and what spreadsheets make of it)."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence

from anon.errors import Malformed, Refused
from anon.tables.streams import BadLine, ImportLimits, Origin, Record, Skip, numbered_lines, with_line_feeds
from anon.text.sentences import say
from anon.values import frozen

DELIMITERS = {
    ",": say("separated by commas"),
    ";": say("separated by semicolons"),
    "\t": say("separated by tabs"),
    "|": say("separated by bars"),
}
_EXCEL = re.compile(r"sep=(.)\r?\n?", re.IGNORECASE)
"""A first line by which Excel is told the delimiter."""


@frozen
class DelimitedSource:
    """Lines under a header; quoted fields may hold line breaks. Keys carry their place after a NUL."""

    origin: Origin
    limits: ImportLimits
    typed: bool = False
    unit: str = "line"

    def keys(self) -> Sequence[str]:
        """The header. Raises `Malformed` if the first line is none."""
        return self._begun()[1]

    @property
    def delimiter(self) -> str:
        """The sign between the cells."""
        return self._begun()[2]

    def records(self) -> Iterator[Record]:
        """Every record under the header; an empty line is none."""
        lines, header, delimiter = self._begun()
        yield from _rows(lines, header, csv.reader(lines, delimiter=delimiter, skipinitialspace=True))

    def _begun(self) -> tuple[_TextLines, list[str], str]:
        lines = _TextLines(numbered_lines(with_line_feeds(self.origin, self.limits), self.limits), self.limits)
        try:
            first = next(lines)
            declared = _EXCEL.fullmatch(first)
            first = next(lines) if declared else first
        except (BadLine, StopIteration):
            raise Malformed(say("the first line is no header; it must be text that names the columns")) from None
        delimiter = declared[1] if declared and declared[1] in DELIMITERS else _delimiter(first)
        header = _header(first, delimiter)
        if len(header) > self.limits.columns:
            raise Refused(
                say(
                    "the header names {found} columns, more than {most}; drop some",
                    found=len(header),
                    most=self.limits.columns,
                )
            )
        return lines, header, delimiter


class _TextLines:
    """Text lines for `csv.reader`, which may take several for one record but not more than fit a row."""

    def __init__(self, lines: Iterator[tuple[int, bytes | None]], limits: ImportLimits) -> None:
        self._lines = lines
        self._most = limits.row_bytes
        self.number = 0
        self.held = 0

    def __iter__(self) -> _TextLines:
        return self

    def __next__(self) -> str:
        self.number, line = next(self._lines)
        self.held += len(line or b"")
        if line is None or self.held > self._most:
            raise BadLine(Skip.LONG)
        if b"\0" in line:
            raise BadLine
        try:
            return line.decode("utf-8-sig" if self.number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise BadLine from None


def _delimiter(header: str) -> str:
    unquoted = "".join(header.split('"')[::2])
    return max(DELIMITERS, key=unquoted.count)


def _header(first: str, delimiter: str) -> list[str]:
    """Column names, made unique by place: two equal names are told apart only to be refused later with their place."""
    try:
        names = next(csv.reader([first], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:
        names = []
    if not any(name.strip() for name in names):
        raise Malformed(say("the first line is no header; it must name the columns"))
    return [f"{name.strip()}\0{index}" for index, name in enumerate(names, 1)]


def _rows(lines: _TextLines, header: list[str], reader: Iterator[list[str]]) -> Iterator[Record]:
    while True:
        lines.held, number = 0, lines.number + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except BadLine as bad:
            yield number, bad.why
            continue
        except csv.Error:
            yield number, Skip.BROKEN
            continue
        if row:
            yield number, dict(zip(header, row, strict=True)) if len(row) == len(header) else Skip.WIDTH
