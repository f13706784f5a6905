"""Evaluate one SQL scalar over tables of the owner's: total, read-only, bounded.

The query was written by somebody the owner does not trust. Its permitted form is in `anon.queries.lint`; here the same
guard stands over a connection to real data. Whatever depends on data ends as a `MissingValue` value and never as an
exception, so that nothing a peer does later can differ with its data.

Bounds count instructions, not time, so equal data end equally. One instruction can take a thousand times longer than
another, and memory is only looked at now and then. So these bounds do not hold a hostile query in time or in memory.
The system's limits on the child process do (`anon.queries.child`). Here the clock and the growth of the process are
last resorts, for what is evaluated without a child.
"""

from __future__ import annotations

import math
import mmap
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from anon.errors import Malformed
from anon.queries import windows
from anon.queries.lint import BOUNDS, NAME, Bounds, Exhausted, QueryGuard, Tables, see, statement

if sys.platform != "win32":
    from resource import RUSAGE_SELF, getrusage

_STATM = Path("/proc/self/statm")
_PAGE = mmap.PAGESIZE
LOOKS_PER_MEASUREMENT = 40
"""Looks at the step budget between two at memory, each of which costs some microseconds."""

PATIENCE = 60.0
"""Seconds to wait for an import that is just committing."""


class Reason(Enum):
    """Why a query gave no value. For the owner's eyes on this machine only: it depends on data."""

    NULL = "NULL"
    FAILED = "the query failed"
    EXHAUSTED = "it used up its steps or memory"
    SHAPE = "not one row of one column"
    TYPE = "a value of the wrong type"
    NO_DATA = "no data, or the tables it reads were never imported"


class MissingValue(NamedTuple):
    """No value. `reason` depends on data, so it is shown to the owner alone and never leaves the machine."""

    reason: Reason

    def __repr__(self) -> str:
        return "MissingValue()"


Outcome = int | float | str | MissingValue
"""A query's value: a 64-bit integer, a finite float, a text, or nothing."""


class Sandbox:
    """One read transaction over the data file: every query in it sees the same instant."""

    def __init__(self, connection: sqlite3.Connection, tables: Tables, bounds: Bounds, ends: float = math.inf) -> None:
        self._ends = ends
        self._connection = connection
        self._held_before: int | None = None
        self._looks = 0
        self._bounds = bounds
        self._guard = QueryGuard(connection, tables, bounds, self._over)

    def scalar(self, query: str, as_of: int) -> Outcome:
        """The query's value. Never raises for anything that depends on data, or on the query."""
        if time.monotonic() > self._ends:
            return MissingValue(Reason.EXHAUSTED)
        self._guard.begin()
        self._held_before = None
        try:
            rows = self._rows(query, as_of)
        except Exception as error:  # the error's text may quote the data: only its kind is kept
            return MissingValue(_kind(error))
        return _value(rows)

    def rows(self, query: str, as_of: int, take: Callable[[object, Outcome], None]) -> bool:
        """Hand over the key and the value of every row. False if the query did not end well: what was taken does not
        count then. Never raises for anything that depends on data, or on the query."""
        if time.monotonic() > self._ends:
            return False
        self._guard.begin()
        self._held_before = None
        try:
            with closing(self._connection.cursor()) as cursor:
                for key, value in cursor.execute(statement(query), {"as_of": as_of}):
                    take(key, _outcome(value))
        except Exception:  # as in `scalar`
            return False
        return True

    def _rows(self, query: str, as_of: int) -> list[tuple[object, ...]]:
        with closing(self._connection.cursor()) as cursor:
            # A second row is enough to know that there is not just one.
            return cursor.execute(statement(query), {"as_of": as_of}).fetchmany(2)

    def _over(self) -> bool:
        if time.monotonic() > self._ends:
            return True
        self._looks += 1
        if self._held_before is None:  # a query that ends before the first look takes no memory worth a measurement
            self._held_before = _memory()
        if self._looks % LOOKS_PER_MEASUREMENT:
            return False
        return _memory() - self._held_before > self._bounds.bytes_of_memory


class Bench(Sandbox):
    """A sandbox over tables in memory whose rows the program puts in: one simulated person after the other."""

    def __init__(self, tables: Tables, bounds: Bounds = BOUNDS) -> None:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        for table, columns in tables.items():
            connection.execute(
                f'CREATE TABLE "{table}" ({", ".join(f"{chr(34)}{column}{chr(34)}" for column in columns)})'
            )
        see(connection, tables)
        super().__init__(connection, tables, bounds)

    def put(self, table: str, rows: Sequence[Sequence[object]]) -> None:
        """Make these the table's rows. Raises `Malformed` for one that no peer's query could read."""
        marks = ", ".join("?" * len(rows[0])) if rows else ""
        with self._guard.lifted():
            try:
                self._connection.execute(f'DELETE FROM main."{table}"')
                if rows:
                    self._connection.executemany(f'INSERT INTO main."{table}" VALUES ({marks})', rows)
            except (sqlite3.DataError, OverflowError):
                raise Malformed(
                    f"data: a row of {table} is longer than {self._bounds.bytes_of_value} bytes, or holds a number "
                    "beyond 64 bits; shorten it"
                ) from None

    def close(self) -> None:
        """Give its memory back."""
        self._connection.close()


def scalar(
    database: Path, query: str, as_of: int, tables: Tables | None = None, bounds: Bounds = BOUNDS
) -> Outcome:
    """Evaluate one query over the data file at `as_of` (seconds since 1970 UTC). Never raises; see `MissingValue`.

    `tables` are the study's declared tables; without them every plain table of the file may be read.
    """
    with opened(database, tables, bounds) as sandbox:
        return MissingValue(Reason.NO_DATA) if sandbox is None else sandbox.scalar(query, as_of)


