"""The buckets of a study's documents as they are served and read again. One that was not signed so is damage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from aggregator.store.buckets import BucketStore, Leaf
from aggregator.store.home import KEPT
from aggregator.store.studies import StudyStore
from anon.protocols.kinds import padded_length
from anon.text.sentences import attributed
from anon.transparency.bucketed import hashed_body, leaf_of
from anon.transparency.buckets import BucketDocument, bucket_at
from anon.transparency.merkle import root_of


class Shelf:
    """One study's buckets. Remembers the leaves of each document: 40 bytes a bucket."""

    def __init__(self, study: bytes, store: BucketStore, studies: StudyStore) -> None:
        self._study = study
        self._store = store
        self._studies = studies
        self._leaves: dict[int, tuple[Leaf, ...]] = {}

    async def bucket(self, number: int, document: BucketDocument, bucket: int) -> bytes | None:
        """A bucket for the wire; None when there is none. Raises `Damaged` for one that is not what was signed."""
        content = await self.content(number, document, bucket)
        if content is None:
            return None
        leaves = await self._leaves_of(number, document)
        size = padded_length(document, max(leaf.entries for leaf in leaves))
        digests = [leaf.digest for leaf in leaves]
        body = hashed_body(document.study, document.kind, document.part, content)
        return bucket_at(digests, bucket, body).to_bytes(size)

    async def content(self, number: int, document: BucketDocument, bucket: int) -> bytes | None:
        """The content of a bucket; None when there is none, or when it was erased. Raises `Damaged`."""
        if bucket >= document.buckets:
            return None
        leaves = await self._leaves_of(number, document)
        content = await self._store.content(self._study, number, bucket) if bucket < len(leaves) else None
        if content is None:
            if await self._studies.body(self._study, number) is None:  # a document is erased before its buckets
                return None
            raise self._damaged(document, f"bucket {bucket}")
        found = await asyncio.to_thread(leaf_of, document.study, document.kind, document.part, content)
        if found != leaves[bucket].digest:
            raise self._damaged(document, f"bucket {bucket}")
        return content

    async def contents(self, number: int, document: BucketDocument) -> AsyncIterator[tuple[int, bytes]]:
        """All buckets of a document with their numbers, one in memory at a time. Raises `Damaged`."""
        for bucket in range(document.buckets):
            content = await self.content(number, document, bucket)
            if content is None:
                raise self._damaged(document, f"bucket {bucket}")
            yield bucket, content

    async def erase(self, numbers: Sequence[int], unsigned: int) -> None:
        """Forget the buckets of these documents, and of any that was begun: from number `unsigned` on."""
        await self._store.erase(self._study, numbers, unsigned)
        for number in numbers:
            self._leaves.pop(number, None)

    async def _leaves_of(self, number: int, document: BucketDocument) -> tuple[Leaf, ...]:
        if number not in self._leaves:
            leaves = await self._store.leaves(self._study, number)
            if leaves and root_of([leaf.digest for leaf in leaves]) != document.root:
                raise self._damaged(document, "the hashes of its buckets")
            self._leaves[number] = leaves
        return self._leaves[number]

    def _damaged(self, document: BucketDocument, what: str) -> Exception:
        named = f"study {self._study.hex()[:8]}, {document.kind} {document.part}, {what}"
        return KEPT.damaged(self._studies.place, attributed(named))
