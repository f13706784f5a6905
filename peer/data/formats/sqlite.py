"""Read the plain tables of a SQLite file that somebody else made, running nothing that its schema holds.

Only stored columns of ordinary tables are read. Views, triggers, virtual tables and their shadows, computed columns
and indices are left alone; an authorizer makes sure of it. SQLite follows a page as often as the file names it, so rows
are counted: all tables together hold no more of them than fit the file's bytes (SQLite file format, section 1.6).
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import define, field

from anon.errors import AnonmlError, Malformed, Refused, because
from anon.tables.streams import Cell, ImportLimits, Record, finite_number
from anon.text.sentences import say
from anon.values import frozen

MAGIC = b"SQLite format 3\0"
SMALLEST_ROW = 6
"""Bytes of a page that a row takes at least: a cell of 4 and a pointer of 2."""
STEPS_BETWEEN = 10_000
"""Instructions of SQLite's between two looks."""
STEPS_OF_SCHEMA = 5_000_000
"""Instructions that the list of tables may take, and as many again as the file has bytes."""


def length(file: Path) -> int:
    """Bytes of the file, and of the log that may stand beside it."""
    log = file.with_name(f"{file.name}-wal")
    return file.stat().st_size + (log.stat().st_size if log.is_file() else 0)


@contextmanager
def opened_source(file: Path, limits: ImportLimits) -> Iterator[sqlite3.Connection]:
    """The file, read-only, in one read transaction. A part that SQLite finds broken is raised as `Malformed`."""
    if length(file) > limits.file_bytes:
        raise Refused(
            say("the SQLite file is longer than {file_bytes} bytes; import it in parts", file_bytes=limits.file_bytes)
        )
    connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
    try:
        # Python's own would raise in the middle of a table for a text that is not UTF-8.
        connection.text_factory = _text
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limits.line_bytes)
        with _broken_is_malformed(limits):
            for setting in ("trusted_schema=OFF", "cell_size_check=ON", "query_only=ON", "mmap_size=0"):
                connection.execute(f"PRAGMA {setting}")
            connection.execute("BEGIN")
        yield connection
    finally:
        connection.close()


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


@define
class _Steps:
    """Called by SQLite as it works: whether it is to stop. The list of tables is itself a table of the file's."""

    limits: ImportLimits
    left: float

    def __call__(self) -> bool:
        self.left -= STEPS_BETWEEN
        try:
            self.limits.look()
        except AnonmlError:
            return True
        return self.left < 0


@define
class _Rows:
    """Rows met in each table. Every table is read more than once, so its longest reading counts."""

    most: int
    met: dict[str, int] = field(factory=dict)
    _all: int = 0

    def meet(self, table: str, number: int) -> None:
        """Raises `Refused` when all tables together have more rows than their file can hold."""
        if number <= self.met.get(table, 0):
            return
        self.met[table] = number
        self._all += 1
        if self._all > self.most:
            raise Refused(
                say(
                    "the SQLite file gives more than {most} rows, which a file of its length cannot hold: it is "
                    "damaged or was made to; check it with `PRAGMA integrity_check`, or export it as CSV",
                    most=self.most,
                )
            )


def table_sources(connection: sqlite3.Connection, limits: ImportLimits, size: int) -> dict[str, TableSource]:
    """A source for each ordinary table, by the table's own name, of a file of `size` bytes."""
    steps = _Steps(limits, STEPS_OF_SCHEMA + size)
    connection.set_progress_handler(steps, STEPS_BETWEEN)
    rows = _Rows(size // SMALLEST_ROW)
    with _broken_is_malformed(limits):
        listed = connection.execute("SELECT name, rootpage, type FROM sqlite_master WHERE type = 'table'").fetchall()
        virtual = tuple(f"{name}_" for name, rootpage, _type in listed if not rootpage and name)
        plain = [
            name for name, rootpage, _type in listed
            if name and rootpage and not name.lower().startswith("sqlite_") and not name.startswith(virtual)
        ]
        if len(plain) > limits.tables:
            raise Refused(
                say("the SQLite file has more than {tables} tables; export those you mean as CSV", tables=limits.tables)
            )
        columns = {name: _stored_columns(connection, name) for name in plain}
    steps.left = math.inf
    connection.set_authorizer(_only_reading)
    return {name: TableSource(connection, name, columns[name], limits, rows) for name in plain if columns[name]}


def _stored_columns(connection: sqlite3.Connection, table: str) -> tuple[str, ...]:
    rows = connection.execute("SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0", (table,)).fetchall()
    return tuple(name for (name,) in rows if name)


def _only_reading(action: int, _first: str | None, _second: str | None, _where: str | None, inside: str | None) -> int:
    # The last argument names the trigger or view that asks (sqlite3_set_authorizer): none may.
    allowed = action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ) and inside is None
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


@contextmanager
def _broken_is_malformed(limits: ImportLimits) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, UnicodeError) as error:  # of SQLite's own message, where a name in it is not UTF-8
        limits.look()
        raise Malformed(
            say(
                "the SQLite file cannot be read{why}: it is damaged, locked, or holds rows that are too long; "
                "check it with `PRAGMA integrity_check` and import it again",
                why=because(error),
            )
        ) from None


@frozen
class TableSource:
    """One table's rows, numbered from 1."""

    connection: sqlite3.Connection
    table: str
    columns: tuple[str, ...]
    limits: ImportLimits
    _rows: _Rows = field(repr=False)
    typed: bool = True
    unit: str = "row"

    def keys(self) -> Sequence[str]:
        """The stored columns."""
        return [column.replace("\0", "") for column in self.columns]

    def count(self) -> int:
        """Rows now."""
        return sum(1 for _row in self._read("1"))

    def records(self) -> Iterator[Record]:
        """Blobs, and text that is not UTF-8, come as NULL. Raises `Malformed` when the file turns out to be damaged."""
        if len(self.columns) > self.limits.columns:
            raise Refused(
                say(
                    "a table has {found} columns, more than {most}; drop some",
                    found=len(self.columns), most=self.limits.columns,
                )
            )
        listed = ", ".join(_quoted(column) for column in self.columns)
        keys = self.keys()
        for number, row in self._read(listed):
            yield number, dict(zip(keys, map(_cell, row), strict=True))

    def _read(self, listed: str) -> Iterator[tuple[int, tuple[object, ...]]]:
        with _broken_is_malformed(self.limits):
            # An index of the file may be broken, or made to lie: rows are read from the table itself.
            rows = self.connection.execute(f"SELECT {listed} FROM main.{_quoted(self.table)} NOT INDEXED")
            for number, row in enumerate(rows, 1):
                self._rows.meet(self.table, number)
                yield number, row


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _cell(value: object) -> Cell:
    if isinstance(value, int | float):
        return finite_number(value)
    return value if isinstance(value, str) else None
