"""The peer's SQLite store: ledger, studies, outbox. Every method that writes is one transaction; how values stand in
the tables is `peer.rows`, and the file itself `peer.store_file`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence

import attrs
from attrs import frozen

from anon.documents import SignedHead
from anon.errors import Conflict, Refused
from anon.messages import SealedPacket
from peer import pausing, rows
from peer.consent import Policy
from peer.ledger import Entry, Ledger
from peer.records import COVER_FROM, Joining, Queued, Status, Study, Verified
from peer.release import Released
from peer.session import LAST, Effect, Event, State, move
from peer.store_file import StoreFile

_REJOINABLE = (State.WITHDRAWN, State.REFUSED)
_NEVER_JOINED = "this study was never joined here; see `anonml peer status`"


@frozen
class Scheduled:
    """A finished packet and when it is to leave."""

    released: Released
    send_at: float


@frozen
class Covering:
    """A finished dummy, the first survey of its window, and when it is to leave."""

    sealed: SealedPacket
    survey: int
    send_at: float


class Store(StoreFile):
    """The store in one file."""

    # Policy and ledger

    def policy(self) -> Policy:
        """The owner's policy."""
        return rows.read_policy(self._connection)

    def set_policy(self, policy: Policy) -> None:
        """Replace the owner's policy, the lifetime budget included. What is held already stays held."""
        with self._writing("policy") as connection:
            rows.write_policy(connection, policy)

    def ledger(self) -> Ledger:
        """The ledger as it stands."""
        return rows.read_ledger(self._connection)

    def paused_until(self, study: bytes | None = None) -> float:
        """Unix seconds until which nothing of this study is done, by its own pause or the home's; the home's alone when
        none is named. An instant that has passed is no pause; what cannot be read is one without end."""
        home = pausing.read(self._connection, None)
        return home if study is None else max(home, pausing.read(self._connection, study))

    def pause(self, study: bytes | None, until: float | None) -> None:
        """Pause a study, or the home, until then (unix seconds); with None go on."""
        with self._writing("pause") as connection:
            pausing.write(connection, study, until)

    def waiting(self) -> list[tuple[bytes, bytes]]:
        """(study, closed link) of every study that waits for the owner's answer, the newest last."""
        return [(row["study"], row["link"]) for row in self._rows("SELECT study, link FROM waiting ORDER BY rowid")]

    def wait(self, study: bytes, link: bytes | None) -> None:
        """Keep a study's closed link until it is answered; with None erase it."""
        with self._writing("policy") as connection:
            connection.execute("DELETE FROM waiting WHERE study = ?", (study,))
            if link is not None:
                rows.insert(connection, "waiting", {"study": study, "link": link})

    def demand_not_retired(self) -> None:
        """Raises `Refused` in a home that a final backup moved elsewhere."""
        _demand_not_retired(self._connection)

    # Studies

    def study(self, study: bytes) -> Study:
        """A study. Raises `Refused` for one that was never joined."""
        found = self._rows("SELECT * FROM studies WHERE study = ?", study)
        if not found:
            raise Refused(_NEVER_JOINED)
        return rows.to_study(found[0])

    def studies(self) -> list[Study]:
        """All studies, those that ended too."""
        return [rows.to_study(row) for row in self._rows("SELECT * FROM studies ORDER BY study")]

    def active(self) -> list[bytes]:
        """Ids of studies that are not over."""
        ended = ", ".join(f"'{state}'" for state in LAST)
        return [row["study"] for row in self._rows(f"SELECT study FROM studies WHERE state NOT IN ({ended})")]

    def join(self, joining: Joining, permit: Callable[[Policy, Ledger], object]) -> None:
        """Reserve the budget and store what enrolment sends, together.

        `permit` decides once more on the ledger inside the transaction and raises to refuse. Raises `Conflict` for a
        study already joined, `Refused` beyond the budget or in a home that was moved elsewhere.
        """
        study = joining.entry.study
        with self._writing("consent") as connection:
            _demand_not_retired(connection)
            _forget_unsent(connection, study)
            ledger = rows.read_ledger(connection)
            permit(rows.read_policy(connection), ledger)
            rows.write_entry(connection, ledger.reserve(joining.entry), study)
            columns = {
                "study": study,
                "address": joining.invite.address,
                "aggregator": joining.invite.key,
                "manifest": joining.manifest_bytes,
                "state": State.CONSENTED,
                "consented": joining.entry.reserved,
                "minimum_cohort": joining.minimum_cohort,
                "secrets": joining.secrets,
                "enrolment": joining.enrolment,
                "due": joining.due,
                "chain": joining.chain,
            }
            rows.insert(connection, "studies", columns)
            connection.execute("DELETE FROM waiting WHERE study = ?", (study,))

    def enrolled(self, study: bytes, due: float) -> None:
        """The aggregator acknowledged the enrolment; `due` is when to fetch the closed roster."""
        with self._writing("enrolment") as connection:
            _apply(connection, study, Event.ENROLMENT_ACCEPTED)
            connection.execute("UPDATE studies SET due = ? WHERE study = ?", (due, study))

    def leave(self, study: bytes, event: Event, withdrawal: bytes | None) -> None:
        """The owner leaves: the reservation returns at once, because nothing will be sent any more."""
        with self._writing("leaving") as connection:
            _apply(connection, study, event, "the owner left")
            connection.execute("UPDATE studies SET withdrawal = ? WHERE study = ?", (withdrawal, study))

    def settle_withdrawal(self, study: bytes, reason: str) -> None:
        """The withdrawal was answered, or it is too late for it."""
        with self._writing("withdrawal") as connection:
            _apply(connection, study, Event.WITHDRAWAL_SETTLED, reason)

    def end(self, study: bytes, event: Event, reason: str, evidence: bytes | None = None) -> None:
        """Apply an event that ends the study, with its reason and any evidence."""
        with self._writing("end") as connection:
            _apply(connection, study, event, reason)
            if evidence is not None:
                connection.execute("INSERT OR IGNORE INTO evidence VALUES (?, ?, ?)", (study, event, evidence))

    def reclose_secrets(self, reclose: Callable[[bytes], bytes]) -> None:
        """Replace all stored secrets, when a passphrase is set."""
        with self._writing("policy") as connection:
            for row in connection.execute("SELECT study, secrets FROM studies WHERE secrets IS NOT NULL").fetchall():
                rows.update_study(connection, row["study"], {"secrets": reclose(row["secrets"])})
            for row in connection.execute("SELECT study, link FROM waiting").fetchall():
                known = (reclose(row["link"]), row["study"])
                connection.execute("UPDATE waiting SET link = ? WHERE study = ?", known)

    def freeze(self, study: bytes, snapshot: bytes) -> None:
        """Keep what a study that is not checked yet will answer from. What was kept before stays."""
        with self._writing("restore") as connection:
            connection.execute(
                "UPDATE studies SET snapshot = ? WHERE study = ? AND snapshot IS NULL AND state IN (?, ?)",
                (snapshot, study, State.CONSENTED, State.ENROLLED),
            )

    def state(self, study: bytes) -> State:
        """Where a study stands. Raises `Refused` for one that was never joined."""
        found = self._rows("SELECT state FROM studies WHERE study = ?", study)
        if not found:
            raise Refused(_NEVER_JOINED)
        return State(found[0]["state"])

    def retired(self) -> bool:
        """Whether a final backup closed this home."""
        return _is_retired(self._connection)

    def restored(self, doubtful: Sequence[bytes], set_aside: Entry | None) -> None:
        """After a restore: nothing new of the doubtful studies is released, what they reserved is spent, and
        `set_aside` is booked. The home is no longer one that was moved elsewhere."""
        with self._writing("restore") as connection:
            for study in doubtful:
                rows.write_entry(connection, rows.read_ledger(connection).forfeit_rest(study), study)
                rows.update_study(connection, study, {"barred": 1})
                row = connection.execute("SELECT * FROM studies WHERE study = ?", (study,)).fetchone()
                if rows.to_study(row).unchecked:
                    reason = "restored after packets may have left: nothing is sent"
                    _apply(connection, study, Event.CHECK_FAILED, reason)
            if set_aside is not None:
                rows.insert(connection, "ledger", attrs.asdict(set_aside))
            connection.execute("UPDATE meta SET value = '0' WHERE key = 'retired'")

    def evidence(self) -> list[tuple[bytes, str, bytes]]:
        """(study, what, proof) of everything that an aggregator was caught at."""
        return [tuple(row) for row in self._rows("SELECT study, what, proof FROM evidence")]

    def note(self, study: bytes, reason: str) -> None:
        """Remember something about a study that changes nothing in it; shown as its reason until the study ends."""
        with self._writing("heads") as connection:
            rows.update_study(connection, study, {"reason": reason})

    def see_chain(self, study: bytes, chain: Sequence[SignedHead]) -> None:
        """Remember a longer chain of heads."""
        with self._writing("heads") as connection:
            rows.write_chain(connection, study, chain)

    # The release journal

    def verified(
        self,
        study: bytes,
        verified: Verified,
        snapshot: bytes,
        packets: Sequence[Scheduled],
        missed: Sequence[int],
        cover: Sequence[Covering] = (),
    ) -> None:
        """All checks passed: store what they established, the snapshot, and the packets that can be made at once."""
        with self._writing("release") as connection:
            _apply(connection, study, Event.CHECKS_PASSED)
            columns = {
                "chain": verified.chain_bytes,
                "roster_digest": verified.roster_digest,
                "seed": verified.seed,
                "credential": verified.credential,
                "draws": ",".join(map(str, verified.draws)),
                "snapshot": snapshot,
            }
            rows.update_study(connection, study, columns)
            _journal(connection, study, packets, missed, verified.draws)
            _cover(connection, study, cover)

    def journal(
        self,
        study: bytes,
        packets: Sequence[Scheduled],
        missed: Sequence[int],
        events: Iterable[Event] = (),
        cover: Sequence[Covering] = (),
    ) -> None:
        """Commit charges and finished packets together, before any byte leaves, the slots that were missed, and cover.

        Raises `Conflict` for a slot that was decided before, `Refused` when the reservation does not cover it; then
        nothing is stored.
        """
        with self._writing("release") as connection:
            row = connection.execute("SELECT * FROM studies WHERE study = ?", (study,)).fetchone()
            if State(row["state"]) is not State.CHECKED:
                raise Conflict("the study was ended meanwhile; nothing is sent")
            _journal(connection, study, packets, missed, rows.to_study(row).draws)
            _cover(connection, study, cover)
            for event in events:
                _apply(connection, study, event)

    def outbox(self, study: bytes) -> list[Queued]:
        """Every decided slot of the study, in the order of slots."""
        return [one for one in self.departures(study) if one.slot < COVER_FROM]

    def departures(self, study: bytes) -> list[Queued]:
        """Every decided slot, then every dummy that was journalled."""
        return [rows.to_queued(row) for row in self._rows("SELECT * FROM outbox WHERE study = ? ORDER BY slot", study)]

    def attempt(self, study: bytes, slot: int, retry_at: float) -> None:
        """Count an attempt before its first byte leaves, and store when the retry is due if no answer comes.

        Raises `Conflict` when the packet is not queued any more.
        """
        with self._writing("attempt") as connection:
            changed = connection.execute(
                "UPDATE outbox SET attempts = attempts + 1, send_at = ? WHERE study = ? AND slot = ? "
                "AND status = 'queued' AND packet IS NOT NULL",
                (retry_at, study, slot),
            )
            if changed.rowcount != 1:
                raise Conflict("this packet is no longer in the outbox; nothing was sent")

    def redraw(self, study: bytes, slot: int, send_at: float) -> None:
        """A new time for a packet that stays queued."""
        with self._writing("redraw") as connection:
            connection.execute(
                "UPDATE outbox SET send_at = ? WHERE study = ? AND slot = ? AND status = 'queued'",
                (send_at, study, slot),
            )

    def answered(self, study: bytes, slot: int, status: Status, word: str, events: Iterable[Event] = ()) -> None:
        """What became of a packet, and what follows from it for the study."""
        with self._writing("answer") as connection:
            connection.execute(
                "UPDATE outbox SET status = ?, word = ? WHERE study = ? AND slot = ?", (status, word, study, slot)
            )
            for event in events:
                _apply(connection, study, event)

    def settle(self, study: bytes, events: Iterable[Event]) -> None:
        """Every slot is decided and none is queued: what follows for the study."""
        with self._writing("end") as connection:
            for event in events:
                _apply(connection, study, event)

    def inclusion(self, study: bytes, found: dict[int, Status], reason: str) -> None:
        """What the transcript showed of each slot; the study is over."""
        with self._writing("end") as connection:
            for slot, status in found.items():
                connection.execute("UPDATE outbox SET status = ? WHERE study = ? AND slot = ?", (status, study, slot))
            _apply(connection, study, Event.INCLUSION_SETTLED, reason)


