"""Who enrolled, and the admissions there are. Nothing here knows of packets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from attrs import field, frozen
from sqlalchemy import Column, Integer, LargeBinary, MetaData, bindparam, cast, delete, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from aggregator.rules.enrolled import Admission, KnownEnrolments, StoredEnrolment
from aggregator.store.crash_points import crash_point
from aggregator.store.database import Database, pages
from aggregator.store.studies import frozen_until
from aggregator.store.tables import bytes_column, key_column, study_table

TABLES = MetaData()

_enrolments = study_table(
    TABLES,
    "enrolments",
    key_column("key", 32),
    bytes_column("contribution", 32),
    bytes_column("commitment"),
    bytes_column("digest", 32),
    bytes_column("sound", 32),
)
"""`digest` is that of the post, and `sound` one of all that the row holds (`StoredEnrolment.check`)."""
_invites = study_table(TABLES, "invites", key_column("invite", 32), Column("spent_by", LargeBinary(32)))
_listed = study_table(TABLES, "listed_keys", key_column("key", 32))
_withdrawals = study_table(TABLES, "withdrawals", key_column("key", 32))
_counted = study_table(TABLES, "enrolled", Column("number", Integer, nullable=False), partitioned=False)
"""How many enrolments a study has: counting its rows takes a fifth of a second at a million."""

_AT_ONCE = 400
_KEY, _CONTRIBUTION, _COMMITMENT = (cast(column, LargeBinary) for column in _enrolments.c[1:4])
_STORED, _CHECK = (_KEY, _CONTRIBUTION, _COMMITMENT), cast(_enrolments.c.sound, LargeBinary)


@frozen
class Keys:
    """The keys of a study's sound enrolments, in order and laid end to end, and those of the damaged ones."""

    sound: bytes = field(repr=False)
    damaged: tuple[bytes, ...]


class EnrolTransaction:
    """Reads and writes of one transaction."""

    def __init__(self, database: Database, connection: AsyncConnection, study: bytes) -> None:
        self._database = database
        self._connection = connection
        self._study = study

    async def known(self, keys: Collection[bytes], invites: Collection[bytes]) -> KnownEnrolments:
        """The stored facts about these keys and invites."""
        digests = await self._among(_enrolments.c.key, keys, _enrolments.c.digest)
        left = await self._among(_withdrawals.c.key, keys)
        listed = await self._among(_listed.c.key, keys)
        spent_by = await self._among(_invites.c.invite, invites, _invites.c.spent_by)
        return KnownEnrolments(digests, frozenset(left), frozenset(listed), spent_by, await self.enrolled())

    async def frozen_until(self) -> int:
        """The end of what is closed for good, whatever this process's clock says."""
        return await frozen_until(self._connection, self._study)

    async def enrolled(self) -> int:
        """How many are enrolled. The rows are counted the first time."""
        number = select(_counted.c.number).where(_counted.c.study == self._study)
        counted = (await self._connection.execute(number)).scalar_one_or_none()
        if counted is None:
            query = select(func.count()).select_from(_enrolments).where(_enrolments.c.study == self._study)
            counted = int((await self._connection.execute(query)).scalar_one())
            await self._connection.execute(insert(_counted).values(study=self._study, number=counted))
        return int(counted)

    async def store(self, admitted: Sequence[Admission]) -> None:
        """Store the enrolments of a batch and spend their invites. Call it after `known`."""
        if not admitted:
            return
        await self._connection.execute(insert(_enrolments), [self._row(admission) for admission in admitted])
        here = (_invites.c.study == self._study) & (_invites.c.invite == bindparam("spent"))
        spent = [{"spent": admission.invite, "by": admission.enrolled.key} for admission in admitted]
        await self._connection.execute(_invites.update().where(here).values(spent_by=bindparam("by")), spent)
        await self._count(len(admitted))

    async def withdrawn(self) -> int:
        """How many keys have left."""
        query = select(func.count()).select_from(_withdrawals).where(_withdrawals.c.study == self._study)
        return int((await self._connection.execute(query)).scalar_one())

    async def withdraw(self, key: bytes) -> None:
        """Delete an enrolment if there is one, free its invite, and remember that the key left: no late copy enrols it.
        """
        mine = (_enrolments.c.study == self._study) & (_enrolments.c.key == key)
        gone = await self._connection.execute(delete(_enrolments).where(mine))
        await self._count(-gone.rowcount)
        spent = (_invites.c.study == self._study) & (_invites.c.spent_by == key)
        await self._connection.execute(_invites.update().where(spent).values(spent_by=None))
        await self._connection.execute(insert(_withdrawals).values(study=self._study, key=key))

    async def _among(
        self, column: Column[bytes], values: Collection[bytes], beside: Column[bytes] | None = None
    ) -> dict[bytes, Any]:
        """Those of these values that the column has, each with what stands in the column `beside` it."""
        here = column.table.c.study == self._study
        query = self._database.found(here, column, list(values), column if beside is None else beside)
        return {row[0]: row[1] for row in await self._connection.execute(query)} if values else {}

    async def _count(self, more: int) -> None:
        now = _counted.update().where(_counted.c.study == self._study).values(number=_counted.c.number + more)
        await self._connection.execute(now)

    def _row(self, admitted: Admission) -> dict[str, bytes]:
        return {
            "study": self._study,
            "key": admitted.enrolled.key,
            "contribution": admitted.enrolled.contribution,
            "commitment": admitted.enrolled.commitment,
            "digest": admitted.digest,
            "sound": admitted.enrolled.check(),
        }


