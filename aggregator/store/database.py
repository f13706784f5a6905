"""The interface of the database behind every store. `sqlite` is the dialect without a server, and the default;
`postgres` is for studies that outgrow one file and one process.

The tables and nearly all statements are the same. A dialect decides how writers wait for each other, how erased rows
and the order of arrival leave the disk, and how faults are told.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from sqlalchemy import Column, ColumnElement, Insert, MetaData, Row, Select, Table
from sqlalchemy.ext.asyncio import AsyncConnection


class Database(ABC):
    """One database. Every write is one transaction, durable once it ends."""

    place: Path | str
    """The file, or the server without its password, as messages name it."""

    shared: bool
    """True if several processes may serve it at once."""

    @abstractmethod
    async def leads(self, willing: bool = True) -> bool:
        """True while this process is the one that carries studies from phase to phase. It is no lock: each step asks
        for the state that it rests on once more. One that is not `willing` leads only where no other does."""

    @abstractmethod
    async def led(self) -> bool:
        """True while some process leads."""

    @abstractmethod
    async def belong_to(self, key: bytes) -> None:
        """Raises `Refused` for the database of an aggregator with another key."""

    @abstractmethod
    async def is_original(self, last: bytes) -> bool:
        """False for a copy of a database, or one from before the `last` token that it was marked with; empty: none."""

    @abstractmethod
    async def mark_served(self, token: bytes) -> None:
        """It is served from its place, by a home that keeps the token from now on."""

    @abstractmethod
    async def create(self, *groups: MetaData) -> None:
        """Create what tables are missing. Raises `Refused` for another program's schema, and for a server that would
        keep what this program erases."""

    @abstractmethod
    def write(self, settling: bytes = b"") -> AbstractAsyncContextManager[AsyncConnection]:
        """A transaction of which there is one at a time, whichever process asks. With `settling`, a study, it also
        waits for every `add` to that study, and lets none begin."""

    @abstractmethod
    def add(self, study: bytes) -> AbstractAsyncContextManager[AsyncConnection]:
        """A transaction that adds rows to a study. There may be several at a time, in this process and others."""

    @abstractmethod
    def read(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """A consistent view. Raises `Damaged` for rows that this program did not write so."""

    @abstractmethod
    def insert_new(self, table: Table) -> Insert:
        """An insertion that leaves out the rows whose keys are taken. With RETURNING it tells those that it kept."""

    @abstractmethod
    def found(
        self, here: ColumnElement[bool], column: Column[bytes], values: Sequence[bytes], *beside: ColumnElement[Any]
    ) -> Select[*tuple[Any, ...]]:
        """A query for those of these values that a column has `here`, each with the columns `beside` it. It goes by the
        key, of which `column` is the last part and `here` fixes the others."""

    @abstractmethod
    async def begin_study(self, connection: AsyncConnection, study: bytes) -> None:
        """Make room for a study, before its first row."""

    @abstractmethod
    async def erase(self, connection: AsyncConnection, study: bytes, *tables: Table) -> None:
        """Delete all rows of a study in these tables."""

    @abstractmethod
    async def forget(self, study: bytes, *tables: Table) -> None:
        """Take out of the database's files, too, the rows of a study that were deleted in these tables."""

    @abstractmethod
    async def compact(self, study: bytes) -> None:
        """Rewrite the rows of a study in the order of their keys and empty the log, so that neither tells in which
        order they came."""

    @abstractmethod
    def drop_copies(self) -> None:
        """Remove what a migration kept: before something is erased, and before the order of rows is."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of the database."""


PAGE = 400
"""Rows of one page."""


async def pages(database: Database, query: Select[*tuple[Any, ...]]) -> AsyncIterator[Sequence[Row[*tuple[Any, ...]]]]:
    """The rows of a query out of one consistent view, a page in memory at a time. Take them all, and without pause: a
    server lets go of a view that is idle for ten seconds."""
    async with database.read() as connection:
        found = await connection.stream(query.execution_options(yield_per=PAGE))
        async for some in found.partitions():
            yield some
