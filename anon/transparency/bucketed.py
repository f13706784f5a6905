"""Roster, credentials and transcripts: how each is split into buckets, and what a bucket of each must be.

A roster's bucket is `[1, study, [[key, contribution, commitment point], ...]]`, sorted by key. The bucket of the same
number in the credentials has one signature for each, in their order. A transcript's bucket is the list of its packets'
digests, `[1, study, slot, [digest, ...]]`, in the order of the packets' tags; the packets themselves, of which the
digests are, are for the audit. All transcripts are of slots: a bucket of one survey would name the draw.

Entries of a kind are equally long. So the signed length of a document of one bucket is a signed number of entries
(`members_signed`, `packets_signed`), known before anything is fetched. In a longer one the number itself stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from attrs import field

from anon.crypto import labels
from anon.errors import Malformed
from anon.study.manifest import Manifest
from anon.transparency.buckets import (
    LONGEST_DOCUMENT,
    Bucket,
    BucketDocument,
    bits_of,
    bucket_at,
    bucket_of,
    document_bytes,
    document_over,
    split,
)
from anon.transparency.documents import Head, SignedHead, find
from anon.transparency.merkle import leaf_hash
from anon.transparency.transcript import (
    PublishedTranscripts,
    digest_list,
    parse_digest_list,
    parse_transcript,
    transcript_body,
)
from anon.values import frozen
from anon.wire.cbor import sha256
from anon.wire.lists import list_length
from anon.wire.messages import (
    COMMITMENT_POINT_BYTES,
    CONTRIBUTION_BYTES,
    KEY_BYTES,
    SIGNATURE_BYTES,
    Roster,
    RosterEntry,
    Signatures,
    encode_credentials,
    encode_roster,
    parse_credentials,
    parse_roster,
)
from anon.wire.packets import DIGEST_BYTES, TAG_BYTES, PublishedPacket, parse_published


@frozen
class InBuckets:
    """A document with all its buckets. `contents`: what a bucket's body is made of, which for a transcript are packets;
    `entries`: how many each has; `leaves`: the hash of each body."""

    document: BucketDocument
    contents: Sequence[bytes] = field(repr=False)
    entries: Sequence[int] = field(repr=False)
    leaves: Sequence[bytes] = field(repr=False)

    def bucket(self, number: int) -> Bucket:
        """A bucket as it travels."""
        document = self.document
        body = hashed_body(document.study, document.kind, document.part, self.contents[number])
        return bucket_at(self.leaves, number, body)


@frozen
class MadeBucket:
    """A bucket of a document that is being made: what its body is made of, its entries, and its body."""

    content: bytes = field(repr=False)
    entries: int
    body: bytes = field(repr=False)

    @property
    def leaf(self) -> bytes:
        """The hash of its body."""
        return leaf_hash(self.body)


# The lengths


_ENTRY = RosterEntry(bytes(KEY_BYTES), bytes(CONTRIBUTION_BYTES), bytes(COMMITMENT_POINT_BYTES))
_LISTS: Mapping[str, Callable[[int, int], bytes]] = {
    "roster": lambda _part, some: encode_roster(bytes(32), [_ENTRY] * some),
    "credentials": lambda _part, some: encode_credentials(bytes(32), [bytes(SIGNATURE_BYTES)] * some),
    "transcript": lambda part, some: digest_list(bytes(32), part, [bytes(DIGEST_BYTES)] * some),
}
BUCKETED = frozenset(_LISTS)
"""The kinds of documents that are in buckets."""


@lru_cache(maxsize=512)
def _empty_and_each(kind: str, part: int) -> tuple[int, int]:
    empty, single = (len(_LISTS[kind](part, some)) for some in (0, 1))
    return empty, single - empty


def body_bytes(kind: str, part: int, count: int) -> int:
    """Bytes of a bucket's body with so many entries."""
    empty, each = _empty_and_each(kind, part)
    return empty - 1 + list_length(count, each)


def whole_bytes(kind: str, part: int, count: int) -> int:
    """Bytes of a document of so many entries in one bucket."""
    return document_bytes(kind, part, count, body_bytes(kind, part, count))


def entries_signed(head: Head) -> int:
    """The most entries that a document of this length has in one bucket; 0 for one of several buckets."""
    count = head.length // _empty_and_each(head.kind, head.part)[1]
    while count and whole_bytes(head.kind, head.part, count) > head.length:
        count -= 1
    return count


