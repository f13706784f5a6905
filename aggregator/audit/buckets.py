"""The audit of documents in buckets, one bucket in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from anon.errors import Malformed
from anon.protocols.kinds import can_be_in_buckets
from anon.study.manifest import Manifest
from anon.transparency.bucketed import has_buckets, leaf_of, read_packets_bucket, read_roster_bucket
from anon.transparency.buckets import BucketDocument, parse_bucket_document
from anon.transparency.documents import SignedHead
from anon.transparency.merkle import root_of

Contents = Callable[[int, int], bytes | None]
"""The content of a document's bucket, by the numbers of both; None where it is missing."""


def no_contents(_number: int, _bucket: int) -> bytes | None:
    """For studies whose documents are whole."""
    return None


class CheckedBuckets:
    """The buckets of one document, taken in their order. `faults`: all that does not hold, once `finished`."""

    def __init__(self, document: BucketDocument, content_of: Callable[[int], bytes | None]) -> None:
        self.document = document
        self.faults: list[str] = []
        self._content_of = content_of
        self._leaves: list[bytes] = []
        self._entries = 0

    def take(self, bucket: int) -> bytes | None:
        """The content of a bucket that is what it must be, whatever its root says; else None."""
        content = self._content_of(bucket)
        if content is None:
            self.faults.append(f"bucket {bucket} is missing; fetch it, or it was erased when the retention ended")
            return None
        document = self.document
        try:
            self._leaves.append(leaf_of(document.study, document.kind, document.part, content))
            self._entries += self._count(bucket, content)
        except Malformed as fault:
            self.faults.append(f"bucket {bucket}: {fault}")
            return None
        return content

    def all(self) -> Iterator[tuple[int, bytes]]:
        """Every bucket that is what it must be, with its number; then the end."""
        for bucket in range(self.document.buckets):
            if (content := self.take(bucket)) is not None:
                yield bucket, content
        self.finished()

    def finished(self) -> None:
        """All buckets were taken: compare them with the signed document."""
        document = self.document
        if len(self._leaves) == document.buckets and root_of(self._leaves) != document.root:
            self.faults.append("its buckets are not those of the signed root")
        if document.kind != "credentials" and not self.faults and self._entries != document.count:
            self.faults.append(f"signed for {document.count} entries, and its buckets have {self._entries}")

    def _count(self, bucket: int, content: bytes) -> int:
        if self.document.kind == "roster":
            return len(read_roster_bucket(self.document, bucket, content))
        if self.document.kind == "transcript":
            return len(read_packets_bucket(self.document, bucket, content))
        return 0  # credentials are counted against the roster's bucket


def bucket_places(
    manifest: Manifest, chain: Sequence[SignedHead], bodies: Mapping[int, bytes]
) -> Iterator[tuple[int, int]]:
    """The numbers of document and bucket of everything that an export has beside the documents."""
    for one in chain if has_buckets(manifest, chain) else ():
        head = one.head
        if can_be_in_buckets(head.kind) and head.number in bodies:
            try:
                document = parse_bucket_document(bodies[head.number], manifest.study_id, head.kind, head.part)
            except Malformed:
                continue  # a finding of the audit
            yield from ((head.number, bucket) for bucket in range(document.buckets))
