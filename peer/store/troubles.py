"""The reasons that keep a study waiting, as its owner sees them: an aggregator that does not answer, a clock that looks
wrong, a fault.

Entries of `meta`, so that every program that shares the home sees them. They say since when, by how much or why, and
nothing about the owner. Every function works inside the caller's transaction.
"""

from __future__ import annotations

import sqlite3

from anon.text.instants import instant
from anon.text.sentences import NOTHING, Sentence, Term, attributed, from_store, joined, say, say_many, to_store
from anon.values import frozen
from peer.store.database.store_file import StoreFile

WORTH_TELLING = 10.0
"""Seconds of doubt from which on the owner is told."""
_SILENT, _CLOCK, _FAULT = "silent-", "clock-", "fault-"


@frozen
class Troubles:
    """`silent_since`: unix seconds of the first exchange without an answer, None after one with. `clock`: by how many
    seconds the wall clock seems to be ahead, below 0 behind. `fault`: why the study could not go on, empty when it can;
    it quotes no data."""

    silent_since: float | None = None
    clock: float = 0.0
    fault: str = ""

    def told(self) -> Sentence:
        """As sentences; empty without trouble."""
        sentences = [told_clock(self.clock)]
        if self.fault:
            sentences.append(say("cannot go on: {fault}; it is tried again by itself", fault=attributed(self.fault)))
        if self.silent_since is not None:
            sentences.append(say(
                "cannot reach the aggregator, since {since}; it is tried again by itself",
                since=Term(instant(self.silent_since)),
            ))
        return joined(sentence for sentence in sentences if sentence)


def read(connection: sqlite3.Connection, study: bytes) -> Troubles:
    """The troubles of a study. A value that cannot be read counts as none: nothing is decided by them."""
    silent, clock = (_number(connection, prefix + study.hex()) for prefix in (_SILENT, _CLOCK))
    return Troubles(silent, clock or 0.0, _sentence(connection, _FAULT + study.hex()))


def write(connection: sqlite3.Connection, study: bytes, troubles: Troubles) -> None:
    """Keep them in place of the former ones."""
    silent = "" if troubles.silent_since is None else repr(troubles.silent_since)
    clock = repr(troubles.clock) if troubles.clock else ""
    for prefix, value in ((_SILENT, silent), (_CLOCK, clock), (_FAULT, to_store(troubles.fault))):
        key = prefix + study.hex()
        connection.execute("DELETE FROM meta WHERE key = ?", (key,))
        if value:
            connection.execute("INSERT INTO meta VALUES (?, ?)", (key, value))


def _number(connection: sqlite3.Connection, key: str) -> float | None:
    try:
        return float(_text(connection, key))
    except ValueError:
        return None


def _text(connection: sqlite3.Connection, key: str) -> str:
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return "" if row is None else str(row[0])


def _sentence(connection: sqlite3.Connection, key: str) -> str:
    try:
        return from_store(_text(connection, key))
    except ValueError:
        return ""


class TroubleStore(StoreFile):
    """The part of the store that remembers them."""

    def troubles(self, study: bytes) -> Troubles:
        """The reasons that keep a study waiting."""
        return read(self._connection, study)

    def trouble(self, study: bytes, known: Troubles) -> None:
        """Remember what keeps a study waiting; changes nothing in it."""
        with self._writing("heads") as connection:
            write(connection, study, known)


def told_clock(doubt: float) -> Sentence:
    """A doubt as the owner reads it; empty when it is not worth telling."""
    if abs(doubt) < WORTH_TELLING:
        return NOTHING
    if doubt > 0:
        return say(
            "this machine's clock looks wrong by about {time} (ahead): check its date and time. Nothing is given up "
            "for it",
            time=_about(doubt),
        )
    return say(
        "this machine's clock looks wrong by about {time} (behind): check its date and time. Nothing is given up "
        "for it",
        time=_about(-doubt),
    )


def _about(seconds: float) -> Sentence:
    if seconds >= 2 * 86400.0:
        return say_many("{count} day", "{count} days", round(seconds / 86400.0))
    if seconds >= 2 * 3600.0:
        return say_many("{count} hour", "{count} hours", round(seconds / 3600.0))
    if seconds >= 2 * 60.0:
        return say_many("{count} minute", "{count} minutes", round(seconds / 60.0))
    return say_many("{count} second", "{count} seconds", round(seconds))