def _apply(connection: sqlite3.Connection, study: bytes, event: Event, reason: str = "") -> None:
    row = connection.execute("SELECT state FROM studies WHERE study = ?", (study,)).fetchone()
    moved = move(State(row["state"]), event)
    for effect in moved.effects:
        if effect is Effect.RETURN_REST:
            rows.write_entry(connection, rows.read_ledger(connection).return_rest(study), study)
        else:
            _erase(connection, study)
    connection.execute(
        "UPDATE studies SET state = ?, reason = coalesce(nullif(?, ''), reason) WHERE study = ?",
        (moved.state, reason, study),
    )


def _erase(connection: sqlite3.Connection, study: bytes) -> None:
    """Packets, snapshot and secrets go. What was still queued is never sent; its charge stays."""
    connection.execute(
        "UPDATE studies SET secrets = NULL, enrolment = NULL, withdrawal = NULL, seed = NULL, credential = NULL, "
        "snapshot = NULL WHERE study = ?",
        (study,),
    )
    connection.execute("DELETE FROM outbox WHERE study = ? AND slot >= ?", (study, COVER_FROM))
    connection.execute("UPDATE outbox SET status = 'stopped' WHERE study = ? AND status = 'queued'", (study,))
    connection.execute("UPDATE outbox SET packet = NULL, digest = NULL WHERE study = ?", (study,))


