"""A pause: the owner's word that nothing of a study, or of the whole home, is done until an instant.

It is as if the machine were off until then: nothing is fetched, made or sent, and a window that passes meanwhile is
missed by the rule of `peer.schedule` (a packet that was never made costs nothing, one in the outbox stays charged). It
is kept in the store, so it holds through restarts and for every process that runs the home. What cannot be read counts
as a pause without an end: a spoilt entry must never let a packet out. Every function works inside the caller's
transaction.
"""

from __future__ import annotations

import math
import sqlite3

FOREVER = math.inf
"""The end of a pause whose entry cannot be read; only `write` (resuming) ends it."""
_KEY = "paused"


def read(connection: sqlite3.Connection, study: bytes | None) -> float:
    """Unix seconds until which this study, or with None the home itself, is paused; 0.0 when it never was."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (_key(study),)).fetchone()
    if row is None:
        return 0.0
    try:
        until = float(row[0])
    except (TypeError, ValueError):
        return FOREVER
    return until if until >= 0 else FOREVER  # not a number compares false


def write(connection: sqlite3.Connection, study: bytes | None, until: float | None) -> None:
    """Pause until then, or with None not any more."""
    if until is None:
        connection.execute("DELETE FROM meta WHERE key = ?", (_key(study),))
    else:
        connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_key(study), repr(float(until))))


def _key(study: bytes | None) -> str:
    return _KEY if study is None else f"{_KEY}-{study.hex()}"
