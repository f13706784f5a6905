"""A digest of all rows of a database, renewed in each transaction by what the transaction changed.

SQLite notices a broken page, not a changed number in a whole one. The digest is the sum of a digest for each row,
modulo 2^256. Temporary triggers see each row come and go, so a transaction costs what it changes. All rows are read
once, when the file is opened. A row that is inserted may be ignored (OR IGNORE), never replaced: SQLite tells no
trigger of that.

This is no protection from somebody who can write the file: they can write the digest too.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable

from anon.storage.durable import runs_by_itself

TABLE = "CREATE TABLE whole (digest BLOB NOT NULL)"
_MODULUS = 2**256
_LISTED = "SELECT name FROM main.sqlite_master WHERE type = 'table' AND name NOT IN ('whole') ORDER BY name"


class WholeRows:
    """The digest of one connection's file, which has `TABLE`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection, self._running = connection, _RunningDigest()
        # A function that knew the connection would keep it open: no collector sees through the callbacks of sqlite3.
        connection.create_function("row_came", -1, self._running.came)
        connection.create_function("row_went", -1, self._running.went)
        self._tables = {name: self._columns(name) for (name,) in connection.execute(_LISTED).fetchall()}
        for name, columns in self._tables.items():
            came, went = (
                ", ".join([f"'{name}'", *(f"{row}.{column}" for column in columns)]) for row in ("NEW", "OLD")
            )
            for event, told in (
                ("INSERT", f"SELECT row_came({came});"),
                ("DELETE", f"SELECT row_went({went});"),
                ("UPDATE", f"SELECT row_went({went}); SELECT row_came({came});"),
            ):
                connection.execute(f"CREATE TEMP TRIGGER {event}_{name} AFTER {event} ON main.{name} BEGIN {told} END")

    def is_whole(self) -> bool:
        """True if every row is the one that was written, and the file has no trigger or view of its own."""
        sound = [row[0] for row in self._connection.execute("PRAGMA integrity_check(1)")] == ["ok"]
        return sound and not runs_by_itself(self._connection) and self._kept() == [self._read().to_bytes(32, "big")]

    def begin(self) -> None:
        """A transaction begins."""
        (self._running.total,) = (int.from_bytes(kept, "big") for kept in self._kept())

    def end(self) -> None:
        """Renew the digest inside the caller's transaction, after its last change."""
        self._connection.execute("UPDATE whole SET digest = ?", (self._running.total.to_bytes(32, "big"),))

    def _kept(self) -> list[bytes]:
        return [digest for (digest,) in self._connection.execute("SELECT digest FROM whole").fetchall()]

    def _read(self) -> int:
        total = 0
        for name, columns in self._tables.items():
            rows = self._connection.execute(f"SELECT {', '.join(columns)} FROM {name} NOT INDEXED")
            total += sum(_digest((name, *row)) for row in rows)
        return total % _MODULUS

    def _columns(self, name: str) -> tuple[str, ...]:
        return tuple(row[1] for row in self._connection.execute(f"PRAGMA main.table_info({name})").fetchall())


class _RunningDigest:
    """The digest within a transaction, as rows come and go."""

    def __init__(self) -> None:
        self.total = 0

    def came(self, *row: object) -> None:
        """A row is inserted, or stands after a change."""
        self.total = (self.total + _digest(row)) % _MODULUS

    def went(self, *row: object) -> None:
        """A row is deleted, or stood before a change."""
        self.total = (self.total - _digest(row)) % _MODULUS


def _digest(row: Iterable[object]) -> int:
    digest = hashlib.sha256()
    for value in row:
        kind, spelled = (b"b", value) if isinstance(value, bytes) else (b"v", repr(value).encode())
        # Kind and length first, so that no two rows are spelled alike. Bytes go in as they are: `repr` of long ones
        # takes ten times as long as their digest.
        digest.update(b"%s%d " % (kind, len(spelled)))
        digest.update(spelled)
    return int.from_bytes(digest.digest(), "big")
