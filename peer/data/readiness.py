"""The part of a study's tables that the owner's data holds: for the owner's eyes alone. It never decides what is
sent."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from anon.errors import AnonmlError
from anon.queries.child import COPY_MEMORY
from anon.queries.lint import NAME, Tables
from anon.queries.sandbox import opened, plain_tables_of
from anon.storage.durable import guarded
from anon.study.features import Table
from anon.text.foreign import Quoted
from anon.text.sentences import NOTHING, Ours, Sentence, Term, listed, say
from anon.values import frozen
from peer.data.kept import DATA_KEPT

if TYPE_CHECKING:
    from peer.data.people import NamedPeople

SAMPLED = 400
"""Places of a table at which rows are measured."""
ROW_BYTES = 8
"""Of each row in a database, beside its values."""


@frozen
class Readiness:
    """Tables and columns that the owner's data lacks for a study. Shown to the owner alone; it never decides whether a
    peer sends."""

    missing_tables: tuple[str, ...]
    missing_columns: tuple[str, ...]
    """Each as table.column."""

    @property
    def complete(self) -> bool:
        """True when every declared table and column is there."""
        return not (self.missing_tables or self.missing_columns)


def readiness(database: Path, tables: Tables) -> Readiness:
    """Compare the study's declared tables with the data file. Never raises; no file is like an empty one."""
    present = plain_tables_of(database)
    return Readiness(
        tuple(table for table in tables if table not in present),
        tuple(
            f"{table}.{column}"
            for table, columns in tables.items()
            for column in columns
            if table in present and column not in present[table]
        ),
    )


def unread_of(imported: str, wanted: Sequence[Table]) -> Sentence:
    """Says of imported tables (with commas between) that no study reads any of them, and what to do; empty where one is
    read, or where there is no study."""
    names = [table.name for table in wanted]
    if not names or set(names) & set(imported.split(", ")):
        return NOTHING
    return say(
        "No study reads this: your studies go on reading {tables}. If this was to be their file, import it again into "
        "the table of that name.",
        tables=listed(names),
    )


@frozen
class OwnData:
    """Tables and columns (as table.column) that are not there, and the rows of those tables that are.

    `too_large`: about how many bytes an evaluation would copy, where that is more than it may; else 0. `uncounted`: the
    features, and the label, whose value would count as missing, where a study was evaluated.
    """

    missing_tables: tuple[str, ...]
    missing_columns: tuple[str, ...]
    rows: Mapping[str, int]
    too_large: int = 0
    uncounted: tuple[str, ...] = ()
    few: tuple[Sentence, ...] = ()
    """The note that the study is meant for more records, where they were counted."""
    people: tuple[NamedPeople, ...] = ()
    """The tables that name several people, where they were looked for."""

    @property
    def lacks(self) -> frozenset[str]:
        """A name for each thing that is not there, which its owner confirms before a yes."""
        empty = {name for name, rows in self.rows.items() if rows == 0}
        return frozenset({*self.missing_tables, *self.missing_columns, *empty, *({"size"} if self.too_large else ())})

    @property
    def warnings(self) -> tuple[Sentence, ...]:
        """Notes for the owner, each with its next step; empty when there is something of everything."""
        notes: list[Sentence] = [
            say(
                "you have no table {name}: `anonml peer import FILE --table {table}`",
                name=Quoted(name),
                table=_argument(name),
            )
            for name in self.missing_tables
        ]
        if self.missing_columns:
            lacking = listed(self.missing_columns)
            notes.append(
                say(
                    "your data lacks {listed}: import a file with them (`anonml peer import FILE --table TABLE`)",
                    listed=lacking,
                )
            )
        notes += [
            say(
                "your table {name} is empty: `anonml peer import FILE --table {table}`",
                name=Quoted(name),
                table=_argument(name),
            )
            for name, rows in self.rows.items()
            if rows == 0
        ]
        return (*notes, *([told_size(self.too_large)] if self.too_large else []))


def _argument(name: str) -> Ours:
    """A table's name as it is typed in a command, where it is one."""
    return Term(name) if NAME.fullmatch(name) else Quoted(name)


def told_size(too_large: int) -> Sentence:
    """Why every value will be missing."""
    return (
        say(
            "the columns that this study reads hold about {held:.1f} GB of yours, and more than {most:g} "
            "GB cannot be looked at: all of your values would count as missing. Import fewer rows (`anonml peer "
            "import FILE --table TABLE`)",
            held=too_large / 2**30,
            most=COPY_MEMORY / 2**30,
        )
    )


def own_data(database: Path, tables: Sequence[Table]) -> OwnData:
    """Look at the owner's data file. Never raises; no file is like an empty one."""
    ready = readiness(database, {table.name: table.columns for table in tables})
    present = plain_tables_of(database)
    counted = {table.name: _rows(database, table.name) for table in tables if table.name in present}
    read = {table.name: table.columns for table in tables if set(table.columns) <= set(present.get(table.name, ()))}
    size = _copied_bytes(database, read) if read and database.stat().st_size > COPY_MEMORY else 0
    return OwnData(ready.missing_tables, ready.missing_columns, counted, size if size > COPY_MEMORY else 0)


def _copied_bytes(database: Path, tables: Mapping[str, Sequence[str]]) -> int:
    """About how many bytes these columns hold, by rows from all over each table; reading all would take too long."""
    try:
        address = f"{database.absolute().as_uri()}?mode=ro"
        with closing(guarded(database, DATA_KEPT)(address, uri=True)) as connection:
            return sum(_bytes(connection, table, columns) for table, columns in tables.items())
    except (AnonmlError, sqlite3.Error, OverflowError):
        return 0


def _bytes(connection: sqlite3.Connection, table: str, columns: Sequence[str]) -> int:
    rows, low, high = connection.execute(f'SELECT count(*), min(rowid), max(rowid) FROM "{table}"').fetchone()
    lengths = " + ".join(f'coalesce(length(CAST("{column}" AS BLOB)), 0) + 1' for column in columns)
    sample: list[int] = []
    for number in range(SAMPLED if rows else 0):
        first = low + (high - low) * number // SAMPLED
        from_there = connection.execute(f'SELECT {lengths} FROM "{table}" WHERE rowid >= ? LIMIT 3', (first,))
        sample += [length + ROW_BYTES for (length,) in from_there]
    return int(rows * sum(sample) // max(1, len(sample)))


def _rows(database: Path, table: str) -> int:
    with opened(database) as sandbox:
        counted = sandbox.scalar(f'SELECT count(*) FROM "{table}"', 0) if sandbox is not None else 0
    return counted if isinstance(counted, int) else 0
