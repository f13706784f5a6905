"""A file beside a database that remembers that it lived, and how far it came.

A database that is missing, emptied, without its log or put back to an earlier day begins with less than was promised:
spent budget is back, published studies are unknown, a sum is signed twice. None of it can be seen in the database. So
the number of its last transaction is written beside it after each commit, and one that is behind it is told. The file
is behind the database after a crash, never before it, and one that cannot be read, half written too, is like number 0.
No sync is waited for.

Not protected: an owner who removes both, or puts both back.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from contextlib import suppress
from pathlib import Path

from anon.storage.durable import KeptFile
from anon.storage.open_elsewhere import read_file
from anon.storage.private_files import open_private
from anon.text.sentences import say
from anon.values import frozen

ENDING = ".lived"
DIGITS = 20
"""Of the number: every content is as long as every other, and is written in place."""
COUNT = "PRAGMA application_id"
"""The header's number, in which a database that has no count of its own counts its transactions."""


@frozen
class DatabaseMemory:
    """The memory of one database's file."""

    database: Path
    kept: KeptFile

    @property
    def file(self) -> Path:
        """The place that remembers."""
        return self.database.with_name(self.database.name + ENDING)

    def known(self) -> int | None:
        """The number of the last transaction; None where no database lived. To be read before the database is. Raises
        `Refused` where another program shares the file with nobody."""
        try:
            number, _, digest = read_file(self.file).strip().partition(b" ")
        except OSError:
            return 0 if self.file.exists() else None
        return int(number) if number.isdigit() and digest == _digest(number) else 0

    def demand(self, known: int | None, stored: int | None) -> None:
        """Raises `Damaged` for a database that is behind what was known. `stored`: its number, None without any."""
        if known is not None and stored is None:
            raise self.kept.damaged(self.database, say("missing or emptied, though this home had one"))
        if known is not None and stored is not None and stored < known:
            raise self.kept.damaged(self.database, say("older than the one that was written last"))

    def remember(self, number: int) -> None:
        """This transaction was committed. A file that cannot be written now is written after the next one."""
        text = f"{number:0{DIGITS}}".encode()
        with suppress(OSError):
            descriptor = open_private(self.file)
            try:
                os.write(descriptor, text + b" " + _digest(text) + b"\n")
            finally:
                os.close(descriptor)

    def forget(self) -> None:
        """Another database begins in the place of this one, by its owner's word."""
        self.file.unlink(missing_ok=True)


def count(connection: sqlite3.Connection) -> int:
    """The number of transactions of a database that has no count of its own, in its header (application_id)."""
    return int(connection.execute(COUNT).fetchone()[0])


def counted(connection: sqlite3.Connection) -> int:
    """The same, one more, inside the caller's transaction."""
    number = count(connection) + 1
    connection.execute(f"{COUNT} = {number}")
    return number


def _digest(number: bytes) -> bytes:
    return hashlib.sha256(b"lived " + number).hexdigest()[:16].encode()
