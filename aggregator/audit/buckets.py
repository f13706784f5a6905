"""The audit of roster, credentials and transcripts, one bucket in memory at a time.

1. Each bucket is a piece of work for any process, made from public bytes alone: `check_bucket` and `check_members`.
2. In it the body is in order, and every entry stands in the bucket that its key or tag names.
3. `GatheredBuckets` takes the results in the order of the buckets, with their hashes and counts.
4. At the end all hashes give the signed root, and all counts the signed number. The first few faults are named.

No tag counts twice: a bucket is strictly sorted, and every packet stands in the bucket that its tag names.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial

from attrs import field, frozen

from aggregator.audit.packets import PacketContext, check_packets
from aggregator.compute import Compute
from aggregator.study.learn import TranscriptCounts, count
from anon.errors import AnonmlError, Malformed
from anon.study.manifest import Manifest, parse_manifest
from anon.transparency.bucketed import BUCKETED, leaf_of, read_packets_bucket, read_roster_bucket
from anon.transparency.buckets import BucketDocument, parse_bucket_document
from anon.transparency.closing import Bodies, ClosingDocuments, read_closing
from anon.transparency.documents import SignedHead
from anon.transparency.merkle import root_of
from anon.wire.packets import parse_published

Contents = Callable[[int, int], bytes | None]
"""The content of a document's bucket, by the numbers of both; None where it is missing."""
MOST_NAMED = 10
_MISSING = "; fetch them, or they were erased when the retention ended"


def no_contents(_number: int, _bucket: int) -> bytes | None:
    """Where nothing but the documents is there."""
    return None


@frozen
class CheckedLeaf:
    """The hash of a bucket's body and how many entries it has; or, with an empty hash, why it is none of the document.
    """

    digest: bytes = b""
    entries: int = 0
    fault: str = ""
    missing: bool = False

    @property
    def good(self) -> bool:
        """True for a bucket of the document."""
        return not self.missing and not self.fault


class GatheredBuckets:
    """The buckets of one document, taken in their order. Of its faults the first are named, and the others counted.

    `entries`: how many the buckets have."""

    def __init__(self, document: BucketDocument) -> None:
        self.document = document
        self.entries = 0
        self._missing: list[int] = []
        self._faults: list[str] = []
        self._leaves: list[bytes] = []

    def take(self, bucket: int, leaf: CheckedLeaf) -> None:
        """One bucket."""
        if leaf.missing:
            self._missing.append(bucket)
        elif leaf.fault:
            self.fault(f"bucket {bucket}{leaf.fault}")
        else:
            self._leaves.append(leaf.digest)
            self.entries += leaf.entries

    def fault(self, said: str) -> None:
        """Keep a fault of one bucket."""
        self._faults.append(said)

    def finished(self) -> list[str]:
        """All buckets were taken: what does not hold in them, and against the signed document."""
        document, faults = self.document, first_of(self._faults, "further faults of its buckets")
        if self._missing:
            named = ", ".join(map(str, self._missing[:MOST_NAMED]))
            faults.append(f"{_of(self._missing, document)}: {named}{_MISSING}")
        if len(self._leaves) == document.buckets and root_of(self._leaves) != document.root:
            faults.append("its buckets are not those of the signed root")
        if document.kind != "credentials" and not faults and self.entries != document.count:
            faults.append(f"signed for {document.count} entries, and its buckets have {self.entries}")
        return faults


def first_of(faults: Sequence[str], others: str) -> list[str]:
    """The first of many faults, and the number of the others."""
    more = len(faults) - MOST_NAMED
    return [*faults[:MOST_NAMED], *([f"{more} {others}"] if more > 0 else [])]


def _of(missing: Sequence[int], document: BucketDocument) -> str:
    return f"{len(missing)} of {document.buckets} bucket{'' if document.buckets == 1 else 's'} missing"


def _leaf(document: BucketDocument, bucket: int, content: bytes | None) -> CheckedLeaf:
    """The leaf of a bucket, whatever its root says. Credentials are counted against the roster's bucket."""
    if content is None:
        return CheckedLeaf(missing=True)
    try:
        digest = leaf_of(document.study, document.kind, document.part, content)
        if document.kind == "roster":
            return CheckedLeaf(digest, len(read_roster_bucket(document, bucket, content)))
        if document.kind == "transcript":
            return CheckedLeaf(digest, len(read_packets_bucket(document, bucket, content)))
    except Malformed as fault:
        return CheckedLeaf(fault=f": {fault}")
    return CheckedLeaf(digest)


# Transcripts


