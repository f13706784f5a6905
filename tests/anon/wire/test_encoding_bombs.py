"""Bytes that are small and would decode to something huge: refused before anything is built of them."""

from __future__ import annotations

import cbor2
import pytest

from anon.errors import Malformed
from anon.wire.cbor import decode, encode
from tests.support.patience import cheap

WIDE, DEEP = 23, 8  # 23^8 leaves: 78 thousand million


def laughing() -> bytes:
    """A list of lists, each of 23 references (tag 29) to the one before, which may be shared (tag 28)."""
    first = b"\xd8\x1c" + bytes([0x80 + WIDE]) + bytes(WIDE)
    others = [b"\xd8\x1c" + bytes([0x80 + WIDE]) + (b"\xd8\x1d" + bytes([level])) * WIDE for level in range(DEEP - 1)]
    return bytes([0x80 + DEEP]) + first + b"".join(others)


@pytest.mark.parametrize("wrapped", [b"%s", b"\xa1%s\x00", b"\x81%s"], ids=["value", "key", "item"])
def test_shared_values_cost_nothing(wrapped: bytes) -> None:
    data = wrapped % laughing()
    assert len(data) < 600
    with cheap(), pytest.raises(Malformed):
        decode(data)


@pytest.mark.parametrize("value", [cbor2.CBORTag(35, "a+"), cbor2.CBORTag(258, [1]), cbor2.CBORTag(30, [1, 2])])
def test_no_tag_reaches_its_decoder(value: cbor2.CBORTag) -> None:
    with pytest.raises(Malformed, match="tag"):
        decode(cbor2.dumps([value]))


def test_integers_beyond_64_bits_are_plain() -> None:
    for value in (2**64, -(2**64) - 1, 2**300):
        assert decode(encode([value])) == [value]


def test_tag_bytes_inside_strings_are_content() -> None:
    for value in (b"\xd8\x1c" * 100, "\u00d8\u001c", bytes(range(256)) * 300):
        assert decode(encode({"a": value})) == {"a": value}


@pytest.mark.parametrize("data", [b"\x5b" + b"\xff" * 8, b"\x9b\xff", b"\x18", b"\x1c", b"\x9f\xff", b"\x5f\xff", b""])
def test_lengths_that_are_none(data: bytes) -> None:
    with pytest.raises(Malformed):
        decode(data)
