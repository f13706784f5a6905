"""Import the owner's files into the peer's own SQLite data file: all of a file or nothing of it.

Every import is one transaction; a failure leaves the data file as it was. Messages name columns and lines by number,
because a file without a header would otherwise have its first row quoted.
"""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Literal

from attrs import evolve, field

from anon.errors import Malformed, Refused, because
from anon.queries.lint import NAME
from anon.storage.durable import connect
from anon.storage.private_files import made_private
from anon.tables.columns import columns_of, sanitised
from anon.tables.streams import LIMITS, Cell, ImportLimits, Source
from anon.text.foreign import Quoted, whole_place
from anon.text.sentences import say
from anon.values import frozen
from peer.data.choices import Choices, NoSuchPerson, declared, remembered
from peer.data.deleting import empty_log, overwriting
from peer.data.foreign import opened
from peer.data.formats.detect import READABLE, DetectedFile
from peer.data.kept import DATA_KEPT
from peer.data.reading import Reading, counted
from peer.data.watching import RecordMeter, said_as_a_bad_file, watched

Mode = Literal["replace", "append"]
Progress = Callable[[int], None]
"""Told how many rows are written so far."""



@frozen
class ImportSummary:
    """The result of an import."""

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
    format: str = ""
    """The file's kind: a word for programs, and in `says` a phrase for its owner."""
    says: str = ""
    unit: str = "line"
    """The unit that `skipped_lines` counts: line, entry or row."""
    reasons: Mapping[str, int] = field(factory=dict)
    """Why records were passed over, and how many for each reason."""
    notes: tuple[str, ...] = ()
    """Further notes for the owner."""


def import_file(
    database: Path,
    file: Path,
    table: str | None = None,
    mode: Mode = "replace",
    progress: Progress | None = None,
    *,
    limits: ImportLimits = LIMITS,
    stop: Event | None = None,
    choices: Choices | None = None,
) -> ImportSummary:
    """Import a file, a folder or an archive into tables of the data file `database`; see `detect` for the formats.

    A table is named `table`, or as its format says (`events`, `moodle_log`, `takeout_activity`), or after the file, or
    as it is called in a database. Where there are several, `table` picks one. `replace` puts the rows in place of the
    table's, so importing again changes nothing; `append` adds them, and columns that are new. Raises `Malformed` for a
    file that cannot be read, or of which more records are unreadable than readable, and `Refused` for what policy
    forbids or when `stop` is set meanwhile; then nothing is changed. Without `choices`, columns are called as they were
    when a file came into this table before.
    """
    if not file.exists():
        raise Malformed(say("there is no such file; check the path"))
    if database.exists() and database.samefile(file):
        raise Refused(say("that is the data file itself; it needs no import"))
    if table is not None and not NAME.fullmatch(table):
        raise Refused(say("that is no table name; use a-z, 0-9 and _, a letter first, at most 63"))
    limits = watched(limits, limits.seconds, stop)
    try:
        with said_as_a_bad_file(), opened(file, limits) as found, _transaction(database) as connection:
            tables, meter = named_tables(found, table, limits), RecordMeter(limits, found.size)
            summaries = [
                _import(connection, name, source, mode, progress, meter, choices or _as_before(database, name))
                for name, source in tables
            ]
            limits.look()
    except sqlite3.Error as error:
        raise _cannot_write(error, database) from None
    return evolve(_joined(summaries), format=found.format, says=found.says, notes=found.notes)


def _as_before(database: Path, table: str) -> Choices:
    return Choices(remembered(database, table), said=False)


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
        raise Refused(say("table and columns need distinct names of a-z, 0-9 and _, a letter first"))
    try:
        with _transaction(database, durable) as connection:
            _prepare(connection, table, {name: f'"{name}"' for name in columns}, mode)
            finite = ([_finite(cell) for cell in row] for row in rows)
            cursor = connection.executemany(_insertion(table, columns), finite)
            return ImportSummary(table, max(cursor.rowcount, 0), tuple(columns), 0, (), 0)
    except sqlite3.Error as error:
        raise _cannot_write(error, database) from None


def _cannot_write(error: sqlite3.Error, database: Path) -> Exception:
    return Refused(
        say(
            "the data file {database} cannot be written{why}; check disk space and permissions, that rows have as "
            "many cells as there are columns, and that no other import is running; nothing was changed. If none of "
            "these is it, the file is damaged: restore a backup",
            database=whole_place(database), why=because(error),
        )
    )


def _finite(cell: Cell) -> Cell:
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


# --- the data file ---


