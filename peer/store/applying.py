"""Moving a stored study on by an event, with its effects. Every function works inside the caller's transaction."""

from __future__ import annotations

import sqlite3

from anon.text.sentences import to_store
from peer.rules.lifecycle import Effect, Event, State, move
from peer.rules.packet_lifecycle import PacketEvent, Status, move_packet
from peer.store import rows
from peer.store.records import COVER_FROM


def apply(connection: sqlite3.Connection, study: bytes, event: Event, reason: str = "") -> None:
    """Move a study on by the table of `peer.rules.lifecycle`. Raises `Unlisted` for an event that cannot happen now."""
    row = connection.execute("SELECT state FROM studies WHERE study = ?", (study,)).fetchone()
    moved = move(State(row["state"]), event)
    for effect in moved.effects:
        if effect is Effect.RETURN_REST:
            rows.write_entry(connection, rows.read_ledger(connection).return_rest(study), study)
        else:
            erase(connection, study)
    connection.execute(
        "UPDATE studies SET state = ?, reason = coalesce(nullif(?, ''), reason) WHERE study = ?",
        (moved.state, to_store(reason), study),
    )


def erase(connection: sqlite3.Connection, study: bytes) -> None:
    """Packets, snapshot and secrets go, and the times at which anything left, which could tell what was this peer's.
    A packet that was still queued is never sent; its charge stays."""
    connection.execute(
        "UPDATE studies SET secrets = NULL, enrolment = NULL, withdrawal = NULL, seed = NULL, credential = NULL, "
        "snapshot = NULL, evaluation = NULL, due = 0 WHERE study = ?",
        (study,),
    )
    connection.execute("DELETE FROM outbox WHERE study = ? AND slot >= ?", (study, COVER_FROM))
    stopped = move_packet(Status.QUEUED, PacketEvent.STUDY_ENDED).status
    known = (stopped, study, Status.QUEUED)
    connection.execute("UPDATE outbox SET status = ? WHERE study = ? AND status = ?", known)
    connection.execute("UPDATE outbox SET packet = NULL, digest = NULL, send_at = 0 WHERE study = ?", (study,))
