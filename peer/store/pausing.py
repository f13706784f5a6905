"""A pause: the owner's word that nothing of a study, or of the whole home, is done until an instant.

It is as if the machine were off until then: nothing is fetched, made or sent. A window that passes meanwhile is missed
by the rule of `peer.rules.schedule`. A packet that was never made costs nothing, one in the outbox stays charged. It is
kept in the store, so it holds through restarts and for every process that runs the home. An end that is none counts as
a pause without end: a spoilt entry must never let a packet out. Every function works inside the caller's transaction.
"""

from __future__ import annotations

import math
import sqlite3

FOREVER = math.inf
"""The end of a pause whose entry is spoilt; only `write` (resuming) ends it."""
TABLE = "CREATE TABLE pauses (study BLOB PRIMARY KEY, until REAL NOT NULL) STRICT"
"""Of the schema's second step. The home's own pause has an empty study."""
_HOME = b""


def read(connection: sqlite3.Connection, study: bytes | None) -> float:
    """Unix seconds until which this study, or with None the home itself, is paused; 0.0 when it never was."""
    row = connection.execute("SELECT until FROM pauses WHERE study = ?", (study or _HOME,)).fetchone()
    if row is None:
        return 0.0
    until = float(row[0])
    return until if until >= 0 else FOREVER


def write(connection: sqlite3.Connection, study: bytes | None, until: float | None) -> None:
    """Pause until then, or with None not any more."""
    if until is None:
        connection.execute("DELETE FROM pauses WHERE study = ?", (study or _HOME,))
    else:
        connection.execute("INSERT OR REPLACE INTO pauses VALUES (?, ?)", (study or _HOME, float(until)))
