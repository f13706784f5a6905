"""Read the plain tables of a SQLite file that somebody else made, running nothing that its schema holds.

Only stored columns of ordinary tables are read. Views, triggers, virtual tables and their shadows, computed columns
and indices are left alone; an authorizer makes sure of it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen

from anon.errors import Malformed, Refused
from peer.data.files import Cell, ImportLimits, Record, finite_number

MAGIC = b"SQLite format 3\0"


@contextmanager
def opened_source(file: Path, limits: ImportLimits) -> Iterator[sqlite3.Connection]:
    """The file, read-only, in one read transaction. What SQLite finds broken in it is raised as `Malformed`."""
    if file.stat().st_size > limits.file_bytes:
        raise Refused(f"the SQLite file is longer than {limits.file_bytes} bytes; import it in parts")
    connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
    try:
        connection.text_factory = _text
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limits.line_bytes)
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


def table_sources(connection: sqlite3.Connection, limits: ImportLimits) -> dict[str, TableSource]:
    """A source for each ordinary table, by the table's own name."""
    with _broken_is_malformed():
        listed = connection.execute("SELECT name, rootpage, type FROM sqlite_master WHERE type = 'table'").fetchall()
        virtual = tuple(f"{name}_" for name, rootpage, _type in listed if not rootpage and name)
        plain = [
            name for name, rootpage, _type in listed
            if name and rootpage and not name.lower().startswith("sqlite_") and not name.startswith(virtual)
        ]
        columns = {name: _stored_columns(connection, name) for name in plain}
    connection.set_authorizer(_only_reading)
    return {name: TableSource(connection, name, columns[name], limits) for name in plain if columns[name]}


def _stored_columns(connection: sqlite3.Connection, table: str) -> tuple[str, ...]:
    rows = connection.execute("SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0", (table,)).fetchall()
    return tuple(name for (name,) in rows if name)


def _only_reading(action: int, _first: str | None, _second: str | None, _where: str | None, inside: str | None) -> int:
    allowed = action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ) and inside is None
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


@contextmanager
def _broken_is_malformed() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise Malformed(
            f"the SQLite file cannot be read ({type(error).__name__}): it is damaged, locked, or holds rows that are "
            "too long; check it with `PRAGMA integrity_check` and import it again"
        ) from None


@frozen
class TableSource:
    """One table's rows, numbered from 1."""

    connection: sqlite3.Connection
    table: str
    columns: tuple[str, ...]
    limits: ImportLimits
    typed: bool = True
    unit: str = "row"

    def keys(self) -> Sequence[str]:
        """The stored columns."""
        return [column.replace("\0", "") for column in self.columns]

    def count(self) -> int:
        """Rows now."""
        with _broken_is_malformed():
            rows = self.connection.execute(f"SELECT 1 FROM main.{_quoted(self.table)} NOT INDEXED")
            return sum(1 for _row in rows)

    def records(self) -> Iterator[Record]:
        """Blobs, and text that is not UTF-8, come as NULL. Raises `Malformed` when the file turns out to be damaged."""
        if len(self.columns) > self.limits.columns:
            raise Refused(f"a table has {len(self.columns)} columns, more than {self.limits.columns}; drop some")
        listed = ", ".join(_quoted(column) for column in self.columns)
        keys = self.keys()
        with _broken_is_malformed():
            rows = self.connection.execute(f"SELECT {listed} FROM main.{_quoted(self.table)} NOT INDEXED")
            for number, row in enumerate(rows, 1):
                yield number, dict(zip(keys, map(_cell, row), strict=True))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _cell(value: object) -> Cell:
    if isinstance(value, int | float):
        return finite_number(value)
    return value if isinstance(value, str) else None
