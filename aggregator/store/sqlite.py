"""The database as one SQLite file, the default: no server, one process that serves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from pathlib import Path
from typing import Any

from sqlalchemy import Column, ColumnElement, Insert, MetaData, Select, Table, delete, event, select
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from aggregator.store.database import Database
from aggregator.store.home import KEPT
from aggregator.store.migrations import SCHEMA
from anon.storage.durable import connect, guarded, reading, runs_by_itself
from anon.storage.lived import COUNT, DatabaseMemory, count
from anon.storage.migration import drop_copies
from anon.storage.private_files import made_private
from anon.text.sentences import Term

_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA secure_delete=ON",
    "PRAGMA busy_timeout=30000",
    "PRAGMA temp_store=MEMORY",
)


class SqliteDatabase(Database):
    """One SQLite file. Writers take turns; erased rows are overwritten (secure_delete)."""

    shared = False

    def __init__(self, path: Path) -> None:
        self._engine: AsyncEngine = create_async_engine(
            # SQLAlchemy's errors would quote the values of a statement that failed.
            f"sqlite+aiosqlite:///{path}", hide_parameters=True, connect_args={"factory": guarded(path, KEPT)}
        )
        self._writing = asyncio.Lock()
        event.listen(self._engine.sync_engine, "connect", _connected)
        event.listen(self._engine.sync_engine, "begin", _begun)
        self._writer = self._engine.execution_options(writes=True)
        self._path, self._lived = path, DatabaseMemory(path, KEPT)
        self.place = path

    async def leads(self, willing: bool = True) -> bool:
        """Always: a home has one serving process, by its lock."""
        return True

    async def led(self) -> bool:
        """Always, as above."""
        return True

    async def belong_to(self, key: bytes) -> None:
        """Nothing: the file is in the home."""

    async def is_original(self, last: bytes) -> bool:
        """Always: a restored file has a mark beside it, and `create` refuses an older one (`anon.storage.lived`)."""
        return True

    async def mark_served(self, token: bytes) -> None:
        """Nothing, as above."""

    async def create(self, *groups: MetaData) -> None:
        """See `Database`. Raises `Refused` for the file of another program's schema, `Damaged` for one that is missing,
        emptied or older than the last one (`anon.storage.lived`)."""
        await asyncio.to_thread(self._demand_latest)
        made_private(self._path)
        async with self.write() as connection:
            for group in groups:
                await connection.run_sync(group.create_all)
            await connection.exec_driver_sql(f"PRAGMA user_version = {SCHEMA.version}")

    def _demand_latest(self) -> None:
        known = self._lived.known()
        SCHEMA.demand_own(self._path)
        stored = None
        if self._path.exists() and (self._path.stat().st_size or _log_of(self._path)):
            with closing(connect(self._path, KEPT)) as connection:
                stored = count(connection)
                if runs_by_itself(connection):
                    raise KEPT.damaged(self._path, Term("a trigger or a view"))
        self._lived.demand(known, stored)

    @asynccontextmanager
    async def write(self, settling: bytes = b"") -> AsyncIterator[AsyncConnection]:
        """See `Database`. It holds the file's one write lock from its start."""
        with reading(self._path, KEPT, Term("a row")):
            async with self._writing:
                async with self._writer.begin() as connection:
                    yield connection
                    number = 1 + int((await connection.exec_driver_sql(COUNT)).scalar_one())
                    await connection.exec_driver_sql(f"{COUNT} = {number}")
                self._lived.remember(number)

    def add(self, study: bytes) -> AbstractAsyncContextManager[AsyncConnection]:
        """See `Database`. A file has one writer."""
        return self.write()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """See `Database`."""
        with reading(self._path, KEPT, Term("a row")):
            async with self._engine.connect() as connection:
                yield connection

    def insert_new(self, table: Table) -> Insert:
        """See `Database`."""
        return insert(table).on_conflict_do_nothing()

    def found(
        self, here: ColumnElement[bool], column: Column[bytes], values: Sequence[bytes], *beside: ColumnElement[Any]
    ) -> Select[*tuple[Any, ...]]:
        """See `Database`."""
        return select(column, *beside).where(here & column.in_(values))

    async def begin_study(self, connection: AsyncConnection, study: bytes) -> None:
        """Nothing: all studies share the tables."""

    async def erase(self, connection: AsyncConnection, study: bytes, *tables: Table) -> None:
        """See `Database`. The file keeps no copy."""
        for table in tables:
            await connection.execute(delete(table).where(table.c.study == study))

    async def forget(self, study: bytes, *tables: Table) -> None:
        """Nothing: deleted rows are overwritten at once."""

    async def compact(self, study: bytes) -> None:
        """See `Database`. It rewrites the whole file, by way of a nameless file in the same folder, as large.

        The log takes as much once more, so that the disk needs room for two further files.
        """
        self.drop_copies()
        async with self._writing, self._engine.connect() as connection:
            plain = await connection.execution_options(isolation_level="AUTOCOMMIT")
            folder = str(self._path.parent.absolute()).replace("'", "''")
            await plain.exec_driver_sql(f"PRAGMA temp_store_directory='{folder}'")
            try:
                await plain.exec_driver_sql("PRAGMA temp_store=FILE")
                await plain.exec_driver_sql("VACUUM")
            finally:
                await plain.exec_driver_sql("PRAGMA temp_store=MEMORY")
                # It is the whole process's: other databases would put their files here.
                await plain.exec_driver_sql("PRAGMA temp_store_directory=''")
            await plain.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")

    def drop_copies(self) -> None:
        """See `Database`."""
        drop_copies(self._path)

    async def close(self) -> None:
        """See `Database`."""
        await self._engine.dispose()


def _log_of(path: Path) -> int:
    log = path.with_name(f"{path.name}-wal")
    return log.stat().st_size if log.exists() else 0


def _connected(connection: Any, _: Any) -> None:
    # Python's sqlite3 would begin transactions by itself, in its own places.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(pragma)
    cursor.close()


def _begun(connection: Any) -> None:
    options = connection.get_execution_options()
    if options.get("isolation_level") != "AUTOCOMMIT":
        # A read that turns into a write fails at once where another wrote meanwhile (SQLITE_BUSY_SNAPSHOT).
        connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("writes") else "BEGIN")
