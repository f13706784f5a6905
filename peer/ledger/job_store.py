"""Federated jobs in the peer's store: their terms, the owner's answers, and each round's message with its charge.

The tables are this shell's own, in the one file of the ledger: so a charge and its message are one commit.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from anon.errors import Refused
from anon.text.sentences import from_store, say, to_store
from anon.values import frozen
from peer.ledger.declaration import JobTerms
from peer.rules.ledger import Entry, Ledger
from peer.rules.promise import not_left, too_dear
from peer.store import rows
from peer.store.store import Store

_JOBS = """CREATE TABLE IF NOT EXISTS federated_jobs (
    job BLOB PRIMARY KEY, terms BLOB NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL DEFAULT ''
) STRICT"""
# Only the last message is kept. A row without one keeps its round from ever being answered a second time.
_ROUNDS = """CREATE TABLE IF NOT EXISTS federated_rounds (
    job BLOB NOT NULL, round BLOB NOT NULL, message BLOB, PRIMARY KEY (job, round)
) STRICT"""


MOST_ASKING = 16
"""Jobs that wait for an answer: a server that sends its jobs' declarations could fill the page otherwise."""


class JobState(StrEnum):
    """Where a job stands."""

    ASKED = "asked"  # its owner has not answered
    AGREED = "agreed"  # rounds are answered
    STOPPED = "stopped"  # something that was not declared would have left: its owner is asked again
    ENDED = "ended"  # its owner said no


class JobEvent(StrEnum):
    """The change of a job."""

    SAID_YES = "said-yes"
    SAID_NO = "said-no"
    UNDECLARED_CAME = "undeclared-came"


JOB_TABLE: Mapping[tuple[JobState, JobEvent], JobState] = MappingProxyType({
    (JobState.ASKED, JobEvent.SAID_YES): JobState.AGREED,
    (JobState.ASKED, JobEvent.SAID_NO): JobState.ENDED,
    (JobState.AGREED, JobEvent.UNDECLARED_CAME): JobState.STOPPED,
    (JobState.AGREED, JobEvent.SAID_NO): JobState.ENDED,
    (JobState.STOPPED, JobEvent.SAID_YES): JobState.AGREED,
    (JobState.STOPPED, JobEvent.SAID_NO): JobState.ENDED,
})
_WHY = MappingProxyType({
    JobState.ASKED: say("its owner has not agreed yet; see `anonml peer federated`, or the page"),
    JobState.STOPPED: say("it was stopped, because something that was not declared would have left"),
    JobState.ENDED: say("its owner said no; other terms, such as another title, are another job"),
})


@frozen
class FederatedJob:
    """A job as it is stored. `answered`: its rounds so far. `reason`: why it was stopped. Amounts are of its entry."""

    terms: JobTerms
    state: JobState
    reason: str
    answered: int
    entry: Entry | None


