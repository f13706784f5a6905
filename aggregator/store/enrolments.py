"""Who enrolled, and the admissions there are. Nothing here knows of packets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from attrs import frozen
from sqlalchemy import Column, LargeBinary, MetaData, cast, delete, exists, func, insert, select
from sqlalchemy.dialects.sqlite import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from aggregator.rules.enrolled import Enrolled, Standing
from aggregator.store.crash_points import crash_point
from aggregator.store.studies import Database
from aggregator.store.tables import bytes_column, key_column, study_table

TABLES = MetaData()

_enrolments = study_table(
    TABLES,
    "enrolments",
    key_column("key", 32),
    bytes_column("contribution", 32),
    bytes_column("commitment"),
    bytes_column("digest", 32),
)
_checks = study_table(TABLES, "enrolment_checks", key_column("key", 32), bytes_column("digest", 32))
"""Of what the row of an enrolment holds. Enrolments of earlier versions have none."""
_invites = study_table(TABLES, "invites", key_column("invite", 32), Column("spent_by", LargeBinary(32)))
_listed = study_table(TABLES, "listed_keys", key_column("key", 32))
_withdrawals = study_table(TABLES, "withdrawals", key_column("key", 32))


@frozen
class Roster:
    """The enrolments of a study, sorted by key, and the keys of those that are damaged."""

    sound: tuple[Enrolled, ...]
    damaged: tuple[bytes, ...]


class EnrolTransaction:
    """Reads and writes of one transaction."""

    def __init__(self, connection: AsyncConnection, study: bytes) -> None:
        self._connection = connection
        self._study = study
        self._enrolled: int | None = None

    async def enrolled(self) -> int:
        """How many are enrolled; counted once in a transaction, then kept in step."""
        if self._enrolled is None:
            query = select(func.count()).select_from(_enrolments).where(_enrolments.c.study == self._study)
            self._enrolled = int((await self._connection.execute(query)).scalar_one())
        return self._enrolled

    async def standing(self, key: bytes, invite: bytes) -> Standing:
        """The stored facts about this key and this invite."""
        mine = (_enrolments.c.study == self._study) & (_enrolments.c.key == key)
        left = exists().where((_withdrawals.c.study == self._study) & (_withdrawals.c.key == key))
        named = exists().where((_listed.c.study == self._study) & (_listed.c.key == key))
        digest = select(_enrolments.c.digest).where(mine).scalar_subquery()
        row = (await self._connection.execute(select(digest, left, named))).one()
        spent = select(_invites.c.spent_by).where((_invites.c.study == self._study) & (_invites.c.invite == invite))
        invited = (await self._connection.execute(spent)).one_or_none()
        return Standing(
            row[0], row[1], row[2], invited is not None, invited[0] if invited else None, await self.enrolled()
        )

    async def admit(self, enrolled: Enrolled, invite: bytes, digest: bytes) -> None:
        """Store an enrolment and spend its invite."""
        before = await self.enrolled()
        values = {
            "study": self._study,
            "key": enrolled.key,
            "contribution": enrolled.contribution,
            "commitment": enrolled.commitment,
            "digest": digest,
        }
        await self._connection.execute(insert(_enrolments).values(**values))
        check = {"study": self._study, "key": enrolled.key, "digest": enrolled.check()}
        await self._connection.execute(insert(_checks).values(**check))
        here = (_invites.c.study == self._study) & (_invites.c.invite == invite)
        await self._connection.execute(_invites.update().where(here).values(spent_by=enrolled.key))
        self._enrolled = before + 1

    async def withdrawn(self) -> int:
        """How many keys have left."""
        query = select(func.count()).select_from(_withdrawals).where(_withdrawals.c.study == self._study)
        return int((await self._connection.execute(query)).scalar_one())

    async def withdraw(self, key: bytes) -> None:
        """Delete an enrolment if there is one, free its invite, and remember that the key left: no late copy enrols it.
        """
        mine = (_enrolments.c.study == self._study) & (_enrolments.c.key == key)
        self._enrolled = None
        await self._connection.execute(delete(_enrolments).where(mine))
        checked = (_checks.c.study == self._study) & (_checks.c.key == key)
        await self._connection.execute(delete(_checks).where(checked))
        spent = (_invites.c.study == self._study) & (_invites.c.spent_by == key)
        await self._connection.execute(_invites.update().where(spent).values(spent_by=None))
        await self._connection.execute(insert(_withdrawals).values(study=self._study, key=key))


class EnrolStore:
    """Enrolments, invites and lists of one study at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @asynccontextmanager
    async def change(self, study: bytes, what: str) -> AsyncIterator[EnrolTransaction]:
        """One durable transaction on a study's enrolments; `what` names its crash points."""
        async with self._database.write() as connection:
            yield EnrolTransaction(connection, study)
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
                await connection.execute(upsert(_listed).values(study=study, key=key).on_conflict_do_nothing())

    async def roster(self, study: bytes) -> Roster:
        """Every enrolment, sorted by key, after every change that has begun."""
        joined = _enrolments.outerjoin(
            _checks, (_checks.c.study == _enrolments.c.study) & (_checks.c.key == _enrolments.c.key)
        )
        columns = [cast(column, LargeBinary) for column in (*_enrolments.c[1:4], _checks.c.digest)]
        query = select(*columns).select_from(joined).where(_enrolments.c.study == study).order_by(_enrolments.c.key)
        async with self._database.write() as connection:
            rows = [(Enrolled(*row[:3]), row[3]) for row in await connection.execute(query)]
        sound = tuple(enrolment for enrolment, check in rows if check in (None, enrolment.check()))
        return Roster(
            sound, tuple(enrolment.key for enrolment, check in rows if check not in (None, enrolment.check()))
        )

    async def count(self, study: bytes) -> int:
        """How many are enrolled."""
        query = select(func.count()).select_from(_enrolments).where(_enrolments.c.study == study)
        async with self._database.read() as connection:
            return int((await connection.execute(query)).scalar_one())

    async def erase(self, study: bytes) -> None:
        """Delete everything about who enrolled."""
        async with self._database.write() as connection:
            for table in (_enrolments, _checks, _invites, _listed, _withdrawals):
                await connection.execute(delete(table).where(table.c.study == study))
            crash_point("before-erasure")
        crash_point("after-erasure")