def _journal(
    connection: sqlite3.Connection,
    study: bytes,
    packets: Sequence[Scheduled],
    missed: Sequence[int],
    draws: Sequence[int],
) -> None:
    ledger = rows.read_ledger(connection)
    for one in packets:
        made = one.released
        ledger = ledger.spend(study, made.epsilon)
        sealed = {"packet": made.sealed.ciphertext, "digest": made.digest, "status": Status.QUEUED}
        known = {"study": study, "slot": made.slot, "survey": made.survey, "epsilon": made.epsilon}
        rows.insert(connection, "outbox", known | sealed | {"send_at": one.send_at})
    for slot in missed:
        columns = {"study": study, "slot": slot, "survey": draws[slot], "epsilon": 0, "send_at": 0.0}
        rows.insert(connection, "outbox", columns | {"status": Status.MISSED})
    rows.write_entry(connection, ledger, study)
    query = "SELECT count(*) FROM outbox WHERE study = ? AND slot < ?"
    if connection.execute(query, (study, COVER_FROM)).fetchone()[0] == len(draws):
        rows.update_study(connection, study, {"snapshot": None})


def _cover(connection: sqlite3.Connection, study: bytes, cover: Sequence[Covering]) -> None:
    """Journal dummies as packets are, under the numbers that follow; no charge, no digest, no receipt."""
    query = "SELECT coalesce(max(slot) + 1, 0) FROM outbox WHERE study = ?"
    first = max(COVER_FROM, connection.execute(query, (study,)).fetchone()[0])
    for number, one in enumerate(cover, first):
        known = {"study": study, "slot": number, "survey": one.survey, "epsilon": 0, "send_at": one.send_at}
        rows.insert(connection, "outbox", known | {"packet": one.sealed.ciphertext, "status": Status.QUEUED})


def _forget_unsent(connection: sqlite3.Connection, study: bytes) -> None:
    """Make room to join again after leaving early or being refused. Raises `Conflict` for any other known study."""
    row = connection.execute("SELECT state FROM studies WHERE study = ?", (study,)).fetchone()
    if row is None:
        return
    sent = connection.execute("SELECT count(*) FROM outbox WHERE study = ?", (study,)).fetchone()[0]
    if sent or State(row["state"]) not in _REJOINABLE:
        raise Conflict("this study was joined already; see `anonml peer status`")
    connection.execute("DELETE FROM studies WHERE study = ?", (study,))


def _is_retired(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT value FROM meta WHERE key = 'retired'").fetchone()[0] != "0")


def _demand_not_retired(connection: sqlite3.Connection) -> None:
    if _is_retired(connection):
        raise Refused("this home was moved elsewhere by a final backup; use the restored one")
