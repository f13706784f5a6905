"""Files that another program has open: Windows neither replaces nor removes them until it is closed, nor opens them
where that program shares them with nobody.

A virus scanner, a search index or a synchronised folder opens a file for moments only. So the same is tried again, for
a bounded time; then the owner is told. On other systems no open file hinders anything.
"""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from anon.errors import Refused
from anon.text.foreign import whole_place
from anon.text.sentences import say

T = TypeVar("T")
Database = TypeVar("Database", bound=sqlite3.Connection)
TRIES = 40
PAUSE = 0.05
"""Seconds between two tries: two seconds in all."""


def replace_file(path: Path, fresh: Path) -> None:
    """Give the fresh file this name, in place of what has it. Raises `Refused` where that stays open."""
    once_closed(lambda: fresh.replace(path), path)


def unlink_file(path: Path) -> None:
    """Unlink a file if there is one. Raises `Refused` where it stays open."""
    once_closed(lambda: path.unlink(missing_ok=True), path)


def read_file(path: Path) -> bytes:
    """The content of a file. Raises `FileNotFoundError`, and `Refused` where another program shares it with nobody."""
    return once_closed(path.read_bytes, path)


def once_closed(act: Callable[[], T], path: Path) -> T:
    """The result of what is done to a file of ours, tried again. Raises `Refused` where that stays open."""
    for _ in range(TRIES):
        try:
            return act()
        except PermissionError:
            if not hinders():
                raise
            time.sleep(PAUSE)
    raise Refused(
        say(
            "{file}: another program has this file open, or it may not be written to; close that program and try again",
            file=whole_place(path),
        )
    )


def opened_to_write(connect: Callable[[], Database]) -> Database:
    """A connection that may write, where one can be had. On Windows SQLite opens a file for reading alone that another
    program shares with nobody, or its log, and never asks again: that connection is closed, and another is made.

    Raises what `connect` does.
    """
    for _ in range(TRIES if hinders() else 0):
        with suppress(sqlite3.OperationalError):
            connection = connect()
            if not _reads_alone(connection):
                return connection
            connection.close()
        time.sleep(PAUSE)
    return connect()


def _reads_alone(connection: sqlite3.Connection) -> bool:
    """True where nothing can be written, whatever the owner does. Another fault is the caller's.

    SQLite takes BEGIN IMMEDIATE for BEGIN there. This statement begins to write, and then has nothing to do. It waits
    for no other writer: a file that has one can be written.
    """
    cursor = sqlite3.Cursor(connection)
    (patience,) = cursor.execute("PRAGMA busy_timeout").fetchone()
    try:
        cursor.execute("PRAGMA busy_timeout = 0")
        cursor.execute("PRAGMA incremental_vacuum").fetchall()
    except sqlite3.Error as error:
        return error.sqlite_errorname.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN"))
    finally:
        cursor.execute(f"PRAGMA busy_timeout = {patience}")
    return False


def hinders() -> bool:
    """True where an open file is neither replaced nor removed."""
    return sys.platform == "win32"
