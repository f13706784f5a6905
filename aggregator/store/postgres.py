"""The database as one of a PostgreSQL server (15 or later).

1. `leads`: one process of many leads, by a lock that its own session holds. A session that ended leads no more.
2. `create`: tables are made once, under a lock, and a schema of another program is refused.
3. `write` and `read`: one transaction, whose faults come as this program's own (`_translated`).
4. `begin_study`: a study's partitions. `erase` empties them in a transaction, and `forget` drops them.
5. `compact`: the rows in the order of their keys, so that nothing tells when they came.

Each study has a partition of every table that knows of its peers or packets. Compacting a study copies each into a
new table, in the order of keys and in one transaction. A row's place and xmin then tell nothing, where CLUSTER,
VACUUM FULL and VACUUM FREEZE keep xmin. Erasing a study drops its partitions. The log that knew the order goes with
a switch of its file and a checkpoint, on a server that is set to remove old files of its log.

Servers that keep more are refused (`_DEMANDED`). Not noticed, and named in docs/threats.md: replicas and their slots,
backups of the server, and blocks of the disk that are free again.
"""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from sqlalchemy import (
    ARRAY,
    Column,
    ColumnElement,
    Insert,
    Integer,
    LargeBinary,
    MetaData,
    Select,
    Table,
    cast,
    delete,
    func,
    make_url,
    select,
    text,
    true,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from aggregator.rules.faults import DatabaseAway
from aggregator.store import origin
from aggregator.store.database import Database
from aggregator.store.home import KEPT
from aggregator.store.origin import demand_key, is_original, mark_served
from anon.errors import Refused
from anon.machine.guard import Guard
from anon.storage.durable import reading
from anon.text.sentences import Term, attributed

VERSION = 6
"""Of the tables. It is raised with each change of them. Numbers up to 3 are of programs before the first release."""
_WRITING = 7_236_831
"""The advisory lock of whichever process writes."""
_LEADING = 7_236_832
"""The advisory lock of the session whose process leads."""
LEASE_SECONDS = 5
"""The server ends a session that leads and says nothing for so long: its process is paused, or cut off."""
_BETWEEN_SECONDS = 0.5
_UNWILLING_SECONDS = 5.0
"""A process that would rather not lead lets another have its turn so often."""
_DEMANDED = {
    "track_commit_timestamp": (("off",), "off"),
    "wal_recycle": (("off",), "off"),
    "log_statement": (("none", "ddl"), "none"),
    "log_min_duration_statement": (("-1",), "-1"),
    "archive_mode": (("off",), "off"),
    "wal_keep_size": (("0",), "0"),
}
"""Settings of the server: the values that keep no order of arrival, and the one to advise."""
_SESSION = {
    "idle_in_transaction_session_timeout": "10s",
    "tcp_keepalives_idle": "3",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "2",
}
"""Of every session. Locks of a process that is paused, or whose machine is gone, are let go."""
_TABLES = MetaData()
_schema = Table("schema_number", _TABLES, Column("number", Integer, nullable=False))


class PostgresDatabase(Database):
    """One database of a PostgreSQL server, at a URL that SQLAlchemy and asyncpg understand."""

    shared = True

    def __init__(self, url: str) -> None:
        named = make_url(url)
        # A driver takes its password from the query too, so of that the socket's folder alone is told.
        told = named.difference_update_query([name for name in named.query if name != "host"])
        self.place: str = told.render_as_string(hide_password=True)
        session = {**_SESSION, "application_name": f"anonml {os.getpid()}"}
        self._engine: AsyncEngine = create_async_engine(
            # A server that was restarted has closed the pool's connections, so each is asked before its use.
            named, hide_parameters=True, pool_pre_ping=True, connect_args={"server_settings": session}
        )
        # One snapshot for all statements of a reader: READ COMMITTED takes another for each.
        self._reader = self._engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        self._groups: tuple[MetaData, ...] = ()
        self._before_snapshot: str | None = None
        self._candidate: asyncio.Task[None] | None = None
        self._asked = asyncio.Event()
        self._leading = False
        self._willing = True

    async def leads(self, willing: bool = True) -> bool:
        """See `Database`. The first call begins to stand for it; another process takes over within ten seconds."""
        self._willing = willing
        if self._candidate is None:
            self._candidate = asyncio.create_task(self._stand())
        await self._asked.wait()
        return self._leading

    async def led(self) -> bool:
        """See `Database`."""
        asked = (
            "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted "
            f"AND (classid, objid, objsubid) = (0, {_LEADING}, 1) "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
        )
        async with self.read() as connection:
            return bool((await connection.execute(text(asked))).scalar_one())

    async def belong_to(self, key: bytes) -> None:
        """See `Database`."""
        async with self.write() as connection:
            await demand_key(connection, key, self.place)

    async def is_original(self, last: bytes) -> bool:
        """See `Database`."""
        async with self.read() as connection:
            return await is_original(connection, last)

    async def mark_served(self, token: bytes) -> None:
        """See `Database`."""
        async with self.write() as connection:
            await mark_served(connection, token)

    async def create(self, *groups: MetaData) -> None:
        """See `Database`."""
        self._groups = groups
        await self._demand_discreet()
        async with self.write() as connection:
            for group in (_TABLES, origin.TABLES):
                await connection.run_sync(group.create_all)
            number = (await connection.execute(select(func.max(_schema.c.number)))).scalar_one()
            if number is not None and number > VERSION:
                raise Refused(
                    f"{self.place}: written by a newer anonml (schema {number}, this one knows {VERSION}); install "
                    "that one again. Nothing was changed"
                )
            if number is not None and number < VERSION:
                raise Refused(
                    f"{self.place}: no database of this anonml (schema {number}, this one knows {VERSION}). Finish its "
                    "studies with the one that wrote it, or name an empty database. Nothing was changed"
                )
            for group in groups:
                await connection.run_sync(group.create_all)
            if number is None:
                await connection.execute(_schema.insert().values(number=VERSION))
        names = ", ".join(f"ONLY {table.name}" for table in self._partitioned())
        self._before_snapshot = f"LOCK TABLE {names} IN ACCESS SHARE MODE" if names else None

    @asynccontextmanager
    async def write(self, settling: bytes = b"") -> AsyncIterator[AsyncConnection]:
        """See `Database`."""
        with self._told():
            async with self._engine.begin() as connection:
                # A lock of the transaction: the server lets go of it however this process ends.
                await connection.execute(select(func.pg_advisory_xact_lock(_WRITING)))
                if settling:
                    await connection.execute(select(func.pg_advisory_xact_lock(_lock_of(settling))))
                yield connection

    @asynccontextmanager
    async def add(self, study: bytes) -> AsyncIterator[AsyncConnection]:
        """See `Database`."""
        with self._told():
            async with self._engine.begin() as connection:
                await connection.execute(select(func.pg_advisory_xact_lock_shared(_lock_of(study))))
                yield connection

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """See `Database`. Locks come before the snapshot: one from before a compaction would find no rows."""
        with self._told():
            async with self._reader.connect() as connection:
                if self._before_snapshot is not None:
                    await _run(connection, self._before_snapshot)
                yield connection

    def insert_new(self, table: Table) -> Insert:
        """See `Database`."""
        return insert(table).on_conflict_do_nothing()

    def found(
        self, here: ColumnElement[bool], column: Column[bytes], values: Sequence[bytes], *beside: ColumnElement[Any]
    ) -> Select[*tuple[Any, ...]]:
        """See `Database`. A look-up for each value: without statistics the planner would read all rows for a list."""
        asked = func.unnest(cast(list(values), ARRAY(LargeBinary))).table_valued("value").render_derived(name="asked")
        labelled = [value.label(f"beside_{place}") for place, value in enumerate(beside)]
        hit = select(*labelled).where(here, column == asked.c.value).limit(1).lateral("one")
        return select(asked.c.value, *hit.c).join_from(asked, hit, true())

    async def begin_study(self, connection: AsyncConnection, study: bytes) -> None:
        """A partition of each table."""
        for table in self._partitioned():
            name = _partition(table, study)
            values = f"FOR VALUES IN ('\\x{study.hex()}')"
            await _run(connection, f"CREATE TABLE IF NOT EXISTS {name} PARTITION OF {table.name} {values}")
            await _without_statistics(connection, table, name)

    async def erase(self, connection: AsyncConnection, study: bytes, *tables: Table) -> None:
        """See `Database`. A partition is dropped, and its files with it."""
        for table in tables:
            if _is_partitioned(table):
                await _run(connection, f"DROP TABLE IF EXISTS {_partition(table, study)}")
            else:
                await connection.execute(delete(table).where(table.c.study == study))

    async def forget(self, study: bytes, *tables: Table) -> None:
        """See `Database`."""
        for table in tables:
            async with self.write(study) as connection:
                if await _is_there(connection, _partition(table, study)):
                    await _rewrite(connection, table, study)
        with self._told():
            async with self._engine.connect() as connection:
                plain = await connection.execution_options(isolation_level="AUTOCOMMIT")
                await _run(plain, "SELECT pg_switch_wal()")
                await _run(plain, "CHECKPOINT")

    async def compact(self, study: bytes) -> None:
        """See `Database`. A transaction a table: readers of two tables would else wait for it, and it for them."""
        await self.forget(study, *self._partitioned())

    def drop_copies(self) -> None:
        """Nothing: a migration keeps no copy here."""

    async def close(self) -> None:
        """See `Database`."""
        if self._candidate is not None:
            self._candidate.cancel()
            await asyncio.gather(self._candidate, return_exceptions=True)
        await self._engine.dispose()

    async def _stand(self) -> None:
        """Ask for the lock until it is held, then keep its session from being idle for as long as it lasts."""
        guard = Guard("leading", say=lambda line: None)  # the loop that asks who leads tells it
        while True:
            with guard.turn(), self._told():
                async with self._engine.connect() as connection:
                    await self._hold(await connection.execution_options(isolation_level="AUTOCOMMIT"))
            self._asked.set()
            await asyncio.sleep(_BETWEEN_SECONDS)

    async def _hold(self, session: AsyncConnection) -> None:
        begun = time.monotonic()
        try:
            await _run(session, f"SET idle_session_timeout = '{LEASE_SECONDS}s'")
            while True:
                if not self._leading:
                    asked = await session.execute(select(func.pg_try_advisory_lock(_LEADING)))
                    self._leading, begun = bool(asked.scalar_one()), time.monotonic()
                    self._asked.set()
                elif not self._willing and time.monotonic() > begun + _UNWILLING_SECONDS:
                    self._leading = False
                    await session.execute(select(func.pg_advisory_unlock(_LEADING)))
                    await asyncio.sleep(3 * _BETWEEN_SECONDS)  # longer than any other waits
                await asyncio.sleep(_BETWEEN_SECONDS)
                await _run(session, "SELECT 1")
        finally:
            self._leading = False
            # A session may still hold the lock: it must not go back to the pool.
            await session.invalidate()

    def _partitioned(self) -> list[Table]:
        return [table for group in self._groups for table in group.sorted_tables if _is_partitioned(table)]

    async def _demand_discreet(self) -> None:
        """Raises `Refused`, with the statements that help, for a server that would keep the order of arrival."""
        async with self.read() as connection:
            version = int((await connection.execute(text("SHOW server_version_num"))).scalar_one())
            if version < 150_000:
                raise Refused(f"{self.place}: PostgreSQL {version // 10_000}; 15 or later is needed")
            names = ", ".join(f"'{name}'" for name in _DEMANDED)
            rows = await connection.execute(text(f"SELECT name, setting FROM pg_settings WHERE name IN ({names})"))
            found = {row.name: row.setting for row in rows}
            may = "has_function_privilege('pg_switch_wal()', 'EXECUTE'), pg_has_role('pg_checkpoint', 'USAGE')"
            switches, checks = (await connection.execute(text(f"SELECT {may}"))).one()
        wrong = [name for name, (values, _) in _DEMANDED.items() if found.get(name) not in values]
        if wrong:
            named = ", ".join(f"{name} = {found.get(name)}" for name in wrong)
            helping = "; ".join(f"ALTER SYSTEM SET {name} = {_DEMANDED[name][1]}" for name in wrong)
            raise Refused(
                f"{self.place}: the server keeps in which order packets came ({named}). As its superuser run: "
                f"{helping}; then restart it"
            )
        if not (switches and checks):
            raise Refused(
                f"{self.place}: this user may not empty the server's log. As its superuser run: GRANT pg_checkpoint TO "
                "USER; GRANT EXECUTE ON FUNCTION pg_switch_wal() TO USER"
            )

    @contextmanager
    def _told(self) -> Iterator[None]:
        with reading(self.place, KEPT, Term("a row")):
            try:
                yield
            except (DBAPIError, OSError) as error:
                raise self._translated(error) from error
            except Exception as error:
                if not hasattr(error, "sqlstate"):  # of asyncpg itself, before there is a connection
                    raise
                raise self._translated(error) from error

    def _translated(self, error: Exception) -> Exception:
        """The error for its reader, by PostgreSQL's code; itself when it is a fault of this program."""
        code = str(getattr(getattr(error, "orig", error), "sqlstate", None) or "")
        gone = isinstance(error, DBAPIError) and error.connection_invalidated
        if code.startswith("53100"):
            return KEPT.full(self.place, attributed(code))
        if code.startswith(("XX001", "XX002")):
            return KEPT.damaged(self.place, attributed(code))
        silent = isinstance(error, OSError) and error.errno not in (errno.ENOSPC, errno.EDQUOT)
        if gone or silent or code.startswith(("08", "28", "3D", "53", "57P")):
            # A server that goes and comes gives codes of each moment: one sentence for all of them is said once.
            return DatabaseAway(self.place, "" if code.startswith(("08", "57P")) else code)
        return error


async def _rewrite(connection: AsyncConnection, table: Table, study: bytes) -> None:
    """Copy a partition into a new one that takes its place: all rows get this transaction's xmin, and lie by key."""
    name = _partition(table, study)
    columns = ", ".join(f'"{column.name}"' for column in table.columns)
    order = ", ".join(f'"{column.name}"' for column in table.primary_key.columns)
    # Writers wait from here on, and readers from the DROP on.
    await _run(connection, f"LOCK TABLE {name} IN EXCLUSIVE MODE")
    await _run(connection, f"CREATE TABLE {name}_new (LIKE {table.name} INCLUDING ALL)")
    await _run(connection, f"INSERT INTO {name}_new ({columns}) SELECT {columns} FROM {name} ORDER BY {order}")
    await _run(connection, f"DROP TABLE {name}")
    await _run(connection, f"ALTER TABLE {name}_new RENAME TO {name}")
    attached = f"ATTACH PARTITION {name} FOR VALUES IN ('\\x{study.hex()}')"
    await _run(connection, f"ALTER TABLE {table.name} {attached}")
    await _without_statistics(connection, table, name)


async def _without_statistics(connection: AsyncConnection, table: Table, name: str) -> None:
    """The planner's samples would keep which rows were there early."""
    columns = ", ".join(f'ALTER COLUMN "{column.name}" SET STATISTICS 0' for column in table.columns)
    await _run(connection, f"ALTER TABLE {name} {columns}")


async def _is_there(connection: AsyncConnection, name: str) -> bool:
    return (await connection.execute(select(func.to_regclass(name)))).scalar_one() is not None


async def _run(connection: AsyncConnection, statement: str) -> None:
    await connection.exec_driver_sql(statement)


def _is_partitioned(table: Table) -> bool:
    options: Any = table.dialect_options["postgresql"]
    return bool(options["partition_by"])


def _partition(table: Table, study: bytes) -> str:
    return f"{table.name}_{study.hex()[:40]}"


def _lock_of(study: bytes) -> int:
    # The numbers of advisory locks are PostgreSQL's bigint, which has a sign.
    return int.from_bytes(study[:8], "big", signed=True)