@contextmanager
def _transaction(database: Path, durable: bool = True) -> Iterator[sqlite3.Connection]:
    """The data file, made with mode 0600 if it is new, in one write transaction that ends with the block.

    A replaced table is overwritten, and the log keeps neither it nor an import that failed.
    """
    made_private(database)
    connection = connect(database, DATA_KEPT, isolation_level=None, timeout=60.0)
    try:
        connection.execute("PRAGMA trusted_schema=OFF")
        overwriting(connection)
        # In WAL mode a power cut may then take back the last import, and never spoils the file.
        connection.execute(f"PRAGMA synchronous={'NORMAL' if durable else 'OFF'}")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            if connection.in_transaction:  # a full disk may have ended it
                connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
    finally:
        if durable:
            empty_log(connection)
        connection.close()


def _prepare(connection: sqlite3.Connection, table: str, columns: Mapping[str, str], mode: Mode) -> None:
    """Make the table (`replace`), or make sure that it has the columns (`append`). Each column is with its declaration.
    """
    present = [str(row[1]) for row in connection.execute(f'PRAGMA table_info("{table}")')]
    if mode == "replace" or not present:
        connection.execute(f'DROP TABLE IF EXISTS "{table}"')
        connection.execute(f'CREATE TABLE "{table}" ({", ".join(columns.values())})')
        return
    for name in columns.keys() - set(present):
        connection.execute(f'ALTER TABLE "{table}" ADD COLUMN {columns[name]}')


def _insertion(table: str, columns: Sequence[str]) -> str:
    listed = ", ".join(f'"{name}"' for name in columns)
    return f'INSERT INTO "{table}" ({listed}) VALUES ({", ".join("?" * len(columns))})'


# --- one table ---


def named_tables(file_kind: DetectedFile, table: str | None, limits: ImportLimits) -> list[tuple[str, Source]]:
    """The tables to be made, each under its name. Raises `Refused` where two would have one name, or none fits."""
    if not file_kind.tables:
        raise Refused(
            say("{says} without a plain table; views and virtual tables are not imported", says=file_kind.says)
        )
    wanted = list(file_kind.tables)
    if table is not None and len(wanted) > 1:
        wanted = [chosen for chosen in wanted if table in (chosen.name, sanitised(chosen.title))]
        if not wanted:
            raise Refused(say("it holds several tables, none of that name; name one of them, or none for all"))
    if len(wanted) > limits.tables:
        raise Refused(
            say("it holds more than {tables} tables; import them one by one with --table", tables=limits.tables)
        )
    named = [(table or chosen.name or sanitised(chosen.title), chosen.source) for chosen in wanted]
    if len(dict(named)) < len(named):
        raise Refused(
            say("two tables in it become one name; rename one of them, or import them one by one with --table")
        )
    return named


def _import(
    connection: sqlite3.Connection,
    table: str,
    source: Source,
    mode: Mode,
    progress: Progress | None,
    meter: RecordMeter,
    choices: Choices,
) -> ImportSummary:
    limits = meter.limits
    whose = choices.person.rows if choices.person else (lambda records: records)
    columns = columns_of(source, whose(meter.records(source)), limits, READABLE, choices.numerals)
    renamed = choices.renamed(columns.values())
    columns = {key: column for key, column in columns.items() if column.name not in choices.left_out}
    declarations = {
        renamed[column.name]: declared(renamed[column.name], column.kind, column.name) for column in columns.values()
    }
    _prepare(connection, table, declarations, mode)
    reading = Reading(source.typed, columns, limits, progress or (lambda _rows: None))
    names = list(declarations)
    connection.executemany(_insertion(table, names), reading.rows(whose(meter.records(source))))
    if choices.person and not reading.read:
        raise NoSuchPerson(
            say(
                "no row has that value in the column {column}; write it as it stands in the file",
                column=Quoted(choices.person.column),
            )
        )
    if reading.skipped > reading.read:
        raise Malformed(
            say(
                "{skipped} of {all} cannot be read, beginning with number {first}; expected {readable}; nothing "
                "was changed",
                skipped=reading.skipped,
                all=counted(reading.skipped + reading.read, source.unit),
                first=reading.numbers[0],
                readable=READABLE,
            )
        )
    return ImportSummary(
        table, reading.read, tuple(names), reading.skipped, tuple(reading.numbers), reading.emptied,
        unit=source.unit, reasons=reading.reasons,
    )  # fmt: skip


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
        reasons=dict(sum((Counter(summary.reasons) for summary in summaries), Counter())),
    )
