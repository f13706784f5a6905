"""The audit of roster, credentials and transcripts, one bucket in memory at a time.

1. Some buckets are a piece of work for any process, made from public bytes alone: `check_buckets` and `check_members`.
   They are so many that their tokens, or credentials, make a wide batch, each of which then costs less.
2. In it the body is in order, and every entry stands in the bucket that its key or tag names.
3. `GatheredBuckets` takes the results in the order of the buckets, with their hashes and counts.
4. At the end all hashes give the signed root, and all counts the signed number. The first few faults are named.

No tag counts twice: a bucket is strictly sorted, and every packet stands in the bucket that its tag names.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain
from typing import TypeVar

from attrs import evolve, field, frozen

from aggregator.audit.packets import PacketContext, PacketVerdicts, check_packets
from aggregator.compute import Compute
from aggregator.study.learn import TranscriptCounts, count_read
from anon.errors import AnonmlError, Malformed
from anon.study.manifest import Manifest, parse_manifest
from anon.transparency.bucketed import (
    BUCKETED,
    leaf_of,
    read_packets_bucket,
    read_roster_bucket,
    read_transcript,
)
from anon.transparency.buckets import BucketDocument, parse_bucket_document
from anon.transparency.closing import Bodies, Closing, ClosingDocuments, all_work, read_closing
from anon.transparency.documents import SignedHead
from anon.transparency.merkle import root_of
from anon.wire.packets import PublishedPacket

Contents = Callable[[int, int], bytes | None]
"""The content of a document's bucket, by the numbers of both; None where it is missing."""
Piece = TypeVar("Piece")
MOST_NAMED = 10
TRANSCRIPTS_AT_ONCE, MEMBERS_AT_ONCE = 4 << 20, 1 << 19
"""Bytes of transcripts, and of a roster, in one batch: each some 4,096 packets of one slot, or members."""
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
    """The leaf of a bucket of members, whatever its root says. Credentials are counted against the roster's bucket."""
    if content is None:
        return CheckedLeaf(missing=True)
    try:
        digest = leaf_of(document.study, document.kind, document.part, content)
        if document.kind == "roster":
            return CheckedLeaf(digest, len(read_roster_bucket(document, bucket, content)))
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


TranscriptBucket = tuple[BucketDocument, int, bytes | None]
"""A transcript's document, the number of its bucket, and the content."""


def check_buckets(asked: PacketContext, with_tags: bool, piece: Sequence[TranscriptBucket]) -> list[CheckedPackets]:
    """Some buckets, in their order. Never raises for anything in them."""
    read = [_read_bucket(asked, *bucket) for bucket in piece]
    verdicts = iter(check_packets(asked, [packets for _, packets in read if packets is not None]))
    return [
        checked if packets is None else _with_verdicts(checked, packets if with_tags else (), next(verdicts))
        for checked, packets in read
    ]


def _read_bucket(
    asked: PacketContext, document: BucketDocument, bucket: int, content: bytes | None
) -> tuple[CheckedPackets, tuple[PublishedPacket, ...] | None]:
    """The bucket with its counts, and its packets. None where there is nothing to check in them."""
    if content is None:
        return CheckedPackets(CheckedLeaf(missing=True)), None
    counted = None
    try:
        read = read_transcript(document.study, content)
        counted = count_read(asked.counting, read.packets)
        packets = read_packets_bucket(document, bucket, read)
    except Malformed as fault:
        return CheckedPackets(CheckedLeaf(fault=f": {fault}"), counted=counted), None
    return CheckedPackets(CheckedLeaf(read.leaf, len(packets)), counted=counted), packets


def _with_verdicts(
    checked: CheckedPackets, tagged: Sequence[PublishedPacket], found: PacketVerdicts
) -> CheckedPackets:
    """`tagged`: the packets whose tags are asked for."""
    if found.fault is not None:
        return evolve(checked, fault=found.fault)
    tags: dict[int, list[bytes]] = {}
    for packet in tagged:
        tags.setdefault(packet.survey, []).append(packet.tag)
    by_survey = {survey: tuple(some) for survey, some in tags.items()}
    refused = Counter(found.refused)
    return evolve(checked, packets=len(found.tags), tags=by_survey, refused=refused, bad_tokens=found.bad_tokens)


