"""The peer's SQLite file: making it, keeping it open, and one transaction at a time.

WAL, `synchronous = FULL`: what was committed survives a power cut, and no reader holds a transaction up. BEGIN
IMMEDIATE: two consents at once, in whichever processes, are decided one after the other. `secure_delete`: what is
erased is overwritten. One connection stays open until `close`. Closing the last one costs three more syncs of the disk
than a commit does. It holds three file descriptors and a small cache.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path

from anon.errors import NoRoom, Refused
from anon.storage.durable import connect
from anon.storage.migration import drop_copies, version_of
from anon.storage.private_files import made_private
from anon.text.foreign import whole_place
from anon.text.sentences import say
from peer.rules.consent import Policy
from peer.store import rows
from peer.store.crash_points import crash_point
from peer.store.database.integrity import demand_whole, write_digest
from peer.store.database.migrations import SCHEMA
from peer.store.home import STORE_KEPT
from peer.store.manifests import Manifests

BUSY_SECONDS = 30.0
READER_MILLISECONDS = 250
_ERASING = frozenset({"release", "answer", "end", "leaving", "withdrawal", "policy"})
"""Transactions that may erase: the log, which still has what the file has not, is emptied after them, or after the next
where a reader was in the way. Copies that a migration kept go before."""


class StoreFile:
    """One store's file, made when there is none. `random_bytes` names a new installation; `policy` is its first.

    Raises `Refused` for a file of another program's schema; `peer.store.database.migrations.upgrade_home` brings one up
    to date. Raises it also for a file that something emptied. Such a file would be taken for a new home, whose budget
    nobody has spent.
    """

    def __init__(self, path: Path, random_bytes: Callable[[int], bytes], policy: Policy | None = None) -> None:
        self._path = path
        self._opened: sqlite3.Connection | None = None
        self._manifests = Manifests()
        self._file: tuple[int, int] | None = None
        self._log_holds_erased = False
        """Something that was erased still stands in the log: a reader was in the way."""
        SCHEMA.demand_own(path)
        _demand_not_emptied(path)
        if version_of(path, STORE_KEPT) == 0:  # also one whose making was killed
            self._create(random_bytes(16).hex(), policy or Policy())
        else:
            demand_whole(self._connection, path)

    def _create(self, installation: str, policy: Policy) -> None:
        made_private(self._path)
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
            for statement in files("peer.store.database").joinpath("schema.sql").read_text("utf-8").split(";\n"):
                connection.execute(statement)
            meta = {"installation": installation, "generation": "0", "retired": "0"}
            connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
            rows.write_policy(connection, policy)
            connection.execute(f"PRAGMA user_version = {SCHEMA.version}")
            write_digest(connection)
        connection.execute("COMMIT")

    @property
    def _connection(self) -> sqlite3.Connection:
        """To the file that is there now: a restore may have put another in the place of the one that was opened."""
        if self._opened is not None and self._identity() not in (None, self._file):
            self.close()
        if self._opened is None:
            self._opened = connect(self._path, STORE_KEPT, timeout=BUSY_SECONDS, isolation_level=None)
            self._opened.row_factory = sqlite3.Row
            for setting in ("synchronous = FULL", "secure_delete = ON", "cache_size = -256"):
                self._opened.execute(f"PRAGMA {setting}")
            with suppress(sqlite3.OperationalError):  # busy: the next opening does it; only a restored file needs it
                self._opened.execute("PRAGMA journal_mode = WAL")
            self._file = self._identity()
        return self._opened

    def _identity(self) -> tuple[int, int] | None:
        """Of the file that is there now; None where there is none."""
        try:
            status = self._path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return status.st_dev, status.st_ino

    def close(self) -> None:
        """Close the file; the next operation opens it again."""
        self._manifests.forget()
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    @contextmanager
    def _writing(self, what: str) -> Iterator[sqlite3.Connection]:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
            write_digest(connection)
        except BaseException:
            if connection.in_transaction:  # a full disk may have ended it
                connection.execute("ROLLBACK")
            raise
        if what in _ERASING:
            drop_copies(self._path)
        crash_point(f"before-commit-of-{what}")
        self._commit(connection)
        crash_point(f"after-commit-of-{what}")
        if what in _ERASING or self._log_holds_erased:
            self._log_holds_erased = not _log_emptied(connection)

    def _commit(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def installation(self) -> str:
        """The mark of this home's ledger, unlike every other."""
        return str(self._rows("SELECT value FROM meta WHERE key = 'installation'")[0]["value"])

    def _rows(self, query: str, *parameters: object) -> list[sqlite3.Row]:
        return self._connection.execute(query, parameters).fetchall()


def _log_emptied(connection: sqlite3.Connection) -> bool:
    """True if the log was emptied. A reader is waited for a moment alone, because the loop that times packets waits."""
    try:
        connection.execute(f"PRAGMA busy_timeout = {READER_MILLISECONDS}")
        return bool(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0)
    except (NoRoom, sqlite3.Error):  # what was to be stored is
        return False
    finally:
        connection.execute(f"PRAGMA busy_timeout = {int(1000 * BUSY_SECONDS)}")


def _demand_not_emptied(path: Path) -> None:
    """An empty file may be one that another program makes right now, so it is looked at again for a moment. One whose
    making was killed stays empty as well: only its owner knows which it is."""
    if not path.with_name("data.sqlite").exists():
        return
    for _ in range(20):
        if not _is_emptied(path):
            return
        time.sleep(0.05)
    raise Refused(
        say(
            "{path}: the file is empty, though this home holds data, and with it went what was spent and sent; "
            "restore a backup into an empty directory (`anonml peer restore FILE --home FOLDER`), or remove the file "
            "if this home never joined a study. Nothing leaves from it",
            path=whole_place(path),
        )
    )


def _is_emptied(path: Path) -> bool:
    log = path.with_name(f"{path.name}-wal")
    logged = log.exists() and log.stat().st_size > 0
    return path.exists() and path.stat().st_size == 0 and not logged
