"""The buckets of documents, each a row beside its document's head and body. They are public from their first moment.

1. `put` writes some buckets, before the document over them is signed. The same ones again change nothing.
2. `leaves` gives every bucket's hash, over which the document is signed.
3. `content` gives one bucket to whoever asks.
4. `erase` takes them away: those of erased transcripts, and those whose document never was signed.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen
from sqlalchemy import Column, Integer, MetaData, delete, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from aggregator.rules.faults import Superseded
from aggregator.store.database import Database
from aggregator.store.studies import documents_of
from aggregator.store.tables import bytes_column, study_table
from anon.transparency.bucketed import MadeBucket

TABLES = MetaData()

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

    async def put(self, study: bytes, number: int, first: int, made: Sequence[MadeBucket]) -> None:
        """Keep buckets of the document that is to have this number, from the `first` on. Nothing once a head has taken
        the number: then its buckets are there.

        A bucket whose document has no head is served to nobody. A document that was begun before is overwritten.
        """
        rows = [
            {
                "study": study,
                "number": number,
                "bucket": bucket,
                "leaf": made_bucket.leaf,
                "entries": made_bucket.entries,
                "content": made_bucket.content,
            }
            for bucket, made_bucket in enumerate(made, first)
        ]
        async with self._database.write() as connection:
            if await documents_of(connection, study) > number:
                return
            here = (_buckets.c.study == study) & (_buckets.c.number == number)
            earlier = (_buckets.c.bucket >= first) & (_buckets.c.bucket < first + len(rows))
            await connection.execute(delete(_buckets).where(here & earlier))
            await connection.execute(insert(_buckets), rows)

    async def erase(self, study: bytes, numbers: Sequence[int], unsigned: int) -> None:
        """Forget the buckets of these documents, and of any that was begun: from number `unsigned` on."""
        async with self._database.write() as connection:
            gone = _buckets.c.number.in_(list(numbers)) | (_buckets.c.number >= unsigned)
            await connection.execute(delete(_buckets).where((_buckets.c.study == study) & gone))


async def demand_put(connection: AsyncConnection, study: bytes, number: int, leaves: Sequence[bytes]) -> None:
    """In the transaction that takes a document's number: what was put must be its buckets and no more.

    Raises `Superseded` where another process has put others.
    """
    here = (_buckets.c.study == study) & (_buckets.c.number == number)
    await connection.execute(delete(_buckets).where(here & (_buckets.c.bucket >= len(leaves))))
    found = await connection.execute(select(_buckets.c.leaf).where(here).order_by(_buckets.c.bucket))
    if [bytes(row.leaf) for row in found] != list(leaves):
        raise Superseded(study)
