"""How the aggregator's database moves on from one schema to the next (`anon.storage.migration`). The tables are those
of `studies`, `enrolments` and `packets`.

0. The first schema, which had no number.
1. The same with a number, so that an older program's database is told from a newer one's.
2. A table of sealed shares beside the packets.
3. A table of how many are enrolled.
4. A table of the buckets of documents.
5. A table of how many answers were given.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from aggregator.store.home import KEPT, Home
from anon.storage.migration import Schema, upgrade


def upgrade_home(home: Home) -> Path | None:
    """Bring a home's database up to date; the copy that was kept, None when there was nothing to do.

    Raises `Refused` for the database of a newer program, and while an older one serves the home.
    """
    return upgrade(home.database, SCHEMA, lambda: closing(home.lock()))


def _numbered(_connection: sqlite3.Connection) -> None:
    """Nothing but the number changes."""


def _shares(connection: sqlite3.Connection) -> None:
    """None of the packets that are there has shares."""
    connection.execute(
        "CREATE TABLE packet_shares (study BLOB NOT NULL, slot INTEGER NOT NULL, teller INTEGER NOT NULL, "
        "tag BLOB NOT NULL, share BLOB NOT NULL, PRIMARY KEY (study, slot, teller, tag)) WITHOUT ROWID"
    )


def _counted(connection: sqlite3.Connection) -> None:
    """The rows are counted this once."""
    connection.execute(
        "CREATE TABLE enrolled (study BLOB NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (study)) WITHOUT ROWID"
    )
    connection.execute("INSERT INTO enrolled SELECT study, count(*) FROM enrolments GROUP BY study")


def _bucketed(connection: sqlite3.Connection) -> None:
    """No document that is there has buckets."""
    connection.execute(
        "CREATE TABLE buckets (study BLOB NOT NULL, number INTEGER NOT NULL, bucket INTEGER NOT NULL, "
        "leaf BLOB NOT NULL, entries INTEGER NOT NULL, content BLOB NOT NULL, "
        "PRIMARY KEY (study, number, bucket)) WITHOUT ROWID"
    )


def _answered(connection: sqlite3.Connection) -> None:
    """Earlier answers were counted in memory alone."""
    connection.execute(
        "CREATE TABLE answers (study BLOB NOT NULL, kind VARCHAR NOT NULL, word VARCHAR NOT NULL, "
        "number INTEGER NOT NULL, PRIMARY KEY (study, kind, word)) WITHOUT ROWID"
    )


SCHEMA = Schema(5, {0: _numbered, 1: _shares, 2: _counted, 3: _bucketed, 4: _answered}, KEPT)
