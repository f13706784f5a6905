"""Roster, credentials and transcripts in buckets: how each is split, and what a bucket of each must be.

A roster's bucket is `[1, study, [[key, contribution, commitment point], ...]]`, sorted by key. The bucket of the same
number in the credentials has one signature for each, in their order. A transcript's bucket is the list of its packets'
digests, `[1, study, slot, [digest, ...]]`, in the order of the packets' tags; the packets themselves, of which the
digests are, are for the audit. All transcripts of such a study are of slots: a bucket of one survey would name the
draw.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from attrs import field, frozen

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
    document_over,
    split,
)
from anon.transparency.documents import SignedHead, find
from anon.transparency.merkle import leaf_hash
from anon.transparency.transcript import (
    PublishedTranscripts,
    counts,
    digest_list,
    parse_digest_list,
    parse_transcript,
    transcript_body,
)
from anon.wire.cbor import sha256
from anon.wire.messages import (
    Roster,
    RosterEntry,
    Signatures,
    encode_credentials,
    encode_roster,
    parse_credentials,
    parse_roster,
)
from anon.wire.packets import TAG_BYTES, PublishedPacket, parse_published


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
        return bucket_at(self.leaves, number, hashed_body(document, self.contents[number]))


@frozen
class MadeBucket:
    """A bucket of a document that is being made: what its body is made of, its entries, and the hash of its body."""

    content: bytes = field(repr=False)
    entries: int
    leaf: bytes


def is_in_buckets(manifest: Manifest, count: int) -> bool:
    """True if the documents of a study with so many members are in buckets."""
    return 0 < manifest.bucketed_from <= count


def has_buckets(manifest: Manifest, chain: Sequence[SignedHead]) -> bool:
    """The same by the signed head of the roster: no whole one is as short. False before there is one."""
    head = find(chain, "roster")
    return manifest.bucketed_from > 0 and head is not None and head.length <= LONGEST_DOCUMENT


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
    return MadeBucket(content, entries, leaf_of(study, kind, part, content))


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
    document = document_over(study, kind, part, sum(entries), leaves)
    return InBuckets(document, [bucket.content for bucket in made], entries, leaves)


def leaf_of(study: bytes, kind: str, part: int, content: bytes) -> bytes:
    """The hash of the body that a content gives."""
    return leaf_hash(digests_of(content, study, part) if kind == "transcript" else content)


def hashed_body(document: BucketDocument, content: bytes) -> bytes:
    """The body that travels to peers, whose hash is in the tree."""
    return digests_of(content, document.study, document.part) if document.kind == "transcript" else content


def digests_of(content: bytes, study: bytes, slot: int) -> bytes:
    """The digests of a bucket's packets as one body. Raises `Malformed` for a content that is none."""
    said, packets = parse_transcript(content, study)
    if said != slot:
        raise Malformed("transcript: a bucket of another slot")
    return digest_list(study, slot, [sha256(labels.PACKET_DIGEST, packet) for packet in packets])


def tag_of(plaintext: bytes) -> bytes:
    """The tag of a published packet, 48 bytes. Raises `Malformed`."""
    return parse_published(plaintext).token[:TAG_BYTES]


# The checks of a bucket's content. Each raises `Malformed` with the fault: the root is signed, so the fault is the
# aggregator's.


def read_roster_bucket(document: BucketDocument, number: int, body_untrusted: bytes) -> Roster:
    """The entries of a bucket: strictly sorted, and all belong here."""
    entries = parse_roster(body_untrusted, document.study)
    if any(bucket_of(entry.key, document.bits) != number for entry in entries):
        raise Malformed("roster: an entry stands in another bucket than its own")
    return entries


def read_credentials_bucket(study: bytes, body_untrusted: bytes, count: int) -> Signatures:
    """One signature for each entry of the roster's bucket."""
    return parse_credentials(body_untrusted, study, count)


def read_digests_bucket(document: BucketDocument, body_untrusted: bytes) -> frozenset[bytes]:
    """The digests in a transcript's bucket."""
    return frozenset(parse_digest_list(body_untrusted, document.study, document.part))


def read_packets_bucket(document: BucketDocument, number: int, content_untrusted: bytes) -> tuple[bytes, ...]:
    """The packets of a transcript's bucket: strictly sorted by tag, and all belong here."""
    slot, packets = parse_transcript(content_untrusted, document.study)
    if slot != document.part:
        raise Malformed("transcript: a bucket of another slot")
    read = [parse_published(packet) for packet in packets]
    if any(packet.slot != document.part for packet in read):
        raise Malformed("transcript: a packet of another slot")
    tags = [packet.token[:TAG_BYTES] for packet in read]
    if not all(tag < following for tag, following in pairwise(tags)):
        raise Malformed("transcript: a bucket is not strictly sorted by tag")
    if any(bucket_of(tag, document.bits) != number for tag in tags):
        raise Malformed("transcript: a packet stands in another bucket than its own")
    return packets


# Whole transcripts, by survey


def transcript_parts(manifest: Manifest, chain: Sequence[SignedHead]) -> range:
    """The parts of the transcripts: slots where documents are in buckets, else surveys."""
    return range(len(manifest.slots) if has_buckets(manifest, chain) else len(manifest.surveys))


def published_buckets(manifest: Manifest, contents: Iterable[bytes]) -> PublishedTranscripts:
    """The packets of transcripts' buckets, by survey. Raises `Malformed`, also for a packet of a survey that the study
    does not have."""
    surveys = {survey.survey: survey for survey in manifest.surveys}
    found: dict[int, list[PublishedPacket]] = {survey: [] for survey in surveys}
    unreadable = 0
    for content in contents:
        for packet in map(parse_published, parse_transcript(content, manifest.study_id)[1]):
            if packet.survey not in surveys:
                raise Malformed("transcript: a packet of a survey that the study does not have")
            if counts(surveys[packet.survey], packet):
                found[packet.survey].append(packet)
            else:
                unreadable += 1
    return PublishedTranscripts({survey: tuple(packets) for survey, packets in found.items()}, unreadable)
