"""The one list of each sum, kept before any teller hears of it: a teller signs no second one."""

from __future__ import annotations

from sqlalchemy import Column, ColumnElement, Integer, MetaData, and_, select

from aggregator.store.crash_points import crash_point
from aggregator.store.database import Database
from aggregator.store.tables import bytes_column, study_table
from anon.wire.packets import Occasion

TABLES = MetaData()

_lists = study_table(
    TABLES,
    "lists",
    Column("round", Integer, primary_key=True),
    Column("slot", Integer, primary_key=True),
    bytes_column("body"),
)


class ListStore:
    """Lists by (study, round, slot)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, occasion: Occasion) -> bytes | None:
        """The list that was kept; None before."""
        async with self._database.read() as connection:
            return (await connection.execute(select(_lists.c.body).where(_here(occasion)))).scalar_one_or_none()

    async def keep(self, occasion: Occasion, body: bytes) -> bytes:
        """Keep a list where there is none; the one that holds."""
        row = {"study": occasion.study, "round": occasion.round, "slot": occasion.slot, "body": body}
        async with self._database.write() as connection:
            await connection.execute(self._database.insert_new(_lists).values(row))
            held = (await connection.execute(select(_lists.c.body).where(_here(occasion)))).scalar_one()
            crash_point("before-commit-of-list")
        crash_point("after-commit-of-list")
        return bytes(held)

    async def erase(self, study: bytes) -> None:
        """Forget the lists of a study."""
        async with self._database.write() as connection:
            await self._database.erase(connection, study, _lists)


def _here(occasion: Occasion) -> ColumnElement[bool]:
    columns = (_lists.c.study, _lists.c.round, _lists.c.slot)
    values = (occasion.study, occasion.round, occasion.slot)
    return and_(*(column == value for column, value in zip(columns, values, strict=True)))