@frozen(eq=False)
class CheckedPackets:
    """One bucket of a transcript. `packets`: how many were checked; `tags`: by survey, where they are asked for;
    `refused`: how many packets each word refuses; `counted`: None where nothing can be counted; `fault`: why none is
    checked, None where all are."""

    leaf: CheckedLeaf
    packets: int = 0
    tags: Mapping[int, tuple[bytes, ...]] = field(factory=dict, repr=False)
    refused: Mapping[str, int] = field(factory=dict)
    bad_tokens: int = 0
    counted: TranscriptCounts | None = field(default=None, repr=False)
    fault: str | None = None


def check_bucket(
    asked: PacketContext, with_tags: bool, piece: tuple[BucketDocument, int, bytes | None]
) -> CheckedPackets:
    """`piece`: a transcript's document, the number of its bucket, and the content. Never raises for anything in it."""
    document, bucket, content = piece
    leaf = _leaf(document, bucket, content)
    if content is None:
        return CheckedPackets(leaf)
    try:
        counted = count(asked.counting, [content])
    except Malformed:
        counted = None
    if not leaf.good:
        return CheckedPackets(leaf, counted=counted)
    packets = read_packets_bucket(document, bucket, content)
    checked = check_packets(asked, packets)
    if checked.fault is not None:
        return CheckedPackets(leaf, counted=counted, fault=checked.fault)
    tags: dict[int, list[bytes]] = {}
    for packet, tag in zip(packets if with_tags else (), checked.tags, strict=False):
        tags.setdefault(parse_published(packet).survey, []).append(tag)
    by_survey = {survey: tuple(some) for survey, some in tags.items()}
    refused = Counter(checked.refused)
    return CheckedPackets(leaf, len(packets), by_survey, refused, checked.bad_tokens, counted)


def checked_transcripts(
    compute: Compute,
    asked: PacketContext,
    with_tags: bool,
    documents: Sequence[BucketDocument],
    content_of: Callable[[int, int], bytes | None],
) -> Iterator[CheckedPackets]:
    """Every bucket of these transcripts, in order. `content_of`: by slot and bucket."""
    pieces = (
        (document, bucket, content_of(document.part, bucket))
        for document in documents
        for bucket in range(document.buckets)
    )
    return compute.stream(partial(check_bucket, asked, with_tags), pieces)


# Roster and credentials


@frozen
class CheckedMembers:
    """One bucket of the roster, and that of the credentials. `bad`: entries whose credentials do not work; `fault`: why
    none is checked."""

    roster: CheckedLeaf
    credentials: CheckedLeaf
    bad: tuple[int, ...] = ()
    fault: str = ""


def check_members(
    manifest: bytes, bodies: Bodies, piece: tuple[int, bytes | None, bytes | None]
) -> CheckedMembers:
    """`piece`: the number of a bucket, and its contents in roster and credentials. Never raises for what they hold."""
    bucket, entries, issued = piece
    documents = _closing(manifest, bodies)
    roster, credentials = (
        _leaf(document, bucket, content)
        for document, content in ((documents.roster, entries), (documents.credentials, issued))
    )
    if not (roster.good and credentials.good) or entries is None or issued is None:
        return CheckedMembers(roster, credentials)
    try:
        bad = documents.closing(bucket, entries, issued).bad_credentials(os.urandom, most=MOST_NAMED)
    except AnonmlError as fault:
        return CheckedMembers(roster, credentials, fault=str(fault))
    return CheckedMembers(roster, credentials, tuple(bad))


def checked_members(
    compute: Compute, manifest: bytes, bodies: Bodies, content_of: Callable[[int, str], bytes | None]
) -> Iterator[CheckedMembers]:
    """Every bucket of roster and credentials, in order. Raises `Malformed` for documents that do not fit together."""
    numbers = range(_closing(manifest, bodies).roster.buckets)
    pieces = ((number, content_of(number, "roster"), content_of(number, "credentials")) for number in numbers)
    return compute.stream(partial(check_members, manifest, bodies), pieces)


def checked_roster(document: BucketDocument, content_of: Callable[[int], bytes | None]) -> GatheredBuckets:
    """The buckets of a roster whose credentials are not there."""
    gathered = GatheredBuckets(document)
    for bucket in range(document.buckets):
        gathered.take(bucket, _leaf(document, bucket, content_of(bucket)))
    return gathered


@lru_cache(maxsize=2)
def _closing(manifest: bytes, bodies: Bodies) -> ClosingDocuments:
    return read_closing(manifest, parse_manifest(manifest), bodies)


def bucket_places(
    manifest: Manifest, chain: Sequence[SignedHead], bodies: Mapping[int, bytes]
) -> Iterator[tuple[int, int]]:
    """The numbers of document and bucket of everything that an export has beside the documents."""
    for signed in chain:
        head = signed.head
        if head.kind in BUCKETED and head.number in bodies:
            try:
                document = parse_bucket_document(bodies[head.number], manifest.study_id, head.kind, head.part)
            except Malformed:
                continue  # a finding of the audit
            yield from ((head.number, bucket) for bucket in range(document.buckets))
