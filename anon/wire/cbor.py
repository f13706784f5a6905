"""One encoder: deterministic CBOR (RFC 8949, section 4.2), strict to the last byte."""

from __future__ import annotations

import hashlib
from math import isfinite
from typing import Any

import cbor2

from anon.errors import Malformed, because

_DEEPEST = 16
_BYTES, _TEXT, _LIST, _MAP, _TAG = 2, 3, 4, 5, 6  # major types, RFC 8949, section 3
_SHORT, _LONG = 24, 27  # additional information: one to eight bytes of argument follow
_BIG_INTEGERS = (0xC2, 0xC3)  # tags 2 and 3
_LONG_PARTS = 65536
"""Bytes from which on what is hashed is not copied."""
_LEAST_PER_LIST, _FREE_LISTS = 4, 64
"""An empty list takes one byte and builds 64. Documents have one list or map for each four bytes at most, and a few."""


def encode(value: Any) -> bytes:
    """The one spelling of `value` in deterministic CBOR.

    >>> encode({"b": 1, "a": [b"", None]}) == encode({"a": [b"", None], "b": 1})
    True
    >>> encode([1, "a"]).hex()
    '82016161'
    """
    # Keys stand in cbor2's order: shorter ones first, then bytewise (RFC 8949, section 4.2.3).
    return cbor2.dumps(value, canonical=True)


def decode(data_untrusted: bytes, what: str = "document") -> Any:
    """Decode bytes that must be the canonical spelling of a plain value, with nothing after it.

    Plain: integers, finite floats, texts, bytes, booleans, null, lists and maps, at most 16 deep; no tags but those of
    integers beyond 64 bits. Raises `Malformed` for anything else: truncated, trailing bytes, indefinite lengths,
    unsorted or repeated keys, hardly anything but lists. Time is linear in the bytes, and so is memory: at most some
    25 times as much. A list of many rows is read by `anon.wire.lists`.

    >>> decode(bytes.fromhex("82016161"))
    [1, 'a']
    >>> decode(bytes.fromhex("8218016161"))  # the same list, with its 1 in two bytes
    Traceback (most recent call last):
    anon.errors.Malformed: document: not in canonical CBOR; expected the one deterministic spelling of plain values
    """
    _refuse_bombs(data_untrusted, what)
    try:
        value = cbor2.loads(data_untrusted)
        spelling = encode(value) if _plain(value, _DEEPEST) else b""
    except Exception as error:
        raise Malformed(f"{what}: not CBOR{because(error)}; fetch or send it again") from None
    # The second encoding finds it all: long heads, another order of keys, repeated keys, trailing bytes.
    if spelling != data_untrusted:
        raise Malformed(f"{what}: not in canonical CBOR; expected the one deterministic spelling of plain values")
    return value


def _refuse_bombs(data_untrusted: bytes, what: str) -> None:
    """Before anything is built: values that are shared (tags 28 and 29) make a tree of terabytes out of 500 bytes, and
    empty lists 64 times their bytes."""
    position, lists, size = 0, 0, len(data_untrusted)
    while position < size:
        head = data_untrusted[position]
        position += 1
        argument = head & 31
        if argument > _LONG or (head >> 5 == _TAG and head not in _BIG_INTEGERS):
            raise Malformed(f"{what}: a tag or an indefinite length; expected the one spelling of plain values")
        if argument >= _SHORT:
            digits = 1 << argument - _SHORT
            argument = int.from_bytes(data_untrusted[position : position + digits], "big")
            position += digits
        if head >> 5 in (_BYTES, _TEXT):
            position += argument
        elif head >> 5 in (_LIST, _MAP):
            lists += 1
    if lists > size // _LEAST_PER_LIST + _FREE_LISTS:
        raise Malformed(f"{what}: {lists} lists in {size} bytes; no document of this protocol is made so")


def _plain(value: Any, deep: int) -> bool:
    kind = type(value)
    if kind in (int, str, bytes, bool, type(None)):
        return True
    if kind is float:
        return isfinite(value)
    if deep == 0:
        return False
    if kind is list:
        return all(_plain(item, deep - 1) for item in value)
    return kind is dict and all(
        type(key) in (str, int, bytes) and _plain(item, deep - 1) for key, item in value.items()
    )


def sha256(label: bytes, *parts: bytes) -> bytes:
    """SHA-256 over the canonical CBOR of [label, parts...]: no two share a spelling. Long parts are not copied."""
    if sum(map(len, parts)) < _LONG_PARTS:
        return hashlib.sha256(encode([label, *parts])).digest()
    digest = hashlib.sha256(_head_of(_LIST, 1 + len(parts)))
    for part in (label, *parts):
        digest.update(_head_of(_BYTES, len(part)))
        digest.update(part)
    return digest.digest()


def _head_of(major: int, argument: int) -> bytes:
    # A head has one form for every major type, integers too (RFC 8949, section 3).
    head = bytearray(encode(argument))
    head[0] |= major << 5
    return bytes(head)
