"""Transcripts: every accepted packet of a survey, sorted by tag, in its published form (`anon.wire.packets`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from anon.credential import token_size
from anon.crypto import labels
from anon.errors import Malformed
from anon.study.manifest import Manifest, Survey
from anon.wire.cbor import decode, encode, sha256_each
from anon.wire.lists import byte_strings, fixed_rows, items_in, list_length
from anon.wire.messages import VERSION
from anon.wire.packets import DIGEST_BYTES, MOST_SURVEYS, Occasion, PublishedPacket, parse_published


@frozen
class PublishedTranscripts:
    """The content of a study's signed transcripts: the packets of every survey that can be counted, sorted by tag, and
    how many cannot be read. Those were damaged before they were signed: nothing that is learned rests on them."""

    packets: Mapping[int, tuple[PublishedPacket, ...]]
    unreadable: int

    @property
    def accepted(self) -> dict[int, int]:
        """How many packets of every survey are counted."""
        return {survey: len(packets) for survey, packets in self.packets.items()}


def transcript_body(study: bytes, survey: int, plaintexts: Sequence[bytes]) -> bytes:
    """The transcript of a survey; `plaintexts` are sorted by tag."""
    return encode([VERSION, study, survey, list(plaintexts)])


def parse_transcript(body_untrusted: bytes, study: bytes) -> tuple[int, tuple[bytes, ...]]:
    """Survey and packet plaintexts. Raises `Malformed`. The packets themselves are not looked at."""
    fields = decode(body_untrusted, "transcript")
    shaped = isinstance(fields, list) and len(fields) == 4 and fields[:2] == [VERSION, study]
    if not shaped or type(fields[2]) is not int or not isinstance(fields[3], list) or not 0 <= fields[2] < MOST_SURVEYS:
        raise Malformed("transcript: expected version, study, survey and packets")
    if not all(isinstance(attribute, bytes) for attribute in fields[3]):
        raise Malformed("transcript: expected packets as bytes")
    return fields[2], tuple(fields[3])


def published(manifest: Manifest, bodies_untrusted: Iterable[bytes]) -> PublishedTranscripts:
    """The packets of signed transcripts. Raises `Malformed` for a body that is no transcript of the study."""
    surveys = {asked_survey.survey: asked_survey for asked_survey in manifest.surveys}
    packets, unreadable = {}, 0
    for body in bodies_untrusted:
        survey, plaintexts = parse_transcript(body, manifest.study_id)
        if survey not in surveys:
            raise Malformed("transcript: of a survey that the study does not have")
        packets[survey] = _readable(surveys[survey], plaintexts)
        unreadable += len(plaintexts) - len(packets[survey])
    return PublishedTranscripts(packets, unreadable)


def _readable(survey: Survey, plaintexts: Sequence[bytes]) -> tuple[PublishedPacket, ...]:
    read = (_read(survey, plaintext) for plaintext in plaintexts)
    return tuple(packet for packet in read if packet is not None)


def _read(survey: Survey, plaintext: bytes) -> PublishedPacket | None:
    try:
        packet = parse_published(plaintext)
    except Malformed:
        return None
    return packet if counts(survey, packet) else None


def counts(survey: Survey, packet: PublishedPacket) -> bool:
    """True if a packet of a transcript can be counted: of the survey, and with a report of its own."""
    try:
        survey.demand_report(packet.report)
    except Malformed:
        return False
    return packet.survey == survey.survey


def transcript_digests(body_untrusted: bytes, study: bytes, survey: int) -> frozenset[bytes]:
    """Digests of the packets in a transcript; empty for a body that is none, which then includes nothing."""
    packets = byte_strings(body_untrusted, (VERSION, study, survey), "transcript")
    try:
        return frozenset(sha256_each(labels.PACKET_DIGEST, packets))
    except Malformed:
        return frozenset()


def packets_in(body_untrusted: bytes, study: bytes, survey: int) -> int:
    """How many packets a transcript lists; none for a body that is no transcript."""
    try:
        return items_in(body_untrusted, (VERSION, study, survey), "transcript")
    except Malformed:
        return 0


def digest_list(study: bytes, slot: int, digests: Sequence[bytes]) -> bytes:
    """The digests of the packets in a bucket, in the order of their tags."""
    return encode([VERSION, study, slot, list(digests)])


def parse_digest_list(body_untrusted: bytes, study: bytes, slot: int) -> tuple[bytes, ...]:
    """The digests, 32 bytes each. Raises `Malformed`."""
    rows = fixed_rows(body_untrusted, (VERSION, study, slot), (32,), "digests", bare=True)
    return tuple(digest for (digest,) in rows)


def digests_length(count: int) -> int:
    """Bytes of a list of so many digests, at most."""
    return len(digest_list(bytes(32), 255, ())) - 1 + list_length(count, len(encode(bytes(32))))


def empty_length(study: bytes, survey: int) -> int:
    """Bytes of a transcript without packets."""
    return len(transcript_body(study, survey, ()))


def entry_length(manifest: Manifest, survey: Survey, recipients: int = 0) -> int:
    """Bytes that one packet of a survey takes in its transcript; all packets of a survey take as many. `recipients`:
    how many shares each has."""
    slot = next(slot for slot in manifest.slots if any(row.survey == survey.survey for row in slot.rows))
    report, token = bytes(survey.report_size), bytes(token_size(manifest.packets))
    occasion = Occasion(bytes(32), manifest.round_of(slot), slot.slot)
    digests = (bytes(DIGEST_BYTES),) * recipients
    return len(encode(PublishedPacket(occasion, survey.survey, report, digests, token).to_bytes()))
