"""Deleting tables from the owner's data file, so that the file and its log hold nothing of them any more.

SQLite only forgets where deleted rows lie. So freed pages are overwritten (`secure_delete`), the file is written anew
without them, and the log, which still holds rows of earlier transactions, is emptied.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from anon.errors import Damaged, Refused, because
from anon.queries.lint import NAME
from anon.queries.sandbox import plain_tables_of
from anon.storage.durable import guarded, translated
from anon.storage.open_elsewhere import hinders
from anon.storage.overwriting import remove_file
from anon.text.sentences import listed, say
from peer.data.kept import DATA_KEPT

PATIENCE_SECONDS = 10.0
"""How long deleting waits for an import or a reader to end."""
IN_MEMORY = 256 * 2**20
"""Bytes of a data file that is written anew by way of memory; a larger one takes a temporary file of SQLite's, which
has no name and holds only what stays."""
_DATA = ("-wal", "")
"""The ends of the names of files that hold rows."""
_BUSY = say(
    "the data file is in use: an import or a command that reads your tables is under way; wait until it has "
    "ended, and repeat this"
)
_LOGGED = say(
    "the table is deleted, but a program that reads your tables still holds its rows in the log; they go with "
    "your next import or deletion"
)


def overwriting(connection: sqlite3.Connection) -> None:
    """From now on this connection overwrites what it frees."""
    connection.execute("PRAGMA secure_delete=ON")


def empty_log(connection: sqlite3.Connection, patience: float = 2.0) -> bool:
    """Move the log into the file and cut it to nothing; whether no reader was in the way of it for so many seconds."""
    try:
        connection.execute(f"PRAGMA busy_timeout={int(1000 * patience)}")
        return bool(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0)
    except (sqlite3.Error, Damaged):
        return False


def rows_of(database: Path, table: str) -> int:
    """The rows of one of the owner's tables. Raises `Refused` when there is none of that name."""
    demand_table(database, table)
    with closing(guarded(database, DATA_KEPT)(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        return int(connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0])


def demand_table(database: Path, table: str) -> None:
    """Raises `Refused` unless the data file holds this table."""
    present = plain_tables_of(database)
    if table not in present:
        known = say("yours are: {tables}", tables=listed(present)) if present else say("you have none")
        raise Refused(say("there is no table of that name; {listed}", listed=known))


def delete_table(
    database: Path, table: str, patience: float = PATIENCE_SECONDS, before: Callable[[], None] = lambda: None
) -> None:
    """Delete a table, and every trace of it and of earlier tables in the data file and its log.

    `before` is called once nothing is in the way any more; what it raises leaves the table as it was.

    Raises `Refused` for no such table, while somebody imports or reads, and when the disk has no room for it; then the
    table is there as before. A reader that comes meanwhile can keep the log: that is refused as well, and says so.
    """
    assert NAME.fullmatch(table)
    demand_table(database, table)
    with _opened(database, patience) as connection:
        if not empty_log(connection, patience):
            raise Refused(_BUSY)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f'DROP TABLE "{table}"')
        before()
        connection.execute("COMMIT")
        connection.execute("VACUUM")
        if not empty_log(connection, patience):
            raise Refused(_LOGGED)


def delete_all(
    database: Path, patience: float = PATIENCE_SECONDS, before: Callable[[], None] = lambda: None
) -> None:
    """Overwrite and remove the data file with its log. Raises `Refused` while somebody else reads or imports.

    `before` is called once nothing is in the way any more; what it raises leaves the file as it was.
    """
    if not database.exists():
        before()
    else:
        with _alone(database, patience):
            before()
            if not hinders():  # within: closing the file drops its locks
                _remove(database, _DATA)
        if hinders():  # an open file stays there, so it is closed first
            _remove(database, _DATA)
    _remove(database, ("-wal", "-shm", "-journal"))


def _remove(database: Path, endings: Sequence[str]) -> None:
    for ending in endings:
        remove_file(database.with_name(database.name + ending))


def _connected(database: Path, patience: float) -> sqlite3.Connection:
    """To a file that is there."""
    address = f"{database.absolute().as_uri()}?mode=rw"
    return sqlite3.connect(address, uri=True, isolation_level=None, timeout=patience)


@contextmanager
def _opened(database: Path, patience: float) -> Iterator[sqlite3.Connection]:
    with closing(_connected(database, patience)) as connection:
        try:
            connection.execute("PRAGMA trusted_schema=OFF")
            connection.execute("PRAGMA journal_mode=WAL")  # a restored file's journal would be unlinked with its rows
            connection.execute(f"PRAGMA temp_store={'MEMORY' if database.stat().st_size <= IN_MEMORY else 'FILE'}")
            overwriting(connection)
            yield connection
        except sqlite3.Error as error:
            fault = translated(error, database, DATA_KEPT)
            raise (fault if isinstance(fault, Damaged) else _cannot(error)) from None


@contextmanager
def _alone(database: Path, patience: float) -> Iterator[None]:
    """No other process has the file open as a database. A file that is no database needs no wait."""
    with closing(_connected(database, patience)) as connection:
        try:
            # In WAL mode BEGIN EXCLUSIVE lets readers in (SQLite, "Transactions"); this keeps them out.
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if _is_busy(error):
                raise Refused(_BUSY) from None
        except sqlite3.Error:
            pass
        yield


def _is_busy(error: sqlite3.Error) -> bool:
    return error.sqlite_errorname.startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def _cannot(error: sqlite3.Error) -> Refused:
    if _is_busy(error):
        return Refused(_BUSY)
    return Refused(
        say(
            "the data file cannot be written{why}: deleting a table needs as much room on the disk as the file "
            "has; make room, or delete everything (`anonml peer erase`), which needs none",
            why=because(error),
        )
    )
