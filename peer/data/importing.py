"""Import the owner's files into the peer's own SQLite data file: all of a file or nothing of it.

Every import is one transaction; a failure leaves the data file as it was. Messages name columns and lines by number,
because a file without a header would otherwise have its first row quoted.
"""

from __future__ import annotations

import math
import os
import re
import sqlite3
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from attrs import define, field, frozen

from anon.errors import Malformed, Refused
from anon.sql import NAME
from peer.data.copying import MAGIC, opened_source, table_sources
from peer.data.files import (
    LIMITS,
    Cell,
    CsvSource,
    ImportLimits,
    JsonLinesSource,
    Record,
    Source,
    first_bytes,
)

Mode = Literal["replace", "append"]
Progress = Callable[[int], None]
"""Told how many rows are written so far."""

_PROGRESS_EVERY = 1_000
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})", re.ASCII)
_REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", re.ASCII)
_IDENTIFIER = re.compile(r"[+-]?(0[0-9].*|[0-9]{19,})", re.ASCII)


@frozen
class ImportSummary:
    """What an import did."""

    table: str
    """The table, or several of them with commas between."""
    rows: int
    columns: tuple[str, ...]
    skipped: int
    """Lines passed over because they could not be read."""
    skipped_lines: tuple[int, ...]
    """The first of them, by number."""
    emptied: int
    """Texts that became NULL because they were too long or held a NUL character."""


def import_file(
    database: Path,
    file: Path,
    table: str | None = None,
    mode: Mode = "replace",
    progress: Progress | None = None,
    *,
    limits: ImportLimits = LIMITS,
) -> ImportSummary:
    """Import a CSV, JSON Lines (either may be gzip) or SQLite file into tables of the data file `database`.

    The table is named `table`, or after the file. Of a SQLite file all plain tables are imported under their own
    names, or the one named `table`. `replace` puts the rows in place of the table's, so importing again changes
    nothing; `append` adds them, and columns that are new. Raises `Malformed` for a file that cannot be read, or of
    which more lines are unreadable than readable, and `Refused` for what policy forbids; then nothing is changed.
    """
    if not file.is_file():
        raise Malformed("there is no such file; check the path")
    if database.exists() and database.samefile(file):
        raise Refused("that is the data file itself; it needs no import")
    if table is not None and not NAME.fullmatch(table):
        raise Refused("that is no table name; use a-z, 0-9 and _, a letter first, at most 63")
    try:
        with _transaction(database) as connection:
            summaries = [
                _import(connection, name, source, mode, progress, limits)
                for name, source in _sources(file, table, limits)
            ]
    except sqlite3.Error as error:
        raise _cannot_write(error) from None
    return _joined(summaries)


def import_rows(
    database: Path,
    table: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    mode: Mode = "replace",
    *,
    durable: bool = True,
) -> ImportSummary:
    """Import rows already in memory, in one transaction. Raises `Refused` for names that are not plain a-z names.

    Without `durable` it does not wait for the disk: right for a simulated peer, whose file a power cut may spoil.
    """
    names = [table, *columns]
    if not columns or len(set(columns)) < len(columns) or not all(NAME.fullmatch(name) for name in names):
        raise Refused("table and columns need distinct names of a-z, 0-9 and _, a letter first")
    try:
        with _transaction(database, durable) as connection:
            _prepare(connection, table, dict.fromkeys(columns, ""), mode)
            finite = ([_finite(cell) for cell in row] for row in rows)
            cursor = connection.executemany(_insertion(table, columns), finite)
            return ImportSummary(table, max(cursor.rowcount, 0), tuple(columns), 0, (), 0)
    except sqlite3.Error as error:
        raise _cannot_write(error) from None


def _cannot_write(error: sqlite3.Error) -> Exception:
    return Refused(
        f"the data file cannot be written ({type(error).__name__}); check disk space and permissions, that rows have "
        "as many cells as there are columns, and that no other import is running; nothing was changed"
    )


def _finite(cell: Cell) -> Cell:
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


# --- the data file ---


@contextmanager
def _transaction(database: Path, durable: bool = True) -> Iterator[sqlite3.Connection]:
    """The data file, made with mode 0600 if it is new, in one write transaction that ends with the block."""
    os.close(os.open(database, os.O_RDWR | os.O_CREAT, 0o600))
    database.chmod(0o600)
    connection = sqlite3.connect(database, isolation_level=None, timeout=60.0)
    try:
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute(f"PRAGMA synchronous={'NORMAL' if durable else 'OFF'}")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
    finally:
        connection.close()


