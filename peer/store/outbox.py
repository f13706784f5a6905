"""The outbox: packets are journalled with their charge before any byte leaves, and move along their table alone
(`peer.rules.packet_lifecycle`). Every method that writes is one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from anon.errors import Conflict
from anon.protocols.contract import Place
from anon.text.sentences import say
from anon.values import frozen
from anon.wire.packets import SealedPacket
from peer.rules.lifecycle import Event, State, Unlisted
from peer.rules.packet_lifecycle import PacketEffect, PacketEvent, move_packet
from peer.store import rows
from peer.store.applying import apply
from peer.store.database.store_file import StoreFile
from peer.store.records import COVER_FROM, EvaluatingStudy, Evaluation, OutboxEntry, PacketKey, Study, VerifiedEnrolment

if TYPE_CHECKING:
    from peer.release import ReleasedPacket  # a command that only shows does without it and what it checks

_ATTEMPTS = {PacketEffect.COUNT: 1, PacketEffect.UNCOUNT: -1}


@frozen
class ScheduledPacket:
    """A finished packet and when it is to leave."""

    released: ReleasedPacket
    send_at: float


@frozen
class Covering:
    """A departure in place of a packet that another draw would have put there, the window's first survey, and when.

    A finished dummy, or in a study without cover a blank: nothing leaves for it but the look at the heads before it.
    """

    sealed: SealedPacket | None
    survey: int
    send_at: float


class OutboxStore(StoreFile):
    """The part of the store that journals packets and keeps what became of them."""

    def record_verified(
        self, study: bytes, verified: VerifiedEnrolment, evaluation: Evaluation, cover: Sequence[Covering] = ()
    ) -> None:
        """All checks passed: store what they established, and that evaluating the features begins. It is begun once:
        whoever finds it begun after a crash goes on as if every value were missing."""
        with self._writing("evaluation") as connection:
            apply(connection, study, Event.CHECKS_PASSED)
            columns = {
                "chain": verified.chain_bytes,
                "roster_digest": verified.roster_digest,
                "seed": verified.seed,
                "credential": verified.credential,
                "draws": ",".join(map(str, verified.draws)),
                "evaluation": evaluation.to_text(),
            }
            rows.update_study(connection, study, columns)
            _cover(connection, study, cover)

    def record_answering(self, study: bytes, evaluation: Evaluation, cover: Sequence[Covering] = ()) -> None:
        """The documents of a later window were checked: store that making its packets begins. It is begun once.

        Raises `Conflict` when it was begun before, or the study was ended meanwhile; then nothing is stored.
        """
        with self._writing("evaluation") as connection:
            if isinstance(self._checked(connection, study), EvaluatingStudy):
                raise Conflict(say("this study was evaluated before; nothing is evaluated twice"))
            rows.update_study(connection, study, {"evaluation": evaluation.to_text()})
            _cover(connection, study, cover)

    def record_evaluated(
        self,
        study: bytes,
        snapshot: bytes,
        packets: Sequence[ScheduledPacket],
        missed: Sequence[int],
        secrets: bytes | None = None,
    ) -> None:
        """The deadline has come: store the snapshot, and charges and finished packets together, before any byte leaves.
        `secrets`: closed by the vault, where the answers fixed more of them.

        Raises `Conflict` when that was done before, or the study was ended meanwhile, `Refused` when the reservation
        does not cover it; then nothing is stored.
        """
        with self._writing("release") as connection:
            known = self._checked(connection, study)
            if not isinstance(known, EvaluatingStudy):
                raise Conflict(say("this study was evaluated before; nothing is evaluated twice"))
            kept = {} if secrets is None else {"secrets": secrets}
            rows.update_study(connection, study, {"snapshot": snapshot, "evaluation": None, **kept})
            _journal(connection, known, packets, missed)

    def journal(
        self,
        study: bytes,
        packets: Sequence[ScheduledPacket],
        missed: Sequence[int],
        events: Iterable[Event] = (),
        cover: Sequence[Covering] = (),
    ) -> None:
        """Commit charges and finished packets together, before any byte leaves, the slots that were missed, and cover.

        Raises `Conflict` for a slot that was decided before, `Refused` when the reservation does not cover it; then
        nothing is stored.
        """
        with self._writing("release") as connection:
            _journal(connection, self._checked(connection, study), packets, missed)
            _cover(connection, study, cover)
            for event in events:
                apply(connection, study, event)

    def outbox(self, study: bytes) -> list[OutboxEntry]:
        """Every decided slot of the study, in the order of slots."""
        return [entry for entry in self.outbox_entries(study) if entry.slot < COVER_FROM]

    def outbox_entries(self, study: bytes) -> list[OutboxEntry]:
        """Every decided slot, then every dummy and blank that was journalled."""
        stored = self._rows("SELECT * FROM outbox WHERE study = ? ORDER BY slot, round", study)
        return [rows.to_outbox_entry(row) for row in stored]

    def attempt(self, study: bytes, key: PacketKey, retry_at: float) -> None:
        """Count an attempt before its first byte leaves, and store when the retry is due if no answer comes.

        Raises `Conflict` when the packet is not queued any more.
        """
        with self._writing("attempt") as connection:
            _move(connection, study, key, PacketEvent.ATTEMPTED, {"send_at": retry_at})

    def not_attempted(self, study: bytes, key: PacketKey, send_at: float) -> None:
        """No byte of the attempt can have left: it does not count, and the packet has this time now."""
        with self._writing("redraw") as connection:
            _move(connection, study, key, PacketEvent.NOT_CONNECTED, {"send_at": send_at})

    def redraw(self, study: bytes, key: PacketKey, send_at: float) -> None:
        """A new time for a packet that stays queued."""
        with self._writing("redraw") as connection:
            _move(connection, study, key, PacketEvent.REDRAWN, {"send_at": send_at})

    def record_reply(
        self, study: bytes, key: PacketKey, event: PacketEvent, word: str, events: Iterable[Event] = ()
    ) -> None:
        """The fate of a packet, and what follows from it for the study. Raises `Conflict` for one that was settled
        before."""
        with self._writing("answer") as connection:
            _move(connection, study, key, event, {"word": word})
            for study_event in events:
                apply(connection, study, study_event)

    def settle(self, study: bytes, events: Iterable[Event]) -> None:
        """Every slot is decided and none is queued: what follows for the study."""
        with self._writing("end") as connection:
            for event in events:
                apply(connection, study, event)

    def receive(self, study: bytes, results: Mapping[Place, bytes]) -> None:
        """Keep the results that are this member's alone."""
        with self._writing("end") as connection:
            for (kind, part), body in results.items():
                columns = {"study": study, "kind": kind, "part": part, "body": body}
                rows.insert(connection, "received", columns, "INSERT OR REPLACE")

    def received(self, study: bytes) -> dict[Place, bytes]:
        """The results of a study that are this member's alone, each in its one spelling."""
        stored = self._rows("SELECT * FROM received WHERE study = ? ORDER BY kind, part", study)
        return {(row["kind"], row["part"]): row["body"] for row in stored}

    def inclusion(self, study: bytes, found: Mapping[PacketKey, PacketEvent], reason: str) -> None:
        """The findings about each slot in the transcript; the study is over."""
        with self._writing("end") as connection:
            for key, event in found.items():
                _move(connection, study, key, event)
            apply(connection, study, Event.INCLUSION_SETTLED, reason)

    def _checked(self, connection: sqlite3.Connection, study: bytes) -> Study:
        row = connection.execute("SELECT * FROM studies WHERE study = ?", (study,)).fetchone()
        if State(row["state"]) is not State.CHECKED:
            raise Conflict(say("the study was ended meanwhile; nothing is sent"))
        return rows.to_study(row, self._manifests)


