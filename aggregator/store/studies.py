"""The tables about studies and their documents.

Enrolments and packets have modules and tables of their own (`enrolments`, `packets`) that share nothing but the
database: who takes part is never beside what anybody sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen
from nacl.signing import SigningKey
from sqlalchemy import (
    BigInteger,
    Column,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    case,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from aggregator.rules.faults import Superseded
from aggregator.store.crash_points import crash_point
from aggregator.store.database import Database
from aggregator.store.home import KEPT
from aggregator.store.tables import BY_STUDY, study_table
from anon.errors import Malformed
from anon.protocols.contract import Place
from anon.storage.durable import reading
from anon.text.sentences import Term
from anon.transparency.documents import Head, SignedHead, check_body, next_head, parse_head, sign_head, signed

TABLES = MetaData()

_studies = study_table(
    TABLES,
    "studies",
    Column("phase", String, nullable=False),
    Column("turn", Integer, nullable=False),
    Column("frozen", Integer().with_variant(BigInteger, "postgresql"), nullable=False),
    partitioned=False,
)

ERASED_KINDS = ("transcript", "page")
"""Kinds of documents that show packets: their bodies go with the packets, when the retention ends."""
_documents = Table(
    "documents",
    TABLES,
    Column("study", LargeBinary(32), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("kind", String, nullable=False),
    Column("part", Integer, nullable=False),
    Column("head", LargeBinary, nullable=False),
    Column("signature", LargeBinary(64), nullable=False),
    Column("body", LargeBinary),
    UniqueConstraint("study", "kind", "part"),
    postgresql_partition_by=BY_STUDY,
)


_UNSIGNED = b""
"""In place of the signature of a head whose number is taken."""


@frozen
class Progress:
    """Where a study stands: its phase, the binning round, and the end of the latest window whose packets are fixed."""

    study: bytes
    phase: str
    turn: int
    frozen: int


Beside = Callable[[AsyncConnection, int], Awaitable[None]]


class StudyStore:
    """Studies and their chains of signed documents."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def place(self) -> Path | str:
        """The database, as messages name it."""
        return self._database.place

    async def add(
        self, study: bytes, phase: str, manifest: bytes, key: SigningKey, beside: Mapping[Place, bytes] | None = None
    ) -> None:
        """Begin a study: its row, its first document and what is published `beside` it, in one transaction."""
        chain: list[SignedHead] = []
        rows = []
        for (kind, part), body in {("manifest", 0): manifest, **(beside or {})}.items():
            chain.append(sign_head(key, study, chain, kind, part, body))
            rows.append(_row(chain[-1], body))
        async with self._database.write() as connection:
            await self._database.begin_study(connection, study)
            await connection.execute(insert(_studies).values(study=study, phase=phase, turn=0, frozen=0))
            await connection.execute(insert(_documents), rows)
            crash_point("before-commit-of-study")
        crash_point("after-commit-of-study")

    async def all(self) -> tuple[Progress, ...]:
        """Every study. One whose id is damaged has an empty one, under which nothing can be read."""
        async with self._database.read() as connection:
            rows = await connection.execute(select(_studies).order_by(_studies.c.study))
            named = ((row.study if isinstance(row.study, bytes) else b"", row) for row in rows)
            return tuple(Progress(study, row.phase, row.turn, row.frozen) for study, row in named)

    async def lengths(self) -> dict[bytes, int]:
        """How many documents each study has, one that is being signed included."""
        query = select(_documents.c.study, func.max(_documents.c.number) + 1).group_by(_documents.c.study)
        async with self._database.read() as connection:
            return {row[0]: row[1] for row in await connection.execute(query)}

    async def move(self, study: bytes, phase: str, turn: int, after: int | None = None) -> None:
        """Remember that a study reached a phase; all effects of getting there are done.

        `after`: the length of the chain that the caller knows. Raises `Superseded` for another one.
        """
        async with self._database.write() as connection:
            if after is not None and len(await _chain(connection, study)) != after:
                raise Superseded(study)
            await connection.execute(update(_studies).where(_studies.c.study == study).values(phase=phase, turn=turn))
            crash_point("before-commit-of-phase")
        crash_point("after-commit-of-phase")

    async def freeze(self, study: bytes, closes: int) -> None:
        """Remember, before anything is counted, that nothing for a window up to `closes` is accepted any more, by any
        process."""
        async with self._database.write(settling=study) as connection:
            wanted = case((_studies.c.frozen < closes, closes), else_=_studies.c.frozen)
            await connection.execute(update(_studies).where(_studies.c.study == study).values(frozen=wanted))
            crash_point("before-commit-of-freeze")
        crash_point("after-commit-of-freeze")

    async def chain(self, study: bytes) -> tuple[SignedHead, ...]:
        """The study's signed heads in order. Raises `Damaged`, also where rows and their index differ."""
        async with self._database.read() as connection:
            with reading(self._database.place, KEPT, Term(f"study {study.hex()[:8]}, heads")):
                await _demand_found(connection, study)
                return await _chain(connection, study)

    async def body(self, study: bytes, number: int) -> bytes | None:
        """The body of a document of the chain; None where it was erased, as only those that show packets are.

        Raises `Damaged` for one that is missing or not what was signed.
        """
        wanted = (_documents.c.study == study) & (_documents.c.number == number)
        async with self._database.read() as connection:
            query = select(_documents.c.head, _documents.c.body).where(wanted)
            row = (await connection.execute(query)).one_or_none()
        with reading(self._database.place, KEPT, Term(f"study {study.hex()[:8]}, document {number}")):
            if row is None:
                raise KeyError(number)
            head = parse_head(row.head)
            if row.body is None and head.kind in ERASED_KINDS:
                return None
            return await asyncio.to_thread(check_body, head, row.body)

    async def erase_bodies(self, study: bytes) -> None:
        """Forget the bodies of documents that show packets; their signed heads stay."""
        wanted = (_documents.c.study == study) & _documents.c.kind.in_(ERASED_KINDS)
        async with self._database.write() as connection:
            await connection.execute(update(_documents).where(wanted).values(body=None))

    async def append(
        self,
        study: bytes,
        kind: str,
        part: int,
        body: bytes,
        key: SigningKey,
        beside: Beside | None = None,
        after: int | None = None,
    ) -> tuple[SignedHead, ...]:
        """Publish a document and return the chain. `beside` stores more in the transaction that takes its number.

        A document of this kind and part that is already there stays as it is. A number belongs to one head before that
        is signed: the head is durable without its signature first, and whoever goes on from there signs the very same.
        So neither a repeated step nor a process that was paused ever signs two heads with one number.

        `after`: the length of the chain that the caller knows. Raises `Superseded` for a longer one.
        """
        async with self._database.write() as connection:
            chain, taken = await self._standing(connection, study)
            if _has(chain, kind, part):
                return chain
            if taken is None:
                if after is not None and len(chain) != after:
                    raise Superseded(study)
                head = next_head(study, chain, kind, part, body)
                await connection.execute(insert(_documents).values(**_row(SignedHead(head, _UNSIGNED), body)))
                if beside is not None:
                    await beside(connection, head.number)
        async with self._database.write() as connection:
            chain, last = await self._standing(connection, study)
            if last is not None:
                chain = (*chain, signed(key, last))
                here = (_documents.c.study == study) & (_documents.c.number == last.number)
                await connection.execute(update(_documents).where(here).values(signature=chain[-1].signature))
            crash_point("before-commit-of-document")
        crash_point("after-commit-of-document")
        return chain if _has(chain, kind, part) else await self.append(study, kind, part, body, key, beside, after)

    async def _standing(self, connection: AsyncConnection, study: bytes) -> tuple[tuple[SignedHead, ...], Head | None]:
        """The signed heads, and the one that has the next number and no signature yet."""
        with reading(self._database.place, KEPT, Term(f"study {study.hex()[:8]}, heads")):
            chain = await _chain(connection, study)
            here = (_documents.c.study == study) & (_documents.c.number == len(chain))
            taken = (await connection.execute(select(_documents.c.head).where(here))).scalar_one_or_none()
            return chain, None if taken is None else parse_head(taken)