def _prepare(connection: sqlite3.Connection, table: str, kinds: Mapping[str, str], mode: Mode) -> None:
    """Make the table (`replace`), or make sure that it has the columns (`append`)."""
    present = [str(row[1]) for row in connection.execute(f'PRAGMA table_info("{table}")')]
    if mode == "replace" or not present:
        declared = ", ".join(f'"{name}" {kind}' for name, kind in kinds.items())
        connection.execute(f'DROP TABLE IF EXISTS "{table}"')
        connection.execute(f'CREATE TABLE "{table}" ({declared})')
        return
    for name in kinds.keys() - set(present):
        connection.execute(f'ALTER TABLE "{table}" ADD COLUMN "{name}" {kinds[name]}')


def _insertion(table: str, columns: Sequence[str]) -> str:
    listed = ", ".join(f'"{name}"' for name in columns)
    return f'INSERT INTO "{table}" ({listed}) VALUES ({", ".join("?" * len(columns))})'


# --- one table ---


def _sources(file: Path, table: str | None, limits: ImportLimits) -> Iterator[tuple[str, Source]]:
    with file.open("rb") as stream:
        if stream.read(len(MAGIC)) == MAGIC:
            with opened_source(file, limits) as foreign:
                yield from _tables_of(foreign, table, limits)
            return
    yield table or sanitised(_stem(file)), _text_source(file, limits)


def _tables_of(
    foreign: sqlite3.Connection, table: str | None, limits: ImportLimits
) -> Iterator[tuple[str, Source]]:
    sources = table_sources(foreign, limits)
    if not sources:
        raise Refused("the SQLite file holds no plain table; views and virtual tables are not imported")
    if table is not None and len(sources) > 1:
        sources = {name: source for name, source in sources.items() if sanitised(name) == table}
        if not sources:
            raise Refused("the SQLite file holds several tables, none of that name; name one of them, or none for all")
    names = {name: table or sanitised(name) for name in sources}
    if len(set(names.values())) < len(names):
        raise Refused("two tables of the SQLite file become one name; rename one of them")
    for name, source in sources.items():
        yield names[name], source


def _text_source(file: Path, limits: ImportLimits) -> Source:
    start = first_bytes(file)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Malformed("the file is UTF-16; save it as UTF-8 and import it again")
    if start.startswith(MAGIC):
        raise Refused("this is a packed SQLite file; unpack it first")
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    suffixes = [suffix.lower() for suffix in file.suffixes]
    if text.startswith(b"[") and not {".csv", ".tsv"} & set(suffixes):
        raise Malformed("the file is one JSON list; write one object a line (JSON Lines) and import it again")
    if {".json", ".jsonl", ".ndjson"} & set(suffixes) or (text.startswith(b"{") and ".csv" not in suffixes):
        return JsonLinesSource(file, limits)
    return CsvSource(file, limits)


def _stem(file: Path) -> str:
    name = file.name[:-3] if file.suffix.lower() == ".gz" else file.name
    return Path(name).stem


def sanitised(name: str) -> str:
    """A table or column name of a-z, 0-9 and _ made from any text; the same text gives the same name."""
    ascii_only = unicodedata.normalize("NFKD", name[:256]).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9]+", "_", ascii_only.lower()).strip("_")[:60] or "unnamed"
    return words if NAME.fullmatch(words) else f"x_{words}"[:63]


def _import(
    connection: sqlite3.Connection,
    table: str,
    source: Source,
    mode: Mode,
    progress: Progress | None,
    limits: ImportLimits,
) -> ImportSummary:
    columns = _learn(source, limits)
    _prepare(connection, table, {column.name: column.kind for column in columns.values()}, mode)
    writing = _Writing(source.typed, columns, limits, progress or (lambda _rows: None))
    connection.executemany(_insertion(table, [column.name for column in columns.values()]), writing.rows(source))
    if writing.skipped > writing.written:
        raise Malformed(f"{writing.skipped} lines cannot be read and {writing.written} can, beginning with line "
                        f"{writing.lines[0]}; the file must be UTF-8 CSV, JSON Lines or SQLite; nothing was changed")
    names = tuple(column.name for column in columns.values())
    return ImportSummary(table, writing.written, names, writing.skipped, tuple(writing.lines), writing.emptied)


def _joined(summaries: Sequence[ImportSummary]) -> ImportSummary:
    if len(summaries) == 1:
        return summaries[0]
    return ImportSummary(
        ", ".join(summary.table for summary in summaries),
        sum(summary.rows for summary in summaries),
        tuple(f"{summary.table}.{column}" for summary in summaries for column in summary.columns),
        sum(summary.skipped for summary in summaries),
        (),
        sum(summary.emptied for summary in summaries),
    )


