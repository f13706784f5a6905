"""How the peer's store moves on from one schema to the next (`anon.storage.migration`). New stores begin with
`schema.sql`.

1. The first schema.
2. A pause has a row in a table of its own; before, it was an entry of `meta`.
3. Links that wait for an answer are kept (`peer.store.pending_invites`); before, they were forgotten when the page
   ended.
4. That evaluating a study's features has begun is stored before it does; before, nothing was until it had ended.
5. The shortest window to send in has a floor; before, no owner could set one, and it was 0.
6. A digest of every value is kept (`peer.store.database.integrity`); before, a changed one went unnoticed.
7. The ledger has a budget for each measure and unit; before, a word named the kind, and there was one kind.
8. A packet is kept by study, round and slot; before, by study and slot.
9. A policy that allows every design names none; before, it named those that the program of its day knew.
10. The keys of tellers are remembered by their names; before, none was.
"""

from __future__ import annotations

import json
import math
import sqlite3
from contextlib import suppress
from pathlib import Path

from anon.errors import Malformed, Refused
from anon.storage.migration import Schema, upgrade
from anon.study.manifest import parse_manifest
from peer.rules.tellers import keys_named
from peer.store.home import STORE_KEPT, PeerHome
from peer.store.pausing import TABLE
from peer.store.records import COVER_FROM

_KEY = "paused"
FIRST_FLOOR = 600
"""Seconds of the shortest window that a home of before allows from now on."""


def upgrade_home(home: PeerHome) -> Path | None:
    """Bring a home's store up to date; the copy that was kept, None when there was nothing to do.

    Raises `Refused` for a home of a newer program, and while another process runs the home.
    """
    return upgrade(home.store_path, SCHEMA, home.running)


def _pauses_in_a_table(connection: sqlite3.Connection) -> None:
    """An entry that cannot be read stays a pause without end."""
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


def _evaluation_is_journalled(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE studies ADD COLUMN evaluation TEXT")


def _windows_have_a_floor(connection: sqlite3.Connection) -> None:
    row = connection.execute("SELECT value FROM meta WHERE key = 'policy'").fetchone()
    if row is not None:
        policy = {**json.loads(row[0]), "minimum_window": FIRST_FLOOR}
        connection.execute("UPDATE meta SET value = ? WHERE key = 'policy'", (json.dumps(policy),))


def _values_have_a_digest(connection: sqlite3.Connection) -> None:
    """It is taken when the store is opened next."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('digest', '')")


def _budgets_have_units(connection: sqlite3.Connection) -> None:
    """The columns stand as in a new store, one after the other."""
    connection.execute("ALTER TABLE ledger RENAME COLUMN kind TO measure")
    connection.execute("ALTER TABLE ledger ADD COLUMN unit TEXT NOT NULL DEFAULT 'person'")
    connection.execute("ALTER TABLE ledger ADD COLUMN condition TEXT NOT NULL DEFAULT ''")


_OUTBOX = """CREATE TABLE outbox (
    study BLOB NOT NULL,
    round INTEGER NOT NULL,
    slot INTEGER NOT NULL,
    survey INTEGER NOT NULL,
    epsilon INTEGER NOT NULL,
    packet BLOB,
    digest BLOB,
    send_at REAL NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    status TEXT NOT NULL,
    word TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (study, round, slot)
) STRICT"""


def _packets_have_rounds(connection: sqlite3.Connection) -> None:
    """The round of a packet is that of its survey; cover traffic, and a study whose manifest this program refuses and
    so never answers, have round 0."""
    connection.execute("ALTER TABLE outbox RENAME TO outbox_before")
    connection.execute(_OUTBOX)
    kept = "survey, epsilon, packet, digest, send_at, attempts, status, word"
    connection.execute(f"INSERT INTO outbox SELECT study, 0, slot, {kept} FROM outbox_before")
    connection.execute("DROP TABLE outbox_before")
    for study, manifest in connection.execute("SELECT study, manifest FROM studies").fetchall():
        for survey, number in enumerate(_rounds(manifest)):
            known = (number, study, survey, COVER_FROM)
            connection.execute("UPDATE outbox SET round = ? WHERE study = ? AND survey = ? AND slot < ?", known)


def _rounds(manifest: bytes) -> tuple[int, ...]:
    try:
        return tuple(survey.round for survey in parse_manifest(manifest).surveys)
    except Malformed:
        return ()


def _all_designs_need_no_name(connection: sqlite3.Connection) -> None:
    """No surface let an owner choose among designs, so both names stand for all."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'policy'").fetchone()
    policy = json.loads(row[0]) if row is not None else {}
    if policy.get("designs") == ["one-packet", "paper"]:
        del policy["designs"]
        connection.execute("UPDATE meta SET value = ? WHERE key = 'policy'", (json.dumps(policy),))


_TELLERS = """CREATE TABLE tellers (
    name TEXT NOT NULL,
    key BLOB NOT NULL,
    PRIMARY KEY (name, key)
) STRICT"""


def _tellers_are_remembered(connection: sqlite3.Connection) -> None:
    """Those of the studies that were joined before, too."""
    connection.execute(_TELLERS)
    for (manifest,) in connection.execute("SELECT manifest FROM studies").fetchall():
        with suppress(Malformed, Refused):  # a study that this program refuses names nobody
            named = keys_named(parse_manifest(manifest))
            connection.executemany("INSERT OR IGNORE INTO tellers VALUES (?, ?)", named)


SCHEMA = Schema(
    10,
    {
        1: _pauses_in_a_table,
        2: _links_are_kept,
        3: _evaluation_is_journalled,
        4: _windows_have_a_floor,
        5: _values_have_a_digest,
        6: _budgets_have_units,
        7: _packets_have_rounds,
        8: _all_designs_need_no_name,
        9: _tellers_are_remembered,
    },
    STORE_KEPT,
)
