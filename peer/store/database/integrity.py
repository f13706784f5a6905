"""Proof that this program wrote the peer's store: a digest of every value, renewed in each transaction.

SQLite notices a broken page, not a changed number in a whole one, and a ledger that lost a bit would give budget back.
Left out are manifests, chains of heads and evidence, which are long and carry digests and signatures of their own. An
aggregator decides how long they are, so what it sent to one study must cost the transactions of others nothing.

This is no protection from somebody who can write the file: they can write the digest too.
"""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

from anon.storage.durable import reading, runs_by_itself
from anon.text.sentences import Term, say
from anon.wire.cbor import encode
from peer.store.home import STORE_KEPT

KEY = "digest"
_SHOWN: dict[tuple[str, str], str] = {}
"""The columns of each table that are digested, by its name and the statement that made it."""
_WITH_THEIR_OWN = {("studies", "manifest"), ("studies", "chain"), ("evidence", "proof")}


def write_digest(connection: sqlite3.Connection) -> None:
    """Renew the digest, inside the caller's transaction, after its last change."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (KEY, _digest(connection)))


def demand_whole(connection: sqlite3.Connection, file: Path) -> None:
    """Raises `Damaged` unless every value is the one that was written."""
    if [row[0] for row in connection.execute("PRAGMA integrity_check(1)")] != ["ok"]:  # indexes too, unlike quick_check
        raise STORE_KEPT.damaged(file, Term("integrity_check"))
    if runs_by_itself(connection):
        raise STORE_KEPT.damaged(file, say("a trigger or a view"))
    connection.execute("BEGIN IMMEDIATE")
    try:
        with reading(file, STORE_KEPT, Term("digest")):
            (kept,) = connection.execute("SELECT value FROM meta WHERE key = ?", (KEY,)).fetchone()
            if _number(connection) != kept.split(":")[0]:  # it was just brought up to date
                write_digest(connection)
            elif kept != _digest(connection):
                raise STORE_KEPT.damaged(file, say("a value in it is not the one that was written"))
    finally:
        if connection.in_transaction:
            connection.execute("COMMIT")


def _digest(connection: sqlite3.Connection) -> str:
    digest = hashlib.sha256()
    listed = "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name"
    for name, sql in connection.execute(listed).fetchall():
        digest.update(encode([name, sql]))
        if (name, sql) not in _SHOWN:
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{name}")').fetchall()]
            _SHOWN[name, sql] = ", ".join(f'"{column}"' for column in columns if (name, column) not in _WITH_THEIR_OWN)
        shown = _SHOWN[name, sql]
        # The table's own copy of a key is read, not its index's: `integrity_check` compares the two.
        for row in connection.execute(f'SELECT {shown} FROM "{name}" NOT INDEXED ORDER BY 1, 2').fetchall():
            if (name, row[0]) != ("meta", KEY):
                digest.update(encode(list(row)))
    return f"{_number(connection)}:{digest.hexdigest()}"


def _number(connection: sqlite3.Connection) -> str:
    """Of the schema. A digest of another one says nothing about this."""
    return str(connection.execute("PRAGMA user_version").fetchone()[0])