def members_signed(chain: Sequence[SignedHead]) -> int | None:
    """The members by the roster's head; None before there is one, and where it has several buckets."""
    head = find(chain, "roster")
    return None if head is None or head.length <= LONGEST_DOCUMENT else entries_signed(head)


def packets_signed(chain: Sequence[SignedHead]) -> dict[int, int]:
    """By slot, the packets of the transcripts that are signed so far, but for those of several buckets."""
    return {signed.head.part: entries_signed(signed.head) for signed in chain if signed.head.kind == "transcript"}


# Making


def roster_bucket(study: bytes, entries: Sequence[RosterEntry]) -> MadeBucket:
    """One bucket of a roster."""
    return _bucket(study, "roster", 0, len(entries), encode_roster(study, entries))


def credentials_bucket(study: bytes, signatures: Sequence[bytes]) -> MadeBucket:
    """The credentials of a bucket's entries, in the roster's order."""
    return _bucket(study, "credentials", 0, len(signatures), encode_credentials(study, signatures))


def transcript_bucket(study: bytes, slot: int, plaintexts: Sequence[bytes]) -> MadeBucket:
    """One bucket of a slot's transcript, from its packets in the order of their tags, whichever surveys they answer."""
    return _bucket(study, "transcript", slot, len(plaintexts), transcript_body(study, slot, plaintexts))


def _bucket(study: bytes, kind: str, part: int, entries: int, content: bytes) -> MadeBucket:
    return MadeBucket(content, entries, hashed_body(study, kind, part, content))


def roster_in_buckets(study: bytes, entries: Sequence[RosterEntry]) -> InBuckets:
    """The roster's document with all its buckets."""
    parts = split(entries, lambda entry: entry.key, bits_of(len(entries)))
    return _whole(study, "roster", 0, [roster_bucket(study, part) for part in parts])


def credentials_in_buckets(study: bytes, signatures: Sequence[Sequence[bytes]]) -> InBuckets:
    """The credentials of each bucket's entries, in the roster's order."""
    return _whole(study, "credentials", 0, [credentials_bucket(study, part) for part in signatures])


def transcript_in_buckets(study: bytes, slot: int, plaintexts: Iterable[bytes]) -> InBuckets:
    """The transcript of a slot with all its buckets."""
    tagged = sorted((tag_of(plaintext), plaintext) for plaintext in plaintexts)
    parts = split(tagged, lambda pair: pair[0], bits_of(len(tagged)))
    made = [transcript_bucket(study, slot, [plaintext for _tag, plaintext in part]) for part in parts]
    return _whole(study, "transcript", slot, made)


def _whole(study: bytes, kind: str, part: int, made: Sequence[MadeBucket]) -> InBuckets:
    leaves, entries = [bucket.leaf for bucket in made], [bucket.entries for bucket in made]
    document = document_over(study, kind, part, sum(entries), leaves, made[0].body)
    return InBuckets(document, [bucket.content for bucket in made], entries, leaves)


def leaf_of(study: bytes, kind: str, part: int, content: bytes) -> bytes:
    """The hash of the body that a content gives."""
    return leaf_hash(hashed_body(study, kind, part, content))


def hashed_body(study: bytes, kind: str, part: int, content: bytes) -> bytes:
    """The body that travels to peers, whose hash is in the tree."""
    return digests_of(content, study, part) if kind == "transcript" else content


def digests_of(content: bytes, study: bytes, slot: int) -> bytes:
    """The digests of a bucket's packets as one body. Raises `Malformed` for a content that is none."""
    said, packets = parse_transcript(content, study)
    if said != slot:
        raise Malformed("transcript: a bucket of another slot")
    return _digests(study, slot, packets)


def _digests(study: bytes, slot: int, plaintexts: Sequence[bytes]) -> bytes:
    return digest_list(study, slot, [sha256(labels.PACKET_DIGEST, plaintext) for plaintext in plaintexts])


def tag_of(plaintext: bytes) -> bytes:
    """The tag of a published packet, 48 bytes. Raises `Malformed`."""
    return parse_published(plaintext).token[:TAG_BYTES]


# The checks of a bucket's content. Each raises `Malformed` with the fault: the root is signed, so the fault is the
# aggregator's.