@contextmanager
def opened(
    database: Path, tables: Tables | None = None, bounds: Bounds = BOUNDS, seconds: float = math.inf
) -> Iterator[Sandbox | None]:
    """A sandbox over the data file, or None if there is no file or it cannot be read as a database.

    After `seconds` every query is ended, and none begun.
    """
    ends = time.monotonic() + seconds
    connection = _connect(database, min(PATIENCE, seconds))
    if connection is None:
        yield None
        return
    try:
        yield _guarded(connection, tables, bounds, ends)
    finally:
        connection.close()


def _connect(database: Path, patience: float = PATIENCE) -> sqlite3.Connection | None:
    try:
        return sqlite3.connect(
            f"{database.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=patience
        )
    except Exception:
        return None


def copied(database: Path, tables: Tables) -> sqlite3.Connection | None:
    """A database in memory that holds the declared tables, declared columns only, as they are now; None if the file
    cannot be read. A table that the file has not, or without a declared column, is left out. The file is closed again.

    Columns keep their affinity, so that comparisons give what they give in the file.
    """
    connection = sqlite3.connect(":memory:", isolation_level=None, timeout=PATIENCE, uri=True)
    try:
        connection.execute("ATTACH ? AS home", (f"{database.absolute().as_uri()}?mode=ro",))
        connection.execute("BEGIN")
        for table, columns in _held(tables, plain_tables(connection, "home")).items():
            listed = ", ".join(f'"{column}"' for column in columns)
            connection.execute(f'CREATE TABLE main."{table}" AS SELECT {listed} FROM home."{table}"')
        connection.execute("COMMIT")
        connection.execute("DETACH home")
    except Exception:  # a file that is no database, or a broken one: as good as none
        connection.close()
        return None
    return connection


def over(connection: sqlite3.Connection, tables: Tables, bounds: Bounds, ends: float = math.inf) -> Sandbox | None:
    """A sandbox over the declared tables of an open database; None for a broken one."""
    return _guarded(connection, tables, bounds, ends)


def _guarded(
    connection: sqlite3.Connection, tables: Tables | None, bounds: Bounds, ends: float
) -> Sandbox | None:
    try:
        # SQLite's own advice for files of strangers (sqlite.org/security.html).
        for setting in ("trusted_schema=OFF", "cell_size_check=ON", "temp_store=MEMORY", "mmap_size=0"):
            connection.execute(f"PRAGMA {setting}")
        connection.execute("BEGIN")
        present = plain_tables(connection)
        shown = present if tables is None else _held(tables, present)
        see(connection, shown)
        connection.execute("PRAGMA query_only=ON")
        return Sandbox(connection, shown, bounds, ends)
    except Exception:  # a file that is no database, or a broken one: as good as none
        return None


def plain_tables(connection: sqlite3.Connection, schema: str = "main") -> dict[str, tuple[str, ...]]:
    """Ordinary tables with their stored columns. Views, virtual tables and computed columns are no data of ours."""
    rows = connection.execute(
        # Virtual tables have no page of their own: their root is 0 (SQLite, "The Schema Table").
        f"SELECT lower(name) FROM {schema}.sqlite_master WHERE type = 'table' AND rootpage > 0 ORDER BY name"
    ).fetchall()
    names = [name for (name,) in rows if NAME.fullmatch(name)]
    return {name: columns for name in names if (columns := _columns(connection, name, schema))}


def plain_tables_of(database: Path) -> dict[str, tuple[str, ...]]:
    """`plain_tables` of a data file; none if there is no file, or it is no database or a damaged one."""
    connection = _connect(database)
    if connection is None:
        return {}
    with closing(connection):
        try:
            return plain_tables(connection)
        except (sqlite3.Error, UnicodeDecodeError):
            return {}


def _columns(connection: sqlite3.Connection, table: str, schema: str) -> tuple[str, ...]:
    rows = connection.execute(f'PRAGMA {schema}.table_xinfo("{table}")').fetchall()
    # The seventh column of table_xinfo is 0 for stored columns, and 2 or 3 for computed ones.
    return tuple(str(row[1]).lower() for row in rows if row[6] == 0 and NAME.fullmatch(str(row[1]).lower()))


def _held(tables: Tables, present: Tables) -> Tables:
    """The declared tables that the file holds with all declared columns; what reads the others ends as missing."""
    return {name: columns for name, columns in tables.items() if set(columns) <= set(present.get(name, ()))}


def _kind(error: Exception) -> Reason:
    if isinstance(error, sqlite3.OperationalError) and str(error).startswith("no such table"):
        return Reason.NO_DATA
    if isinstance(error, Exhausted | MemoryError) or "interrupted" in str(error):
        return Reason.EXHAUSTED
    return Reason.FAILED


def _value(rows: list[tuple[object, ...]]) -> Outcome:
    if len(rows) != 1 or len(rows[0]) != 1:
        return MissingValue(Reason.SHAPE)
    return _outcome(rows[0][0])


def _outcome(value: object) -> Outcome:
    if value is None:
        return MissingValue(Reason.NULL)
    if isinstance(value, str) or (isinstance(value, int | float) and math.isfinite(value)):
        return value
    return MissingValue(Reason.TYPE)


def _memory() -> int:
    """Bytes this process holds, or has held at most where only that is told."""
    if sys.platform == "win32":
        return windows.private_bytes()
    try:
        return int(_STATM.read_bytes().split()[1]) * _PAGE
    except OSError:
        pass
    return getrusage(RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
