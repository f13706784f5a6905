"""The peer's SQLite file: making it, keeping it open, and one transaction at a time.

WAL, `synchronous = FULL`: what was committed survives a power cut, and no reader holds a transaction up. BEGIN
IMMEDIATE: two consents at once, in whichever processes, are decided one after the other. `secure_delete`: what is
erased is overwritten. One connection stays open until `close`. Closing the last one costs three more syncs of the disk
than a commit does. It holds three file descriptors and a small cache.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path

from anon.errors import NoRoom
from anon.protocols.registry import Protocols
from anon.storage.durable import connect
from anon.storage.lived import DatabaseMemory
from anon.storage.migration import drop_copies, version_of
from anon.storage.private_files import made_private
from peer.rules.consent import Policy
from peer.store import rows
from peer.store.crash_points import crash_point
from peer.store.database.integrity import demand_whole, write_digest
from peer.store.database.migrations import SCHEMA
from peer.store.home import STORE_KEPT
from peer.store.manifests import Manifests

BUSY_SECONDS = 30.0
READER_MILLISECONDS = 250
_ERASING = frozenset({"consent", "release", "answer", "end", "leaving", "withdrawal", "policy"})
"""Transactions that may erase, and a consent, whose reservation a lost log would forget. The log, which still has what
the file has not, is emptied after them, or after the next where a reader was in the way. Copies that a migration kept
go before."""


class StoreFile:
    """One store's file, made when there is none. `random_bytes` names a new installation; `policy` is its first.

    Raises `Refused` for a file of another program's schema; `peer.store.database.migrations.upgrade_home` brings one up
    to date. Raises `Damaged` for a file that is emptied or older than the last one (`anon.storage.lived`). It would be
    taken for a home whose budget nobody has spent.
    """

    def __init__(
        self,
        path: Path,
        random_bytes: Callable[[int], bytes],
        policy: Policy | None = None,
        protocols: Protocols | None = None,
    ) -> None:
        self._path = path
        self._opened: sqlite3.Connection | None = None
        self._manifests = Manifests(protocols)
        self._file: tuple[int, int] | None = None
        self._log_holds_erased = False
        """Something that was erased still stands in the log: a reader was in the way."""
        self._lived = DatabaseMemory(path, STORE_KEPT)
        known = self._lived.known()
        SCHEMA.demand_own(path)
        if version_of(path, STORE_KEPT) == 0:  # also one whose making was killed
            self._lived.demand(known, None)
            self._create(random_bytes(16).hex(), policy or Policy())
        else:
            demand_whole(self._connection, path)
            self._lived.demand(known, generation(self._connection))
        if known is None:
            self._lived.remember(generation(self._connection))

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
            status = os.stat(self._path)  # noqa: PTH116  a third of the time, several times a step
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
            number = generation(connection)
            write_digest(connection)
        except BaseException:
            if connection.in_transaction:  # a full disk may have ended it
                connection.execute("ROLLBACK")
            raise
        if what in _ERASING:
            drop_copies(self._path)
        crash_point(f"before-commit-of-{what}")
        self._commit(connection)
        self._lived.remember(number)
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


def generation(connection: sqlite3.Connection) -> int:
    """The number of the last transaction."""
    return int(connection.execute("SELECT value FROM meta WHERE key = 'generation'").fetchone()[0])
