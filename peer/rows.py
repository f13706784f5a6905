"""How the store's values stand in its tables (`schema.sql`), and back. Every function works inside the caller's
transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

import attrs

from anon.documents import SignedHead, encode_chain
from anon.errors import Conflict
from anon.ldp import NanoEpsilon
from anon.messages import SealedPacket
from anon.study.structure import make_converter, structure
from peer.consent import Policy
from peer.ledger import Entry, Ledger
from peer.records import Queued, Status, Study
from peer.session import State

_POLICY = make_converter()


def read_policy(connection: sqlite3.Connection) -> Policy:
    """The owner's policy. Raises `Malformed` for one that this program could not have written."""
    text = connection.execute("SELECT value FROM meta WHERE key = 'policy'").fetchone()[0]
    return structure(_POLICY, json.loads(text), Policy, "stored policy")


def write_policy(connection: sqlite3.Connection, policy: Policy) -> None:
    """Replace the owner's policy."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('policy', ?)", (json.dumps(attrs.asdict(policy)),))


def read_ledger(connection: sqlite3.Connection) -> Ledger:
    """The ledger under the lifetime budget of the policy."""
    rows = connection.execute("SELECT study, title, aggregator, data_set, reserved, spent, kind FROM ledger").fetchall()
    return Ledger(read_policy(connection).lifetime, tuple(Entry(*row) for row in rows))


def write_entry(connection: sqlite3.Connection, ledger: Ledger, study: bytes) -> None:
    """Store what the ledger says of a study, if anything."""
    entry = ledger.entry(study)
    if entry is not None:
        insert(connection, "ledger", attrs.asdict(entry), "INSERT OR REPLACE")


def write_chain(connection: sqlite3.Connection, study: bytes, chain: Sequence[SignedHead]) -> None:
    """Store a study's heads."""
    update_study(connection, study, {"chain": encode_chain(chain)})


def insert(connection: sqlite3.Connection, table: str, columns: dict[str, Any], verb: str = "INSERT") -> None:
    """Add a row. Raises `Conflict` where the table's keys or checks forbid it."""
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))
    try:
        connection.execute(f"{verb} INTO {table} ({names}) VALUES ({marks})", tuple(columns.values()))
    except sqlite3.IntegrityError:
        raise Conflict(f"{table}: this was decided before; nothing is sent twice") from None


def update_study(connection: sqlite3.Connection, study: bytes, columns: dict[str, Any]) -> None:
    """Set columns of a study."""
    changes = ", ".join(f"{name} = ?" for name in columns)
    connection.execute(f"UPDATE studies SET {changes} WHERE study = ?", (*columns.values(), study))


def to_study(row: sqlite3.Row) -> Study:
    """A row of `studies`."""
    return Study(
        study=row["study"],
        address=row["address"],
        aggregator=row["aggregator"],
        manifest_bytes=row["manifest"],
        state=State(row["state"]),
        reason=row["reason"],
        consented=NanoEpsilon(row["consented"]),
        minimum_cohort=row["minimum_cohort"],
        secrets=row["secrets"],
        enrolment=row["enrolment"],
        withdrawal=row["withdrawal"],
        due=row["due"],
        chain_bytes=row["chain"],
        roster_digest=row["roster_digest"],
        seed=row["seed"],
        credential=row["credential"],
        draws=tuple(map(int, row["draws"].split(","))) if row["draws"] else (),
        snapshot=row["snapshot"],
        barred=bool(row["barred"]),
    )


def to_queued(row: sqlite3.Row) -> Queued:
    """A row of `outbox`."""
    return Queued(
        slot=row["slot"],
        survey=row["survey"],
        epsilon=NanoEpsilon(row["epsilon"]),
        sealed=SealedPacket(row["packet"]) if row["packet"] is not None else None,
        digest=row["digest"],
        send_at=row["send_at"],
        attempts=row["attempts"],
        status=Status(row["status"]),
        word=row["word"],
    )