def _move(
    connection: sqlite3.Connection, study: bytes, key: PacketKey, event: PacketEvent, columns: Mapping[str, Any] = {}
) -> None:
    """Move a packet on by its table, and set these columns. Raises `Conflict` where the table has no such move."""
    query = "SELECT * FROM outbox WHERE study = ? AND round = ? AND slot = ?"
    row = connection.execute(query, (study, *key)).fetchone()
    known = rows.to_outbox_entry(row) if row is not None else None
    try:
        moved = move_packet(known.status if known else None, event)
    except Unlisted:
        raise Conflict(say("this packet is no longer in the outbox; nothing was sent")) from None
    if known is None or (PacketEffect.COUNT in moved.effects and known.sealed is None):
        raise Conflict(say("there is no such packet in the outbox; nothing was sent"))
    attempts = known.attempts + sum(_ATTEMPTS.get(effect, 0) for effect in moved.effects)
    rows.update_packet(connection, study, key, {"status": moved.status, "attempts": max(0, attempts), **columns})


def _journal(
    connection: sqlite3.Connection, known: Study, packets: Sequence[ScheduledPacket], missed: Sequence[int]
) -> None:
    """A slot answers the survey that it drew, so it is decided in that survey's round and in no other."""
    study, draws, ledger = known.study, known.draws, rows.read_ledger(connection)
    for packet in packets:
        made, moved = packet.released, move_packet(None, PacketEvent.JOURNALLED)
        if PacketEffect.CHARGE in moved.effects:
            ledger = ledger.spend(study, made.epsilon)
        sealed = {"packet": made.sealed.ciphertext, "digest": made.digest, "status": moved.status}
        if not 0 <= made.slot < len(draws) or draws[made.slot] != made.survey:
            raise Conflict(say("this slot drew another survey; nothing is sent"))
        columns = {"study": study, "round": made.round, "slot": made.slot, "survey": made.survey}
        amount = {"epsilon": made.epsilon, "send_at": packet.send_at}
        rows.insert(connection, "outbox", columns | amount | sealed)
    for slot in missed:
        columns = {"study": study, "round": known.manifest.survey(draws[slot]).round, "slot": slot}
        status = move_packet(None, PacketEvent.WINDOW_MISSED).status
        empty = {"survey": draws[slot], "epsilon": 0, "send_at": 0.0, "status": status}
        rows.insert(connection, "outbox", columns | empty)
    rows.write_entry(connection, ledger, study)
    query = "SELECT count(*) FROM outbox WHERE study = ? AND slot < ?"
    if connection.execute(query, (study, COVER_FROM)).fetchone()[0] == len(draws):
        rows.update_study(connection, study, {"snapshot": None})


def _cover(connection: sqlite3.Connection, study: bytes, cover: Sequence[Covering]) -> None:
    """Journal dummies and blanks as packets are, under the numbers that follow; no charge, no digest, no receipt."""
    query = "SELECT coalesce(max(slot) + 1, 0) FROM outbox WHERE study = ?"
    first = max(COVER_FROM, connection.execute(query, (study,)).fetchone()[0])
    status = move_packet(None, PacketEvent.COVER_JOURNALLED).status
    for number, covering in enumerate(cover, first):
        known = {"study": study, "round": 0, "slot": number, "survey": covering.survey}
        packet = covering.sealed.ciphertext if covering.sealed is not None else None
        own = {"epsilon": 0, "send_at": covering.send_at, "packet": packet, "status": status}
        rows.insert(connection, "outbox", known | own)
