"""The peer's SQLite store: ledger and studies; its outbox is `peer.store.outbox`. Every method that writes is one
transaction; how values stand in the tables is `peer.store.rows`, and the file itself `peer.store.database.store_file`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

import attrs

from anon.errors import Conflict, Refused
from anon.text.sentences import say, to_store
from anon.transparency.documents import SignedHead
from peer.rules.consent import Policy
from peer.rules.ledger import Ledger
from peer.rules.lifecycle import LAST, TABLE, Event, State
from peer.store import pausing, rows
from peer.store.applying import apply
from peer.store.erasing import ErasingStore
from peer.store.outbox import OutboxStore
from peer.store.records import Joining, Study
from peer.store.troubles import TroubleStore

REJOINABLE = (State.WITHDRAWN, State.REFUSED)
"""The states in which a study can be joined again."""
Extend = Callable[[Sequence[SignedHead], Sequence[SignedHead]], tuple[SignedHead, ...]]
_NEVER_JOINED = say("this study was never joined here; see `anonml peer status`")


class Store(ErasingStore, OutboxStore, TroubleStore):
    """The store in one file."""

    # Policy and ledger

    def policy(self) -> Policy:
        """The owner's policy."""
        return rows.read_policy(self._connection)

    def set_policy(self, policy: Policy) -> None:
        """Replace the owner's policy, the lifetime budget included. Epsilon that is held already stays held."""
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
        return rows.to_study(found[0], self._manifests)

    def studies(self) -> list[Study]:
        """All studies, those that ended too."""
        return [rows.to_study(row, self._manifests) for row in self._rows("SELECT * FROM studies ORDER BY study")]

    def active(self) -> list[bytes]:
        """Ids of studies that are not over."""
        ended = ", ".join(f"'{state}'" for state in LAST)
        return [row["study"] for row in self._rows(f"SELECT study FROM studies WHERE state NOT IN ({ended})")]

    def known_tellers(self) -> dict[str, list[bytes]]:
        """The tellers of every study that was joined: name, as `peer.rules.tellers` spells it -> keys."""
        found: dict[str, list[bytes]] = {}
        for row in self._rows("SELECT name, key FROM tellers ORDER BY name, key"):
            found.setdefault(row["name"], []).append(row["key"])
        return found

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
            connection.executemany("INSERT OR IGNORE INTO tellers VALUES (?, ?)", joining.tellers)
            connection.execute("DELETE FROM waiting WHERE study = ?", (study,))

    def record_enrolled(self, study: bytes, due: float) -> None:
        """The aggregator acknowledged the enrolment; `due` is when to fetch the closed roster."""
        with self._writing("enrolment") as connection:
            apply(connection, study, Event.ENROLMENT_ACCEPTED)
            connection.execute("UPDATE studies SET due = ? WHERE study = ?", (due, study))

    def leave(self, study: bytes, event: Event, withdrawal: bytes | None) -> None:
        """The owner leaves: the reservation returns at once, because nothing will be sent any more."""
        with self._writing("leaving") as connection:
            apply(connection, study, event, say("you left"))
            connection.execute("UPDATE studies SET withdrawal = ? WHERE study = ?", (withdrawal, study))

    def settle_withdrawal(self, study: bytes, reason: str) -> None:
        """The withdrawal was answered, or it is too late for it."""
        with self._writing("withdrawal") as connection:
            apply(connection, study, Event.WITHDRAWAL_SETTLED, reason)

    def end(self, study: bytes, event: Event, reason: str, evidence: bytes | None = None) -> None:
        """Apply an event that ends the study, with its reason and any evidence."""
        with self._writing("end") as connection:
            apply(connection, study, event, reason)
            _keep_evidence(connection, study, event, evidence)

    def stop(self, study: bytes, reason: str, evidence: bytes | None) -> None:
        """The same for a check that failed, wherever the study stands: one that is over only gets the evidence."""
        with self._writing("end") as connection:
            if (_state(connection, study), Event.CHECK_FAILED) in TABLE:
                apply(connection, study, Event.CHECK_FAILED, reason)
            _keep_evidence(connection, study, Event.CHECK_FAILED, evidence)

    def reclose_secrets(self, reclose: Callable[[bytes], bytes]) -> None:
        """Replace all stored secrets, when a passphrase is set."""
        with self._writing("policy") as connection:
            for row in connection.execute("SELECT study, secrets FROM studies WHERE secrets IS NOT NULL").fetchall():
                rows.update_study(connection, row["study"], {"secrets": reclose(row["secrets"])})
            for row in connection.execute("SELECT study, link FROM waiting").fetchall():
                known = (reclose(row["link"]), row["study"])
                connection.execute("UPDATE waiting SET link = ? WHERE study = ?", known)

    def freeze(self, study: bytes, snapshot: bytes) -> None:
        """Keep what a study that is not checked yet will answer from. A snapshot that was kept before stays."""
        with self._writing("restore") as connection:
            connection.execute(
                "UPDATE studies SET snapshot = ? WHERE study = ? AND snapshot IS NULL AND state IN (?, ?)",
                (snapshot, study, State.CONSENTED, State.ENROLLED),
            )

    def state(self, study: bytes) -> State:
        """Where a study stands. Raises `Refused` for one that was never joined."""
        return _state(self._connection, study)

    def retired(self) -> bool:
        """True if a final backup closed this home."""
        return _is_retired(self._connection)

    def restored(self, doubtful: Sequence[bytes], set_aside: str = "", name: bytes = b"") -> None:
        """After a restore: nothing new of the doubtful studies is released, and what they reserved is spent.

        With `set_aside`, a title, all that is left of every budget counts as spent, under ids that begin with `name`,
        and so does what is reserved for no study. The home is no longer one that was moved elsewhere.
        """
        with self._writing("restore") as connection:
            for study in doubtful:
                rows.write_entry(connection, rows.read_ledger(connection).forfeit_rest(study), study)
                rows.update_study(connection, study, {"barred": 1})
                row = connection.execute("SELECT * FROM studies WHERE study = ?", (study,)).fetchone()
                if rows.to_study(row, self._manifests).unchecked:
                    reason = say("restored after packets may have left: nothing is sent")
                    apply(connection, study, Event.CHECK_FAILED, reason)
            for other in rows.entries_of_no_study(connection) if set_aside else ():
                rows.write_entry(connection, rows.read_ledger(connection).forfeit_rest(other), other)
            for entry in rows.read_ledger(connection).all_spent(set_aside, name) if set_aside else ():
                rows.insert(connection, "ledger", attrs.asdict(entry))
            connection.execute("UPDATE meta SET value = '0' WHERE key = 'retired'")

    def evidence(self) -> list[tuple[bytes, str, bytes]]:
        """(study, what, proof) of everything that an aggregator was caught at."""
        return [tuple(row) for row in self._rows("SELECT study, what, proof FROM evidence")]

    def note(self, study: bytes, reason: str) -> None:
        """Remember something about a study that changes nothing in it; shown as its reason until the study ends."""
        with self._writing("heads") as connection:
            rows.update_study(connection, study, {"reason": to_store(reason)})

    def see_chain(self, study: bytes, chain: Sequence[SignedHead], extend: Extend) -> None:
        """Remember a longer chain of heads. `extend` decides once more on the stored one inside the transaction, which
        another process may have made longer, and raises to refuse."""
        with self._writing("heads") as connection:
            rows.write_chain(connection, study, extend(rows.read_chain(connection, study, chain), chain))


