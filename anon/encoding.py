"""One encoder: deterministic CBOR (RFC 8949, section 4.2), strict to the last byte."""

from __future__ import annotations

import hashlib
from typing import Any

import cbor2

from anon.errors import Malformed


def encode(value: Any) -> bytes:
    """The one spelling of `value` in deterministic CBOR."""
    return cbor2.dumps(value, canonical=True)


def decode(data_untrusted: bytes, what: str = "document") -> Any:
    """Decode bytes that must be the canonical spelling of some value, with nothing after it.

    Raises `Malformed` for anything else: truncated, trailing bytes, indefinite lengths, unsorted or repeated keys.
    """
    try:
        value = cbor2.loads(data_untrusted)
        spelling = encode(value)
    except Exception as error:
        raise Malformed(f"{what}: not CBOR ({type(error).__name__}); fetch or send it again") from None
    if spelling != data_untrusted:
        raise Malformed(f"{what}: not in canonical CBOR; expected the one deterministic spelling")
    return value


def sha256(label: bytes, *parts: bytes) -> bytes:
    """SHA-256 over the canonical CBOR of [label, parts...]: no two inputs share a spelling."""
    return hashlib.sha256(encode([label, *parts])).digest()
