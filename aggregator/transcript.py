"""Transcripts: every accepted packet of a survey, sorted by tag."""

from __future__ import annotations

from collections.abc import Sequence

from anon.encoding import decode, encode
from anon.errors import Malformed
from anon.messages import VERSION, parse_packet


def transcript_body(study: bytes, survey: int, plaintexts: Sequence[bytes]) -> bytes:
    """The transcript of a survey; `plaintexts` are sorted by tag."""
    return encode([VERSION, study, survey, list(plaintexts)])


def parse_transcript(body_untrusted: bytes, study: bytes) -> tuple[int, tuple[bytes, ...]]:
    """Survey and packet plaintexts. Raises `Malformed`. The packets themselves are not looked at."""
    fields = decode(body_untrusted, "transcript")
    shaped = isinstance(fields, list) and len(fields) == 4 and fields[:2] == [VERSION, study]
    if not shaped or type(fields[2]) is not int or not isinstance(fields[3], list):
        raise Malformed("transcript: expected version, study, survey and packets")
    if not all(isinstance(one, bytes) for one in fields[3]):
        raise Malformed("transcript: expected packets as bytes")
    return fields[2], tuple(fields[3])


def reports(plaintexts: Sequence[bytes]) -> tuple[bytes, ...]:
    """The reports inside accepted packets."""
    return tuple(parse_packet(one).report for one in plaintexts)
