"""How the peer's store moves on from one schema to the next (`anon.migration`). New stores begin with `schema.sql`.

1. The first schema.
2. A pause has a row in a table of its own; before, it was an entry of `meta`.
3. Links that wait for an answer are kept (`peer.waiting`); before, they were forgotten when the page ended.
"""

from __future__ import annotations

import math
import sqlite3
from pathlib import Path

from anon.migration import Schema, upgrade
from peer.home import PeerHome
from peer.pausing import TABLE

_KEY = "paused"


def upgrade_home(home: PeerHome) -> Path | None:
    """Bring a home's store up to date; the copy that was kept, None when there was nothing to do.

    Raises `Refused` for a home of a newer program, and while another process runs the home.
    """
    return upgrade(home.store_path, SCHEMA, home.running)


def _pauses_in_a_table(connection: sqlite3.Connection) -> None:
    """What cannot be read stays a pause without end."""
    connection.execute(TABLE)
    mine = f"key = '{_KEY}' OR key LIKE '{_KEY}-%'"
    for key, value in connection.execute(f"SELECT key, value FROM meta WHERE {mine}").fetchall():
        study = bytes.fromhex(key.removeprefix(_KEY).removeprefix("-"))
        connection.execute("INSERT INTO pauses VALUES (?, ?)", (study, _end(value)))
    connection.execute(f"DELETE FROM meta WHERE {mine}")


def _end(value: str) -> float:
    try:
        until = float(value)
    except ValueError:
        return math.inf
    return until if until >= 0 else math.inf  # not a number compares false


def _links_are_kept(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE waiting (study BLOB PRIMARY KEY, link BLOB NOT NULL) STRICT")


SCHEMA = Schema(3, {1: _pauses_in_a_table, 2: _links_are_kept})
