"""The buckets of documents, each a row beside its document's head and body. They are public from their first moment."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from attrs import frozen
from sqlalchemy import Column, Integer, MetaData, delete, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from aggregator.store.database import Database
from aggregator.store.tables import bytes_column, study_table
from anon.transparency.bucketed import InBuckets

TABLES = MetaData()
_AT_ONCE = 256

_buckets = study_table(
    TABLES,
    "buckets",
    Column("number", Integer, primary_key=True),
    Column("bucket", Integer, primary_key=True),
    bytes_column("leaf", 32),
    Column("entries", Integer, nullable=False),
    bytes_column("content"),
)


@frozen
class Leaf:
    """The hash of a bucket's body, and how many entries it has."""

    digest: bytes
    entries: int


class BucketStore:
    """Buckets by (study, number of the document, number of the bucket)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def leaves(self, study: bytes, number: int) -> tuple[Leaf, ...]:
        """All leaves of a document, in order; none where its buckets were erased."""
        query = select(_buckets.c.leaf, _buckets.c.entries).where(
            (_buckets.c.study == study) & (_buckets.c.number == number)
        )
        async with self._database.read() as connection:
            rows = await connection.execute(query.order_by(_buckets.c.bucket))
            return tuple(Leaf(bytes(row.leaf), int(row.entries)) for row in rows)

    async def content(self, study: bytes, number: int, bucket: int) -> bytes | None:
        """The content of one bucket; None when there is none."""
        here = (_buckets.c.study == study) & (_buckets.c.number == number) & (_buckets.c.bucket == bucket)
        async with self._database.read() as connection:
            found = (await connection.execute(select(_buckets.c.content).where(here))).scalar_one_or_none()
        return None if found is None else bytes(found)

    async def contents(self, study: bytes, number: int) -> AsyncIterator[tuple[int, bytes]]:
        """The buckets of a document with their numbers, in order; one in memory at a time."""
        for bucket in range(len(await self.leaves(study, number))):
            content = await self.content(study, number, bucket)
            if content is not None:
                yield bucket, content

    async def erase(self, study: bytes, numbers: Sequence[int]) -> None:
        """Forget the buckets of these documents."""
        async with self._database.write() as connection:
            here = (_buckets.c.study == study) & _buckets.c.number.in_(list(numbers))
            await connection.execute(delete(_buckets).where(here))


async def keep(connection: AsyncConnection, number: int, made: InBuckets) -> None:
    """Store the buckets of a document in the transaction that stores its head."""
    rows = [
        {
            "study": made.document.study,
            "number": number,
            "bucket": bucket,
            "leaf": made.leaves[bucket],
            "entries": made.entries[bucket],
            "content": content,
        }
        for bucket, content in enumerate(made.contents)
    ]
    for start in range(0, len(rows), _AT_ONCE):
        await connection.execute(insert(_buckets), rows[start : start + _AT_ONCE])