def _state(connection: sqlite3.Connection, study: bytes) -> State:
    row = connection.execute("SELECT state FROM studies WHERE study = ?", (study,)).fetchone()
    if row is None:
        raise Refused(_NEVER_JOINED)
    return State(row["state"])


def _keep_evidence(connection: sqlite3.Connection, study: bytes, event: Event, evidence: bytes | None) -> None:
    if evidence is not None:
        connection.execute("INSERT OR IGNORE INTO evidence VALUES (?, ?, ?)", (study, event, evidence))


def _forget_unsent(connection: sqlite3.Connection, study: bytes) -> None:
    """Make room to join again after leaving early or being refused. Raises `Conflict` for any other known study."""
    row = connection.execute("SELECT state FROM studies WHERE study = ?", (study,)).fetchone()
    if row is None:
        return
    sent = connection.execute("SELECT count(*) FROM outbox WHERE study = ?", (study,)).fetchone()[0]
    if sent or State(row["state"]) not in REJOINABLE:
        raise Conflict(say("this study was joined already; see `anonml peer status`"))
    connection.execute("DELETE FROM studies WHERE study = ?", (study,))


def _is_retired(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT value FROM meta WHERE key = 'retired'").fetchone()[0] != "0")


def _demand_not_retired(connection: sqlite3.Connection) -> None:
    if _is_retired(connection):
        raise Refused(say("this home was moved elsewhere by a final backup; use the restored one"))