class EnrolStore:
    """Enrolments, invites and lists of one study at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @asynccontextmanager
    async def change(self, study: bytes, what: str) -> AsyncIterator[EnrolTransaction]:
        """One durable transaction on a study's enrolments; `what` names its crash points."""
        async with self._database.write() as connection:
            yield EnrolTransaction(self._database, connection, study)
            # A copy that a migration kept would still hold who left.
            if what == "withdrawal":
                self._database.drop_copies()
            crash_point(f"before-commit-of-{what}")
        crash_point(f"after-commit-of-{what}")

    async def add_invites(self, study: bytes, hashes: Iterable[bytes]) -> None:
        """Keep the hashes of new invite codes; the codes themselves are never stored."""
        async with self._database.write() as connection:
            rows = [{"study": study, "invite": invite, "spent_by": None} for invite in sorted(hashes)]
            await connection.execute(insert(_invites), rows)

    async def list_keys(self, study: bytes, keys: Iterable[bytes]) -> None:
        """Add Ed25519 keys to a study's list; those already on it stay."""
        async with self._database.write() as connection:
            for key in sorted(keys):
                await connection.execute(self._database.insert_new(_listed).values(study=study, key=key))

    async def keys(self, study: bytes) -> Keys:
        """The keys of every enrolment, read a page at a time. By then nobody enrols any more (`StudyStore.freeze`)."""
        in_place = _enrolments.c.key > b""  # a damaged row can hold a text, and is not found
        query = select(*_STORED, _CHECK, in_place)
        sound, damaged = bytearray(), []
        async for rows in pages(self._database, query.where(_enrolments.c.study == study).order_by(_enrolments.c.key)):
            for key, contribution, commitment, check, is_found in rows:
                enrolment = StoredEnrolment(key, contribution, commitment)
                if is_found and check == enrolment.check():
                    sound += enrolment.key
                else:
                    damaged.append(enrolment.key)
        return Keys(bytes(sound), tuple(damaged))

    async def of_keys(self, study: bytes, keys: Sequence[bytes]) -> tuple[StoredEnrolment, ...]:
        """The sound enrolments of these keys, sorted by key."""
        here, found = _enrolments.c.study == study, []
        async with self._database.read() as connection:
            for start in range(0, len(keys), _AT_ONCE):
                some = keys[start : start + _AT_ONCE]
                query = self._database.found(here, _enrolments.c.key, some, *_STORED, _CHECK)
                found += [(StoredEnrolment(*row[1:-1]), row[-1]) for row in await connection.execute(query)]
        sound = (enrolment for enrolment, check in found if check == enrolment.check())
        return tuple(sorted(sound, key=lambda enrolment: enrolment.key))

    async def enrolled(self, study: bytes) -> int:
        """How many are enrolled, as it was last noted; at any size at once."""
        query = select(_counted.c.number).where(_counted.c.study == study)
        async with self._database.read() as connection:
            return int((await connection.execute(query)).scalar_one_or_none() or 0)

    async def count(self, study: bytes) -> int:
        """How many are enrolled, by their rows: a fifth of a second at a million."""
        query = select(func.count()).select_from(_enrolments).where(_enrolments.c.study == study)
        async with self._database.read() as connection:
            return int((await connection.execute(query)).scalar_one())

    async def erase(self, study: bytes) -> None:
        """Delete everything about who enrolled."""
        async with self._database.write() as connection:
            tables = (_enrolments, _invites, _listed, _withdrawals, _counted)
            await self._database.erase(connection, study, *tables)
            crash_point("before-erasure")
        crash_point("after-erasure")
