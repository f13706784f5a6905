"""Transcripts: every accepted packet of a slot, sorted by tag, in its published form (`anon.wire.packets`). Peers fetch
the digests of the packets, and an audit the packets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anon.errors import Malformed
from anon.values import frozen
from anon.wire.cbor import decode, encode
from anon.wire.lists import fixed_rows
from anon.wire.messages import VERSION
from anon.wire.packets import MOST_SLOTS, PublishedPacket


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


def transcript_body(study: bytes, slot: int, plaintexts: Sequence[bytes]) -> bytes:
    """The packets of a bucket of a slot's transcript; `plaintexts` are sorted by tag."""
    return encode([VERSION, study, slot, list(plaintexts)])


def parse_transcript(body_untrusted: bytes, study: bytes) -> tuple[int, tuple[bytes, ...]]:
    """Slot and packet plaintexts. Raises `Malformed`. The packets themselves are not looked at."""
    fields = decode(body_untrusted, "transcript")
    shaped = isinstance(fields, list) and len(fields) == 4 and fields[:2] == [VERSION, study]
    if not shaped or type(fields[2]) is not int or not isinstance(fields[3], list) or not 0 <= fields[2] < MOST_SLOTS:
        raise Malformed("transcript: expected version, study, slot and packets")
    if not all(isinstance(attribute, bytes) for attribute in fields[3]):
        raise Malformed("transcript: expected packets as bytes")
    return fields[2], tuple(fields[3])


def digest_list(study: bytes, slot: int, digests: Sequence[bytes]) -> bytes:
    """The digests of the packets in a bucket, in the order of their tags."""
    return encode([VERSION, study, slot, list(digests)])


def parse_digest_list(body_untrusted: bytes, study: bytes, slot: int) -> tuple[bytes, ...]:
    """The digests, 32 bytes each. Raises `Malformed`."""
    rows = fixed_rows(body_untrusted, (VERSION, study, slot), (32,), "digests", bare=True)
    return tuple(digest for (digest,) in rows)
