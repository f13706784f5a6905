"""How the store's values stand in its tables (`schema.sql`), and back. Every function works inside the caller's
transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import attrs

from anon.errors import Conflict, Malformed
from anon.ldp import NanoEpsilon
from anon.storage.durable import reading
from anon.study.structuring import make_converter, structure
from anon.text.sentences import Term, attributed, from_store, say, to_store
from anon.transparency.documents import SignedHead, encode_chain, parse_chain
from anon.wire.packets import SealedPacket
from peer.rules.consent import Policy
from peer.rules.ledger import Entry, Ledger
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from peer.store.home import STORE_KEPT
from peer.store.manifests import Manifests
from peer.store.records import (
    AnsweringStudy,
    ConsentedStudy,
    DecidedStudy,
    EndedStudy,
    EnrolledStudy,
    EvaluatingStudy,
    Evaluation,
    LeavingStudy,
    OutboxEntry,
    PacketKey,
    SentStudy,
    Study,
)

_POLICY = make_converter()
Given = ParamSpec("Given")
Value = TypeVar("Value")


def stored(read: Callable[Given, Value]) -> Callable[Given, Value]:
    """Every value that is read out of a row is read so: what this program could not have written is damage."""

    what = attributed(read.__name__.removeprefix("read_").removeprefix("to_"))

    @wraps(read)
    def told(*given: Given.args, **named: Given.kwargs) -> Value:
        with reading("peer.sqlite", STORE_KEPT, what):
            return read(*given, **named)

    return told


@stored
def read_policy(connection: sqlite3.Connection) -> Policy:
    """The owner's policy. Raises `Damaged` for one that this program could not have written."""
    text = connection.execute("SELECT value FROM meta WHERE key = 'policy'").fetchone()[0]
    return structure(_POLICY, json.loads(text), Policy, "stored policy")


def write_policy(connection: sqlite3.Connection, policy: Policy) -> None:
    """Replace the owner's policy."""
    text = json.dumps(attrs.asdict(policy))
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('policy', ?)", (text,))


@stored
def read_ledger(connection: sqlite3.Connection) -> Ledger:
    """The ledger under the lifetime limits of the policy."""
    policy, columns = read_policy(connection), ", ".join(attrs.fields_dict(Entry))
    rows = connection.execute(f"SELECT {columns} FROM ledger").fetchall()
    return Ledger(policy.lifetime, tuple(Entry(*_read(row)) for row in rows), policy.lifetimes())


def _read(row: sqlite3.Row) -> list[Any]:
    return [from_store(value) if isinstance(value, str) else value for value in row]


def write_entry(connection: sqlite3.Connection, ledger: Ledger, study: bytes) -> None:
    """Store what the ledger says of a study, if anything."""
    entry = ledger.entry(study)
    if entry is not None:
        insert(connection, "ledger", attrs.asdict(entry), "INSERT OR REPLACE")


def entries_of_no_study(connection: sqlite3.Connection) -> list[bytes]:
    """The entries that hold a reservation for something else than a study: what may leave for it, this store does not
    know."""
    listed = "SELECT study FROM ledger WHERE reserved > 0 AND study NOT IN (SELECT study FROM studies)"
    return [row["study"] for row in connection.execute(listed).fetchall()]


def write_chain(connection: sqlite3.Connection, study: bytes, chain: Sequence[SignedHead]) -> None:
    """Store a study's heads."""
    update_study(connection, study, {"chain": encode_chain(chain)})


@stored
def read_chain(
    connection: sqlite3.Connection, study: bytes, known: Sequence[SignedHead] = ()
) -> tuple[SignedHead, ...]:
    """A study's heads. The signatures of those `known` were verified before."""
    row = connection.execute("SELECT aggregator, chain FROM studies WHERE study = ?", (study,)).fetchone()
    return parse_chain(row["chain"], row["aggregator"], study, known) if row["chain"] else ()


def insert(connection: sqlite3.Connection, table: str, columns: dict[str, Any], verb: str = "INSERT") -> None:
    """Add a row, sentences with their parts. Raises `Conflict` where the table's keys or checks forbid it."""
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))
    values = tuple(to_store(value) if isinstance(value, str) else value for value in columns.values())
    try:
        connection.execute(f"{verb} INTO {table} ({names}) VALUES ({marks})", values)
    except sqlite3.IntegrityError:
        raise Conflict(say("{table}: this was decided before; nothing is sent twice", table=Term(table))) from None


def update_study(connection: sqlite3.Connection, study: bytes, columns: dict[str, Any]) -> None:
    """Set columns of a study."""
    changes = ", ".join(f"{name} = ?" for name in columns)
    connection.execute(f"UPDATE studies SET {changes} WHERE study = ?", (*columns.values(), study))


def update_packet(connection: sqlite3.Connection, study: bytes, key: PacketKey, columns: dict[str, Any]) -> None:
    """Set columns of a packet in the outbox."""
    changes = ", ".join(f"{name} = ?" for name in columns)
    where = "WHERE study = ? AND round = ? AND slot = ?"
    connection.execute(f"UPDATE outbox SET {changes} {where}", (*columns.values(), study, *key))


@stored
def to_study(row: sqlite3.Row, manifests: Manifests) -> Study:
    """A row of `studies`, as its state has it; its manifest is one of these."""
    made = _CLASSES.get(State(row["state"]), EndedStudy)
    if State(row["state"]) is State.CHECKED:
        made = EvaluatingStudy if row["evaluation"] else AnsweringStudy if row["snapshot"] is not None else DecidedStudy
    values: dict[str, Any] = {
        "study": row["study"],
        "address": row["address"],
        "aggregator": row["aggregator"],
        "manifest_bytes": row["manifest"],
        "state": State(row["state"]),
        "reason": from_store(row["reason"]),
        "consented": NanoEpsilon(row["consented"]),
        "minimum_cohort": row["minimum_cohort"],
        "chain_bytes": row["chain"] or b"",
        "draws": tuple(map(int, row["draws"].split(","))) if row["draws"] else (),
        "barred": bool(row["barred"]),
        "manifests": manifests,
    }
    own = {name: row[name] for name in attrs.fields_dict(made) if name not in values}
    if "evaluation" in own:
        own["evaluation"] = Evaluation.from_text(own["evaluation"])
    for name in own.keys() - {"snapshot"}:
        if own[name] is None:
            raise Malformed(f"{name}: nothing is stored, and a study that is {row['state']} has one")
    return made(**values, **own)


_CLASSES: dict[State, type[Study]] = {
    State.CONSENTED: ConsentedStudy,
    State.ENROLLED: EnrolledStudy,
    State.SENT: SentStudy,
    State.LEAVING: LeavingStudy,
}


@stored
def to_outbox_entry(row: sqlite3.Row) -> OutboxEntry:
    """A row of `outbox`."""
    return OutboxEntry(
        slot=row["slot"],
        survey=row["survey"],
        epsilon=NanoEpsilon(row["epsilon"]),
        sealed=SealedPacket(row["packet"]) if row["packet"] is not None else None,
        digest=row["digest"],
        send_at=row["send_at"],
        attempts=row["attempts"],
        status=Status(row["status"]),
        word=row["word"],
        round=row["round"],
    )