class JobStore(Store):
    """The store with its federated jobs."""

    def jobs(self) -> list[FederatedJob]:
        """All jobs, in the order in which they asked."""
        if not self._has_tables():
            return []
        ledger = self.ledger()
        return [self._job(row, ledger) for row in self._rows("SELECT * FROM federated_jobs ORDER BY rowid")]

    def ask(self, terms: JobTerms) -> None:
        """Put a job before the owner, once. Raises `Refused` where `MOST_ASKING` wait for an answer."""
        if self._has_tables() and self._rows("SELECT job FROM federated_jobs WHERE job = ?", terms.job):
            return
        with self._writing("policy") as connection:
            connection.execute(_JOBS)
            connection.execute(_ROUNDS)
            counted = "SELECT count(*) AS found FROM federated_jobs WHERE state = ?"
            if connection.execute(counted, (JobState.ASKED,)).fetchone()["found"] >= MOST_ASKING:
                raise Refused(
                    say(
                        "{most} federated jobs wait for an answer already; answer them with `anonml peer federated`",
                        most=MOST_ASKING,
                    )
                )
            connection.execute(
                "INSERT OR IGNORE INTO federated_jobs (job, terms, state) VALUES (?, ?, ?)",
                (terms.job, terms.to_bytes(), JobState.ASKED),
            )

    def agree(self, job: bytes) -> None:
        """The owner's yes: reserve the cost of all rounds. Raises `Refused` beyond the owner's limits."""
        with self._writing("consent") as connection:
            self.demand_not_retired()
            before, terms = _state(connection, job), _terms(connection, job)
            _move(connection, job, JobEvent.SAID_YES)
            if before is JobState.ASKED:
                _demand_allowed(connection, terms)
                rows.write_entry(connection, rows.read_ledger(connection).reserve(_entry(terms)), job)

    def refuse(self, job: bytes) -> None:
        """The owner's no, at any time: nothing more leaves, and the rest of the reservation returns."""
        with self._writing("leaving") as connection:
            _move(connection, job, JobEvent.SAID_NO)
            ledger = rows.read_ledger(connection)
            if ledger.entry(job) is not None:
                rows.write_entry(connection, ledger.return_rest(job), job)
            connection.execute("UPDATE federated_rounds SET message = NULL WHERE job = ?", (job,))

    def halt(self, job: bytes, reason: str) -> None:
        """Something undeclared came: nothing more leaves until the owner was asked again."""
        with self._writing("end") as connection:
            if _state(connection, job) is JobState.AGREED:
                _move(connection, job, JobEvent.UNDECLARED_CAME, reason)

    def demand_open(self, job: bytes, key: bytes, now: float) -> bytes | None:
        """The stored message of a round that was answered, None for a new one that may be answered.

        Raises `Refused` for a job without its owner's yes, over budget or paused, and for an earlier round.
        """
        self.demand_not_retired()
        if self.paused_until() > now:
            raise Refused(say("this home is paused; `anonml peer resume` ends that"))
        found = _round(self._connection, job, key)
        if found is None:
            self.ledger().spend(job, _terms(self._connection, job).rho)
        return found

    def release(self, job: bytes, key: bytes, message: bytes) -> bytes:
        """Charge the round and store its message, in one commit; the message that is to leave.

        It is the stored one where another process answered this round meanwhile. Raises `Refused`; then nothing is
        charged or stored.
        """
        with self._writing("release") as connection:
            self.demand_not_retired()
            if (found := _round(connection, job, key)) is not None:
                return found
            ledger = rows.read_ledger(connection).spend(job, _terms(connection, job).rho)
            rows.write_entry(connection, ledger, job)
            connection.execute("UPDATE federated_rounds SET message = NULL WHERE job = ?", (job,))
            connection.execute("INSERT INTO federated_rounds VALUES (?, ?, ?)", (job, key, message))
            return message

    def _has_tables(self) -> bool:
        named = "SELECT count(*) AS found FROM sqlite_master WHERE name = 'federated_jobs'"
        return bool(self._rows(named)[0]["found"])

    def _job(self, row: sqlite3.Row, ledger: Ledger) -> FederatedJob:
        counted = "SELECT count(*) AS found FROM federated_rounds WHERE job = ?"
        answered = self._rows(counted, row["job"])[0]["found"]
        terms, state = JobTerms.from_bytes(row["terms"]), JobState(row["state"])
        return FederatedJob(terms, state, from_store(row["reason"]), answered, ledger.entry(row["job"]))


def _row(connection: sqlite3.Connection, job: bytes) -> Any:
    row = connection.execute("SELECT * FROM federated_jobs WHERE job = ?", (job,)).fetchone()
    if row is None:
        raise Refused(say("there is no such federated job; see `anonml peer federated`"))
    return row


def _state(connection: sqlite3.Connection, job: bytes) -> JobState:
    return JobState(_row(connection, job)["state"])


def _terms(connection: sqlite3.Connection, job: bytes) -> JobTerms:
    return JobTerms.from_bytes(_row(connection, job)["terms"])


def _move(connection: sqlite3.Connection, job: bytes, event: JobEvent, reason: str = "") -> None:
    moved = JOB_TABLE.get((_state(connection, job), event))
    if moved is None:
        raise Refused(say("this job was answered before; see `anonml peer federated`"))
    connection.execute(
        "UPDATE federated_jobs SET state = ?, reason = ? WHERE job = ?", (moved, to_store(reason), job)
    )


def _round(connection: sqlite3.Connection, job: bytes, key: bytes) -> bytes | None:
    """The message of a round, None for a new one. Raises `Refused` without a yes, and for an earlier round."""
    state = _state(connection, job)
    if state is not JobState.AGREED:
        raise Refused(say("nothing leaves for this job: {why}", why=_WHY[state]))
    row = connection.execute("SELECT message FROM federated_rounds WHERE job = ? AND round = ?", (job, key)).fetchone()
    if row is None:
        return None
    if row["message"] is None:
        raise Refused(say("this round was answered, and a later one since; it is not answered again"))
    return bytes(row["message"])


def _demand_allowed(connection: sqlite3.Connection, terms: JobTerms) -> None:
    """Raises `Refused` with the limit that the owner would have to raise."""
    policy, ledger = rows.read_policy(connection), rows.read_ledger(connection)
    limit, cost, left = policy.limit(terms.budget), terms.total.amount, ledger.available_of(terms.budget)
    if cost > left:
        raise Refused(not_left(terms.budget, cost, left, limit.lifetime))
    if cost > limit.per_study:
        raise Refused(too_dear(terms.budget, cost, limit.per_study, limit.lifetime))


def _entry(terms: JobTerms) -> Entry:
    return Entry(
        study=terms.job, title=terms.title, aggregator=b"", data_set="default", reserved=terms.total.amount,
        measure=terms.budget.measure, unit=terms.budget.unit,
    )