# --- columns and their types ---


@define
class _Column:
    name: str
    kind: str = ""
    """INTEGER, REAL or TEXT; empty as long as only NULL was seen."""

    def learn(self, kind: str) -> None:
        if kind and kind != self.kind:
            self.kind = kind if not self.kind else "TEXT" if "TEXT" in (kind, self.kind) else "REAL"


def _learn(source: Source, limits: ImportLimits) -> dict[str, _Column]:
    """First reading: the columns, in the order met, each with the narrowest type that holds all its values."""
    taken: set[str] = set()
    columns = {key: _new_column(key, 0, taken, limits) for key in source.keys()}  # noqa: SIM118
    for number, row in source.records():
        for key, cell in (row or {}).items():
            if key not in columns:
                columns[key] = _new_column(key, number, taken, limits)
            columns[key].learn(_kind(cell, source.typed))
    if not columns:
        raise Malformed("no row could be read; the file must be UTF-8 CSV with a header, JSON Lines or SQLite")
    return columns


def _new_column(key: str, number: int, taken: set[str], limits: ImportLimits) -> _Column:
    # CSV keys carry their place after a NUL, so that columns of equal or no name stay apart until here.
    title, _nul, place = key.partition("\0")
    name = sanitised(title) if title.strip() else f"column_{place or len(taken) + 1}"
    where = f"column {place}" if place else f"a key first met in row {number}" if number else "a column"
    if name in taken:
        raise Refused(f"{where} has the same name as another once reduced to a-z, 0-9 and _; rename it in the file")
    if len(taken) >= limits.columns:
        raise Refused(f"more than {limits.columns} columns, reached at row {number}; drop some from the file")
    taken.add(name)
    return _Column(name)


def _kind(cell: Cell, typed: bool) -> str:
    if cell is None or cell == "":
        return "TEXT" if typed and cell == "" else ""
    if isinstance(cell, str):
        return "TEXT" if typed else _kind_of_text(cell.strip())
    return "INTEGER" if isinstance(cell, int) else "REAL"


def _kind_of_text(text: str) -> str:
    """Numbers with a leading zero or of 19 digits and more are identifiers: they stay text, to the last digit."""
    if not text:
        return ""
    if _INTEGER.fullmatch(text):
        return "INTEGER"
    number = _REAL.fullmatch(text) and not _IDENTIFIER.fullmatch(text) and math.isfinite(float(text))
    return "REAL" if number else "TEXT"


@define
class _Writing:
    """Second reading: rows with their types, counting what is passed over."""

    typed: bool
    columns: Mapping[str, _Column]
    limits: ImportLimits
    progress: Progress
    written: int = 0
    skipped: int = 0
    emptied: int = 0
    lines: list[int] = field(factory=list)

    def rows(self, source: Source) -> Iterator[list[Cell]]:
        """Rows to insert."""
        for record in source.records():
            row = self._row(record)
            if row is None:
                self._skip(record[0])
                continue
            self.written += 1
            if self.written % _PROGRESS_EVERY == 0:
                self.progress(self.written)
            yield row
        self.progress(self.written)

    def _skip(self, number: int) -> None:
        self.skipped += 1
        if len(self.lines) < self.limits.lines_named:
            self.lines.append(number)

    def _row(self, record: Record) -> list[Cell] | None:
        _number, cells = record
        if cells is None:
            return None
        try:
            row = [self._cell(cells.get(key), column.kind) for key, column in self.columns.items()]
            size = sum(len(cell.encode()) if isinstance(cell, str) else 9 for cell in row)
        except UnicodeEncodeError:  # half of a surrogate pair, from a JSON escape
            return None
        return row if size <= self.limits.row_bytes else None

    def _cell(self, cell: Cell, kind: str) -> Cell:
        if isinstance(cell, str):
            if len(cell.encode()) > self.limits.cell_bytes or "\0" in cell:
                self.emptied += 1
                return None
            return cell if self.typed else _typed(cell, kind)
        if kind == "TEXT":
            return None if cell is None else str(cell)
        return float(cell) if kind == "REAL" and cell is not None else cell


def _typed(text: str, kind: str) -> Cell:
    stripped = text.strip()
    if not stripped:
        return None
    found = _kind_of_text(stripped)
    if kind == "TEXT" or found in ("", "TEXT"):
        return stripped
    return int(stripped) if kind == found == "INTEGER" else float(stripped)
