"""A teller's journal: what it said is written before it is said, in one transaction each, so that it is said once.

SQLite beside the teller's key. No column and no key tells when or in which order a packet came. Shares are erased in
the transaction that keeps the noisy share; the file keeps no copy of what was erased (secure_delete, and a log that is
emptied). A disk that keeps old blocks may.

A changed bit would be a wrong sum, signed. So the file has a digest of its rows (`anon.storage.whole_rows`), and what
remembers how far it came stands beside it (`anon.storage.lived`): a lost or older journal would say things twice.

With a spare, `study` is the id of a pair in offers, studies, parts and shares (`anon.sharing.quorum`). In rolls and
ends it is the study's own. So a teller has one roster and one end, whatever it does in its two pairs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import field

from anon.errors import Conflict, Refused
from anon.storage.crash_points import crash_points
from anon.storage.durable import KeptFile, connect, reading
from anon.storage.lived import DatabaseMemory, count, counted
from anon.storage.migration import Schema
from anon.storage.private_files import made_private
from anon.storage.whole_rows import TABLE, WholeRows
from anon.teller.rules import Roll
from anon.text.sentences import Term
from anon.values import frozen
from anon.wire.packets import Occasion

KEPT = KeptFile(
    Term("With it are the secrets of running studies and what this teller said in them"),
    Term("Its studies end; make a new teller. A copy of before would say things twice"),
)
SCHEMA = Schema(4, {}, KEPT)
WRITES = ("offer", "study", "key-share", "roll", "shares", "verdicts", "list", "noisy-share", "stop", "erasure")
POINTS = tuple(f"{side}-commit-of-{write}" for write in WRITES for side in ("before", "after"))
"""Where a test may kill a teller, on each side of every commit."""
crash_point = crash_points(POINTS)

_TABLES = """
CREATE TABLE offers (entry BLOB PRIMARY KEY, sealing BLOB NOT NULL, part BLOB NOT NULL, study BLOB UNIQUE,
    number INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE studies (study BLOB PRIMARY KEY, arrangement BLOB NOT NULL, teller INTEGER NOT NULL,
    manifest BLOB NOT NULL, ended INTEGER) WITHOUT ROWID;
CREATE TABLE parts (study BLOB, teller INTEGER, part BLOB NOT NULL, PRIMARY KEY (study, teller)) WITHOUT ROWID;
CREATE TABLE rolls (study BLOB PRIMARY KEY, issuer BLOB NOT NULL, header BLOB NOT NULL, packets INTEGER NOT NULL,
    members INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE shares (study BLOB, round INTEGER, slot INTEGER, tag BLOB, digest BLOB NOT NULL, verifier BLOB NOT NULL,
    seed BLOB, output BLOB, message BLOB, accepted INTEGER, PRIMARY KEY (study, round, slot, tag)) WITHOUT ROWID;
CREATE TABLE ends (study BLOB, round INTEGER, slot INTEGER, list BLOB, noisy BLOB, evidence BLOB,
    PRIMARY KEY (study, round, slot)) WITHOUT ROWID;
"""
_HERE = "study = ? AND round = ? AND slot = ?"
_OPEN = "SELECT count(*) FROM studies JOIN offers USING (study) WHERE offers.sealing != x''"
MOST_OFFERS, MOST_STUDIES = 256, 64
"""Offers that no study used yet: a further one drops the oldest of them. Studies of strangers that are not over."""


@frozen
class OfferSecrets:
    """A teller's secrets for one study: sealing secret, and its part of the verification key."""

    sealing: bytes = field(repr=False)
    part: bytes = field(repr=False)
    study: bytes | None


@frozen
class Share:
    """A packet's row. `seed`, `output`: the state of its verification, secret; gone once it was refused.

    `message`: a digest of the verifier shares that it was settled by; None before. `accepted`: the verdict.
    """

    tag: bytes
    digest: bytes
    verifier: bytes = field(repr=False)
    seed: bytes | None = field(repr=False)
    output: bytes | None = field(repr=False)
    message: bytes | None = None
    accepted: bool | None = None


@frozen
class End:
    """How far an occasion's end has come: the one list, then the one noisy share, or evidence why there is none."""

    list: bytes | None = field(repr=False, default=None)
    noisy: bytes | None = field(repr=False, default=None)
    evidence: bytes | None = field(repr=False, default=None)


class Journal:
    """One file. Raises `Damaged` for one that cannot be read, `NoRoom` for a full disk, and then nothing was said."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lived = DatabaseMemory(file, KEPT)
        known = self._lived.known()
        SCHEMA.demand_own(file)
        made_private(file)
        self._connection = connect(file, KEPT, isolation_level=None, timeout=30)
        for setting in ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON", "trusted_schema = OFF"):
            self._connection.execute(f"PRAGMA {setting}")
        if self._connection.execute("PRAGMA user_version").fetchone()[0] == 0:
            self._lived.demand(known, None)
            self._create()
        self._rows = WholeRows(self._connection)
        if not self._rows.is_whole():
            raise KEPT.damaged(file, Term("a value in it is not the one that was written"))
        self._lived.demand(known, count(self._connection))
        self._lived.remember(count(self._connection))
        self._empty_log()

    def _create(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        for statement in (*_TABLES.split(";"), TABLE):
            self._connection.execute(statement)
        self._connection.execute("INSERT INTO whole VALUES (?)", (bytes(32),))
        self._connection.execute(f"PRAGMA user_version = {SCHEMA.version}")
        self._connection.execute("COMMIT")

    def close(self) -> None:
        """Let the file go."""
        self._connection.close()

    # A study

    def keep_offer(self, entry: bytes, offer: OfferSecrets) -> None:
        """Fresh secrets, before their public halves leave. Of those that no study used, the newest `MOST_OFFERS` stay.
        """
        number = "SELECT coalesce(max(number), 0) + 1 FROM offers"
        newest = "SELECT entry FROM offers WHERE study IS NULL ORDER BY number DESC LIMIT ?"
        with self._writing("offer") as connection:
            content = (entry, offer.sealing, offer.part)
            connection.execute(f"INSERT INTO offers VALUES (?, ?, ?, NULL, ({number}))", content)
            old = f"DELETE FROM offers WHERE study IS NULL AND entry NOT IN ({newest})"
            connection.execute(old, (MOST_OFFERS,))

    def offer(self, entry: bytes) -> OfferSecrets | None:
        """The secrets behind an entry."""
        row = self._one("SELECT sealing, part, study FROM offers WHERE entry = ?", entry)
        return OfferSecrets(*row) if row else None

    def keep_study(
        self, study: bytes, arrangement: bytes, teller: int, entry: bytes, manifest: bytes, most: int | None = None
    ) -> None:
        """An entry serves one study, under one arrangement, for ever. Raises `Conflict` for another, `Refused` where
        `most` studies are not over."""
        with self._writing("study") as connection:
            row = self._one("SELECT study FROM offers WHERE entry = ?", entry)
            held = self._one("SELECT arrangement, teller FROM studies WHERE study = ?", study)
            if (row and row[0] not in (None, study)) or held not in (None, (arrangement, teller)):
                raise Conflict(
                    "this teller's keys were countersigned for another study; publish without this `entry` in the "
                    "study file, and the teller is asked for a new one"
                )
            if held is None and most is not None and connection.execute(_OPEN).fetchone()[0] >= most:
                raise Refused(f"this teller serves {most} studies, and takes no more; ask when one is over")
            connection.execute("UPDATE offers SET study = ? WHERE entry = ?", (study, entry))
            content = (study, arrangement, teller, manifest)
            connection.execute("INSERT OR IGNORE INTO studies VALUES (?, ?, ?, ?, NULL)", content)

    def study(self, study: bytes) -> tuple[bytes, int] | None:
        """Arrangement and this teller's number."""
        row = self._one("SELECT arrangement, teller FROM studies WHERE study = ?", study)
        return (row[0], row[1]) if row else None

    def manifest(self, study: bytes) -> bytes | None:
        """The manifest that was countersigned."""
        row = self._one("SELECT manifest FROM studies WHERE study = ?", study)
        return row[0] if row else None

    def runs(self, study: bytes) -> bool:
        """True from its countersignature to its end."""
        return self._one("SELECT 1 FROM studies WHERE study = ? AND ended IS NULL", study) is not None

    def running(self) -> int:
        """How many studies run: those of two pairs are one study."""
        (number,) = self._one("SELECT count(DISTINCT manifest) FROM studies WHERE ended IS NULL") or (0,)
        return int(number)

    def manifests(self) -> list[bytes]:
        """Those of all studies that were countersigned."""
        return [manifest for (manifest,) in self._connection.execute("SELECT manifest FROM studies")]

    def keep_part(self, study: bytes, teller: int, part: bytes) -> None:
        """A fellow's part of the verification key. Its commitment was checked, so there is one only."""
        with self._writing("key-share") as connection:
            connection.execute("INSERT OR IGNORE INTO parts VALUES (?, ?, ?)", (study, teller, part))

    def parts(self, study: bytes) -> Mapping[int, bytes]:
        """The fellows' parts of the verification key."""
        rows = self._connection.execute("SELECT teller, part FROM parts WHERE study = ?", (study,))
        return {row[0]: row[1] for row in rows.fetchall()}

    def keep_roll(self, study: bytes, roll: Roll) -> None:
        """The one roster of a study. Raises `Conflict` for another."""
        with self._writing("roll") as connection:
            if self.roll(study) not in (None, roll):
                raise Conflict("a second roster for one study; keep both heads, they are evidence")
            content = (study, roll.issuer, roll.header, roll.packets, roll.members)
            connection.execute("INSERT OR IGNORE INTO rolls VALUES (?, ?, ?, ?, ?)", content)

    def roll(self, study: bytes) -> Roll | None:
        """The signed roster."""
        row = self._one("SELECT issuer, header, packets, members FROM rolls WHERE study = ?", study)
        with reading(self._file, KEPT, Term("roster")):
            return Roll(*row) if row else None

    # Packets

    def holder(self, occasion: Occasion, tag: bytes) -> bytes | None:
        """The digest of the packet that holds this tag; None while it is free."""
        row = self._one(f"SELECT digest FROM shares WHERE {_HERE} AND tag = ?", *_place(occasion), tag)
        return row[0] if row else None

    def verifiers(self, occasion: Occasion, tags: Iterable[bytes]) -> Mapping[bytes, bytes]:
        """By tag, this teller's verifier share, of those of these tags that are here."""
        query = f"SELECT tag, verifier FROM shares WHERE {_HERE} AND tag = ?"
        rows = (self._one(query, *_place(occasion), tag) for tag in tags)
        return {row[0]: row[1] for row in rows if row}

    def keep_shares(self, occasion: Occasion, shares: Sequence[Share], origin: Occasion) -> None:
        """New packets, whose tags are free. `origin`: the occasion of the study, which may have ended."""
        place = _place(occasion)
        rows = [(*place, share.tag, share.digest, share.verifier, share.seed, share.output) for share in shares]
        with self._writing("shares") as connection:
            self._demand_open(origin)
            connection.executemany("INSERT INTO shares VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)", rows)

    def shares(self, occasion: Occasion, tags: Iterable[bytes]) -> Iterator[Share]:
        """The packets with these tags that are here, each with its state; one at a time is in memory."""
        columns = "tag, digest, verifier, seed, output, message, accepted"
        for wanted in tags:
            row = self._one(f"SELECT {columns} FROM shares WHERE {_HERE} AND tag = ?", *_place(occasion), wanted)
            if row is not None:
                tag, digest, verifier, seed, output, message, accepted = row
                yield Share(tag, digest, verifier, seed, output, message, None if accepted is None else bool(accepted))

    def keep_verdicts(
        self, occasion: Occasion, verdicts: Mapping[bytes, tuple[bytes, bool]], origin: Occasion
    ) -> None:
        """By tag, the digest of the verifier shares that it was settled by, and the verdict. A refused share goes.
        `origin`: as of `keep_shares`."""
        settled = f"UPDATE shares SET message = ?, accepted = ? WHERE {_HERE} AND tag = ? AND message IS NULL"
        refused = f"UPDATE shares SET seed = NULL, output = NULL WHERE {_HERE} AND tag = ? AND accepted = 0"
        place = _place(occasion)
        with self._writing("verdicts", erases=True) as connection:
            self._demand_open(origin)
            rows = [(message, int(valid), *place, tag) for tag, (message, valid) in verdicts.items()]
            connection.executemany(settled, rows)
            connection.executemany(refused, [(*place, tag) for tag, (_, valid) in verdicts.items() if not valid])

    def accepted(self, occasion: Occasion) -> frozenset[bytes]:
        """The tags whose vectors are valid: every share of the occasion is read."""
        query = f"SELECT tag FROM shares WHERE {_HERE} AND accepted = 1"
        return frozenset(row[0] for row in self._connection.execute(query, _place(occasion)))

    def accepted_of(self, occasion: Occasion, tags: Iterable[bytes]) -> frozenset[bytes]:
        """Those of these tags whose vectors are valid."""
        query = f"SELECT tag FROM shares WHERE {_HERE} AND tag = ? AND accepted = 1"
        rows = (self._one(query, *_place(occasion), tag) for tag in tags)
        return frozenset(row[0] for row in rows if row)

    def outputs(self, occasion: Occasion, tags: Sequence[bytes]) -> Iterator[bytes]:
        """The shares of these tags' vectors, one after the other."""
        query = f"SELECT output FROM shares WHERE {_HERE} AND tag = ?"
        for tag in tags:
            row = self._one(query, *_place(occasion), tag)
            if row is None or row[0] is None:
                raise KEPT.damaged(self._file, Term("a share on the list is missing"))
            yield row[0]

    # The end of an occasion of the study: with a spare it is the same for both pairs

    def end(self, occasion: Occasion) -> End:
        """How far it has come."""
        row = self._one(f"SELECT list, noisy, evidence FROM ends WHERE {_HERE}", *_place(occasion))
        return End(*row) if row else End()

    def keep_list(self, occasion: Occasion, body: bytes) -> None:
        """The one list. Raises `Conflict` for another, also for one that a crash kept from being signed."""
        with self._writing("list") as connection:
            end = self.end(occasion)
            if end.evidence is not None or end.list not in (None, body):
                raise Conflict("a second list for one round; the first one holds, and there is never another")
            content = (*_place(occasion), body)
            connection.execute("INSERT OR IGNORE INTO ends VALUES (?, ?, ?, ?, NULL, NULL)", content)

    def keep_noisy(self, occasion: Occasion, statement: bytes, shares_of: Sequence[Occasion]) -> bytes:
        """The one noisy share, and in the same transaction every share goes. The statement that holds now."""
        with self._writing("noisy-share", erases=True) as connection:
            kept = self.end(occasion).noisy
            if kept is not None:
                return kept
            connection.execute(f"UPDATE ends SET noisy = ? WHERE {_HERE}", (statement, *_place(occasion)))
            connection.executemany(f"DELETE FROM shares WHERE {_HERE}", map(_place, shares_of))
        return statement

    def stop(self, occasion: Occasion, evidence: bytes, shares_of: Sequence[Occasion]) -> None:
        """No sum of this occasion, ever: every share goes, the evidence stays."""
        with self._writing("stop", erases=True) as connection:
            place = _place(occasion)
            connection.execute("INSERT OR IGNORE INTO ends VALUES (?, ?, ?, NULL, NULL, NULL)", place)
            connection.execute(f"UPDATE ends SET evidence = ? WHERE {_HERE} AND evidence IS NULL", (evidence, *place))
            connection.executemany(f"DELETE FROM shares WHERE {_HERE}", map(_place, shares_of))

    def has_begun(self, study: bytes, number: int) -> bool:
        """True from the first packet of this round."""
        place = "study = ? AND round = ?"
        found = f"SELECT 1 FROM shares WHERE {place} UNION ALL SELECT 1 FROM ends WHERE {place} LIMIT 1"
        return self._one(found, study, number, study, number) is not None

    def erase(self, studies: Sequence[bytes], ended: int) -> None:
        """The secrets and shares of a study, with a spare of all its pairs, which ended then (unix seconds). All that
        was signed stays, so that nothing else ever is."""
        each = [(study,) for study in studies]
        with self._writing("erasure", erases=True) as connection:
            connection.executemany("UPDATE offers SET sealing = x'', part = x'' WHERE study = ?", each)
            connection.executemany(
                "UPDATE studies SET ended = ? WHERE study = ? AND ended IS NULL", [(ended, study) for study in studies]
            )
            for table in ("parts", "shares"):
                connection.executemany(f"DELETE FROM {table} WHERE study = ?", each)

    # Parts

    def _demand_open(self, occasion: Occasion) -> None:
        if self.end(occasion) != End():
            raise Conflict("the list of this round is closed; nothing is taken any more")

    def _one(self, query: str, *values: object) -> tuple[Any, ...] | None:
        row = self._connection.execute(query, values).fetchone()
        return tuple(row) if row else None

    @contextmanager
    def _writing(self, write: str, erases: bool = False) -> Iterator[sqlite3.Connection]:
        """One durable transaction. A fault within undoes it."""
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            self._rows.begin()
            yield connection
            self._rows.end()
            number = counted(connection)
            crash_point(f"before-commit-of-{write}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # a full disk may have undone it already
                connection.execute("ROLLBACK")
            raise
        self._lived.remember(number)
        crash_point(f"after-commit-of-{write}")
        if erases:
            self._empty_log()

    def _empty_log(self) -> None:
        """Nothing that was erased stays in the log; also at a start, for a process that was killed before it."""
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _place(occasion: Occasion) -> tuple[bytes, int, int]:
    return occasion.study, occasion.round, occasion.slot
