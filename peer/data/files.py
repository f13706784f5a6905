"""Read CSV and JSON Lines row by row in bounded memory, whatever the file is.

A row that cannot be read is counted by its line number and passed over; its text is never quoted. A file is read
twice, once to learn its columns and once to import them, so a source is something whose `records` can be asked again.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Protocol, cast

from attrs import frozen

from anon.errors import Malformed, Refused

Cell = str | int | float | None
Record = tuple[int, dict[str, Cell] | None]
"""A line's number and its row; None for a line that cannot be read."""


@frozen
class ImportLimits:
    """What an import accepts. A row also has to fit what the sandbox can read (`anon.sql.Bounds.bytes_of_value`)."""

    line_bytes: int = 2**20
    """Longer lines are passed over."""
    row_bytes: int = 240 * 2**10
    """Longer rows are passed over."""
    cell_bytes: int = 64 * 2**10
    """Longer cells become NULL."""
    columns: int = 200
    file_bytes: int = 8 * 2**30
    """After unpacking; stops a file that unpacks without end."""
    lines_named: int = 20
    """How many of the lines passed over a summary names."""


LIMITS = ImportLimits()


class Source(Protocol):
    """Rows that can be read more than once."""

    @property
    def typed(self) -> bool:
        """Whether cells already have types; where not, all are text and types are to be found out."""

    def keys(self) -> Sequence[str]:
        """Columns known before any row is read, so that an empty table is still a table."""

    def records(self) -> Iterator[Record]:
        """Every row from the first."""


class BadLine(Exception):
    """A line that cannot be read. Carries nothing."""


def numbered_lines(file: Path, limits: ImportLimits) -> Iterator[tuple[int, bytes | None]]:
    """Lines from 1, unpacked if they are gzip; None for one longer than the limit. No more than one is held."""
    number, read = 0, 0
    with _opened(file) as stream:
        try:
            while line := stream.readline(limits.line_bytes + 1):
                number, whole = number + 1, len(line) <= limits.line_bytes
                read += len(line)
                rest = line
                while not whole and not rest.endswith(b"\n") and (rest := stream.readline(limits.line_bytes)):
                    read += len(rest)
                    _check_size(read, limits)
                _check_size(read, limits)
                yield number, line if whole else None
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise Malformed(f"the packed file breaks off after line {number}; pack it again") from None


def _opened(file: Path) -> IO[bytes]:
    with file.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    return cast(IO[bytes], gzip.open(file, "rb")) if packed else file.open("rb")


def _check_size(read: int, limits: ImportLimits) -> None:
    if read > limits.file_bytes:
        raise Refused(f"the file holds more than {limits.file_bytes} bytes when unpacked; import it in parts")


def first_bytes(file: Path, count: int = 4096) -> bytes:
    """The beginning of the file, unpacked. Raises `Malformed` for a broken gzip file."""
    try:
        with _opened(file) as stream:
            return stream.read(count)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise Malformed("the packed file is broken at its beginning; pack it again") from None


@frozen
class CsvSource:
    """Comma, semicolon or tab separated lines under a header; quoted fields may hold line breaks. UTF-8."""

    file: Path
    limits: ImportLimits
    typed: bool = False

    def keys(self) -> Sequence[str]:
        """The header. Raises `Malformed` if the first line is none."""
        return self._begun()[1]

    def records(self) -> Iterator[Record]:
        """Every record under the header; an empty line is none."""
        lines, header, delimiter = self._begun()
        yield from _rows(lines, header, csv.reader(lines, delimiter=delimiter, skipinitialspace=True))

    def _begun(self) -> tuple[_TextLines, list[str], str]:
        lines = _TextLines(numbered_lines(self.file, self.limits), self.limits)
        try:
            first = next(lines)
        except (BadLine, StopIteration):
            raise Malformed("the first line is no header; it must be UTF-8 text that names the columns") from None
        delimiter = _delimiter(first)
        header = _header(first, delimiter)
        if len(header) > self.limits.columns:
            raise Refused(f"the header names {len(header)} columns, more than {self.limits.columns}; drop some")
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
        if line is None or self.held > self._most or b"\0" in line:
            raise BadLine
        try:
            return line.decode("utf-8-sig" if self.number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise BadLine from None


def _delimiter(header: str) -> str:
    unquoted = "".join(header.split('"')[::2])
    return max(",;\t", key=unquoted.count)


def _header(first: str, delimiter: str) -> list[str]:
    """Column names, made unique by place: two equal names are told apart only to be refused later with their place."""
    try:
        names = next(csv.reader([first], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:
        names = []
    if not any(name.strip() for name in names):
        raise Malformed("the first line is no header; it must name the columns")
    return [f"{name.strip()}\0{place}" for place, name in enumerate(names, 1)]


def _rows(lines: _TextLines, header: list[str], reader: Iterator[list[str]]) -> Iterator[Record]:
    while True:
        lines.held, number = 0, lines.number + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except (csv.Error, BadLine):
            yield number, None
            continue
        if row:
            yield number, dict(zip(header, row, strict=True)) if len(row) == len(header) else None


@frozen
class JsonLinesSource:
    """One JSON object a line; what is nested stays JSON text. UTF-8."""

    file: Path
    limits: ImportLimits
    typed: bool = True

    def keys(self) -> Sequence[str]:
        """None: every object may bring its own."""
        return ()

    def records(self) -> Iterator[Record]:
        """Every line that is not blank."""
        for number, line in numbered_lines(self.file, self.limits):
            if line is None:
                yield number, None
            elif line.strip():
                yield number, _object(line)


def _object(line: bytes) -> dict[str, Cell] | None:
    try:
        value = json.loads(line.decode("utf-8-sig"), parse_constant=lambda _name: None)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    return {key.replace("\0", ""): _cell(part) for key, part in value.items()}


def _cell(value: Any) -> Cell:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value) if abs(value) < 10**300 else None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float) else None
