"""Move a home's studies from its SQLite file to a database on a PostgreSQL server."""

from __future__ import annotations

from contextlib import closing

from sqlalchemy import MetaData, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from aggregator.store.database import Database
from aggregator.store.dialects import TABLES, begun_at, keep_address
from aggregator.store.home import DATABASE_URL, Home
from aggregator.store.migrations import upgrade_home
from aggregator.store.sqlite import SqliteDatabase
from aggregator.store.studies import StudyStore
from anon.errors import Refused

_AT_ONCE = 500


async def move(home: Home, url: str) -> int:
    """Copy every row to `url` in one transaction, have the home use it, then remove the file. How many studies moved.

    Rows go in the order of their keys, and all get one transaction's number: neither tells in which order they came.
    Killed before its end it has moved nothing, or all. Raises `Refused` while the home is served, for a home without a
    file, and for a database that has studies already.
    """
    with closing(home.lock()):
        if not home.database.exists() or (home.path / DATABASE_URL).exists():
            raise Refused(f"{home.path}: this home has no studies in a file; nothing was moved")
        upgrade_home(home)
        source, target = SqliteDatabase(home.database), begun_at(url)
        try:
            await source.create(*TABLES)
            await target.create(*TABLES)
            await target.belong_to(home.public_key)
            moved = await _copied(source, target)
        finally:
            await target.close()
            await source.close()
        keep_address(home, url)
        source.drop_copies()
        for file in home.path.glob(f"{home.database.name}*"):
            file.unlink()
        return moved


async def _copied(source: Database, target: Database) -> int:
    if await StudyStore(target).all():
        raise Refused(f"{target.place}: it has studies already; name a new database")
    studies = [progress.study for progress in await StudyStore(source).all()]
    async with target.write() as writing, source.read() as reading:
        for study in studies:
            await target.begin_study(writing, study)
        for group in TABLES:
            await _copy_tables(group, reading, writing)
    return len(studies)


async def _copy_tables(group: MetaData, reading: AsyncConnection, writing: AsyncConnection) -> None:
    """All rows, some in memory at a time."""
    for table in group.sorted_tables:
        rows = await reading.stream(select(table).order_by(*table.primary_key.columns))
        async for part in rows.partitions(_AT_ONCE):
            await writing.execute(insert(table), [row._asdict() for row in part])