def wide(pieces: Iterable[Piece], size: Callable[[Piece], int], least: int) -> Iterator[tuple[Piece, ...]]:
    """The pieces in their order, so many together that their size reaches the least; the last ones may not."""
    group: list[Piece] = []
    total = 0
    for piece in pieces:
        group.append(piece)
        total += size(piece)
        if total >= least:
            yield tuple(group)
            group, total = [], 0
    if group:
        yield tuple(group)


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
    groups = wide(pieces, lambda piece: len(piece[2] or b""), TRANSCRIPTS_AT_ONCE)
    return chain.from_iterable(compute.stream(partial(check_buckets, asked, with_tags), groups))


# Roster and credentials


@frozen
class CheckedMembers:
    """One bucket of the roster, and that of the credentials. `bad`: entries whose credentials do not work; `fault`: why
    none is checked."""

    roster: CheckedLeaf
    credentials: CheckedLeaf
    bad: tuple[int, ...] = ()
    fault: str = ""


MemberBucket = tuple[int, bytes | None, bytes | None]
"""The number of a bucket, and its contents in roster and credentials."""


def check_members(manifest: bytes, bodies: Bodies, piece: Sequence[MemberBucket]) -> list[CheckedMembers]:
    """Some buckets, in their order. Never raises for what they hold.

    Credentials that all work are found to in one batch. Else those of each bucket are checked, to name the bad ones.
    """
    documents = _closing(manifest, bodies)
    checked = [_read_members(documents, *bucket) for bucket in piece]
    together = [closing for _, closing in checked if closing is not None]
    if not together or all_work(together, os.urandom):
        return [members for members, _ in checked]
    return [
        evolve(members, bad=tuple(closing.bad_credentials(os.urandom, most=MOST_NAMED))) if closing else members
        for members, closing in checked
    ]


def _read_members(
    documents: ClosingDocuments, bucket: int, entries: bytes | None, issued: bytes | None
) -> tuple[CheckedMembers, Closing | None]:
    """The bucket, and its members and credentials. None where these cannot be checked."""
    roster, credentials = (
        _leaf(document, bucket, content)
        for document, content in ((documents.roster, entries), (documents.credentials, issued))
    )
    if not (roster.good and credentials.good) or entries is None or issued is None:
        return CheckedMembers(roster, credentials), None
    try:
        return CheckedMembers(roster, credentials), documents.closing(bucket, entries, issued)
    except AnonmlError as fault:
        return CheckedMembers(roster, credentials, fault=str(fault)), None


def checked_members(
    compute: Compute, manifest: bytes, bodies: Bodies, content_of: Callable[[int, str], bytes | None]
) -> Iterator[CheckedMembers]:
    """Every bucket of roster and credentials, in order. Raises `Malformed` for documents that do not fit together."""
    numbers = range(_closing(manifest, bodies).roster.buckets)
    pieces = ((number, content_of(number, "roster"), content_of(number, "credentials")) for number in numbers)
    groups = wide(pieces, lambda piece: len(piece[1] or b""), MEMBERS_AT_ONCE)
    return chain.from_iterable(compute.stream(partial(check_members, manifest, bodies), groups))


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
    manifest: Manifest, heads: Sequence[SignedHead], bodies: Mapping[int, bytes]
) -> Iterator[tuple[int, int]]:
    """The numbers of document and bucket of everything that an export has beside the documents."""
    for signed in heads:
        head = signed.head
        if head.kind in BUCKETED and head.number in bodies:
            try:
                document = parse_bucket_document(bodies[head.number], manifest.study_id, head.kind, head.part)
            except Malformed:
                continue  # a finding of the audit
            yield from ((head.number, bucket) for bucket in range(document.buckets))