async def _chain(connection: AsyncConnection, study: bytes) -> tuple[SignedHead, ...]:
    here = (_documents.c.study == study) & (_documents.c.signature != _UNSIGNED)
    query = select(_documents.c.head, _documents.c.signature).where(here)
    rows = await connection.execute(query.order_by(_documents.c.number))
    return tuple(SignedHead(parse_head(row.head), row.signature) for row in rows)


async def documents_of(connection: AsyncConnection, study: bytes) -> int:
    """How many documents a study has, one that is being signed included."""
    query = select(func.max(_documents.c.number) + 1).where(_documents.c.study == study)
    return int((await connection.execute(query)).scalar_one_or_none() or 0)


async def _demand_found(connection: AsyncConnection, study: bytes) -> None:
    """Raises `Malformed` where a study's rows are not those of their heads, or not those of an index.

    A file of SQLite has number, kind and part in the row, and once more in the index by which the row is found. A row
    that its index misses would not be served or erased, and its number would be signed once more.
    """
    number, kind, part, head = _documents.c.number, _documents.c.kind, _documents.c.part, _documents.c.head
    here = _documents.c.study == study
    rows = select(number, kind, part, head).with_hint(_documents, "NOT INDEXED", "sqlite").where(here)
    told, named = [], []
    for row in await connection.execute(rows):
        of = parse_head(row.head)
        told.append((row.number, row.kind, row.part))
        named.append((of.number, of.kind, of.part))
    numbers = (await connection.execute(select(number).where(here).order_by(number))).scalars().all()
    names = [(row.kind, row.part) for row in await connection.execute(select(kind, part).where(here))]
    found = list(numbers) == list(range(len(told))) and sorted(names) == sorted(name[1:] for name in named)
    if not found or sorted(told) != sorted(named):
        raise Malformed("documents: their rows are not those that were signed")


async def frozen_until(connection: AsyncConnection, study: bytes) -> int:
    """The end of the latest window of a study that is closed for good; 0 before the first."""
    query = select(_studies.c.frozen).where(_studies.c.study == study)
    return int((await connection.execute(query)).scalar_one_or_none() or 0)


def _has(chain: tuple[SignedHead, ...], kind: str, part: int) -> bool:
    return any((signed_head.head.kind, signed_head.head.part) == (kind, part) for signed_head in chain)


def _row(made: SignedHead, body: bytes) -> dict[str, Any]:
    head = made.head
    return {
        "study": head.study,
        "number": head.number,
        "kind": head.kind,
        "part": head.part,
        "head": head.to_bytes(),
        "signature": made.signature,
        "body": body,
    }


Clock = Callable[[], float]