def read_roster_bucket(document: BucketDocument, number: int, body_untrusted: bytes) -> Roster:
    """The entries of a bucket: strictly sorted, and all belong here. In one bucket there are all of them."""
    entries = parse_roster(body_untrusted, document.study)
    _demand_all(document, len(entries))
    if document.bits and any(bucket_of(entry.key, document.bits) != number for entry in entries):
        raise Malformed("roster: an entry stands in another bucket than its own")
    return entries


def read_credentials_bucket(study: bytes, body_untrusted: bytes, count: int) -> Signatures:
    """One signature for each entry of the roster's bucket."""
    return parse_credentials(body_untrusted, study, count)


def read_digests_bucket(document: BucketDocument, body_untrusted: bytes) -> frozenset[bytes]:
    """The digests in a transcript's bucket. In one bucket there are all of them."""
    digests = parse_digest_list(body_untrusted, document.study, document.part)
    _demand_all(document, len(digests))
    return frozenset(digests)


def _demand_all(document: BucketDocument, entries: int) -> None:
    if not document.bits and entries != document.count:
        raise Malformed(f"{document.kind}: signed for {document.count} entries, and it has {entries}")


@frozen(eq=False)
class ReadTranscript:
    """A transcript's bucket, of which each packet is decoded once. `packets`: each as it reads, or why it does not."""

    study: bytes
    slot: int
    plaintexts: tuple[bytes, ...] = field(repr=False)
    packets: tuple[PublishedPacket | Malformed, ...] = field(repr=False)

    @property
    def leaf(self) -> bytes:
        """The hash of the body that travels to peers: as `leaf_of` gives it."""
        return leaf_hash(_digests(self.study, self.slot, self.plaintexts))


def read_transcript(study: bytes, content_untrusted: bytes) -> ReadTranscript:
    """The content of a bucket of the study's transcripts. Raises `Malformed` for one that is none."""
    slot, plaintexts = parse_transcript(content_untrusted, study)
    return ReadTranscript(study, slot, plaintexts, tuple(map(_read_packet, plaintexts)))


def _read_packet(plaintext_untrusted: bytes) -> PublishedPacket | Malformed:
    try:
        return parse_published(plaintext_untrusted)
    except Malformed as fault:
        return fault


def read_packets_bucket(document: BucketDocument, number: int, read: ReadTranscript) -> tuple[PublishedPacket, ...]:
    """The packets of a transcript's bucket: strictly sorted by tag, and all belong here."""
    if read.slot != document.part:
        raise Malformed("transcript: a bucket of another slot")
    packets: list[PublishedPacket] = []
    for packet in read.packets:
        if isinstance(packet, Malformed):
            raise packet
        packets.append(packet)
    if any(packet.slot != document.part for packet in packets):
        raise Malformed("transcript: a packet of another slot")
    tags = [packet.tag for packet in packets]
    if not all(tag < following for tag, following in pairwise(tags)):
        raise Malformed("transcript: a bucket is not strictly sorted by tag")
    if any(bucket_of(tag, document.bits) != number for tag in tags):
        raise Malformed("transcript: a packet stands in another bucket than its own")
    return tuple(packets)


def published(manifest: Manifest, contents: Iterable[bytes]) -> PublishedTranscripts:
    """The packets of transcripts' buckets, by survey. Raises `Malformed` for a content that is none."""
    buckets = (read_transcript(manifest.study_id, content) for content in contents)
    return by_survey(manifest, (packet for bucket in buckets for packet in bucket.packets))


def by_survey(manifest: Manifest, packets: Iterable[PublishedPacket | Malformed]) -> PublishedTranscripts:
    """The packets by survey. One of no survey of the study, or with no report of its survey, is counted as unreadable.
    """
    found: dict[int, list[PublishedPacket]] = {survey.survey: [] for survey in manifest.surveys}
    unreadable = 0
    for packet in packets:
        if isinstance(packet, Malformed) or not _answers(manifest, packet):
            unreadable += 1
        else:
            found[packet.survey].append(packet)
    return PublishedTranscripts({survey: tuple(some) for survey, some in found.items()}, unreadable)


def _answers(manifest: Manifest, packet: PublishedPacket) -> bool:
    try:
        manifest.survey(packet.survey).demand_report(packet.report)
    except Malformed:
        return False
    return True
