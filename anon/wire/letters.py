"""The report of a written survey: an open text, and sealed letters of one length, one for each seat of a circle.

    [text, [letter, ...]]

A seat is a member, named by its tag, or the aggregator, whose tag is empty. A letter is sealed for this study, survey,
writer and reader alone, so that it opens nowhere else. Pure functions on bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from attrs import field

from anon.crypto import labels
from anon.crypto.sealing_sizes import OVERHEAD
from anon.errors import Malformed
from anon.values import frozen
from anon.wire.cbor import decode, encode

AGGREGATOR = b""
"""The tag of the aggregator's seat."""


@frozen
class TextAndLetters:
    """A report that was read: its open text and its letters, which are sealed."""

    text: bytes = field(repr=False)
    letters: tuple[bytes, ...] = field(repr=False)


def written_report(text: bytes, letters: Sequence[bytes]) -> bytes:
    """The canonical bytes of a report."""
    return encode([text, list(letters)])


@lru_cache(maxsize=1024)
def written_size(text: int, seats: int, letter: int) -> int:
    """Bytes of a report whose text has so many, with so many letters of so many bytes each before they are sealed.

    >>> written_size(text=10, seats=2, letter=32) > 10 + 2 * (32 + OVERHEAD)
    True
    """
    return len(written_report(bytes(text), [bytes(letter + OVERHEAD)] * seats))


def parse_written(report_untrusted: bytes, text: int, seats: int, letter: int) -> TextAndLetters:
    """A report of these lengths. Raises `Malformed`."""
    fields = decode(report_untrusted, "letters")
    if not isinstance(fields, list) or len(fields) != 2 or type(fields[0]) is not bytes or type(fields[1]) is not list:
        raise Malformed("letters: expected a text and letters")
    if not all(type(sealed) is bytes and len(sealed) == letter + OVERHEAD for sealed in fields[1]):
        raise Malformed(f"letters: expected letters of {letter} bytes, sealed")
    if len(fields[0]) != text or len(fields[1]) != seats:
        raise Malformed(f"letters: expected a text of {text} bytes and {seats} letters")
    return TextAndLetters(fields[0], tuple(fields[1]))


def letter_info(study: bytes, survey: int, writer: bytes, reader: bytes) -> bytes:
    """The purpose that a letter is sealed for: label, study, survey, and the tags of writer and reader."""
    return encode([labels.LETTER_SEAL, study, survey, writer, reader])
