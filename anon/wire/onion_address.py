"""Onion addresses of version 3 and whether they are spelt right (rend-spec-v3, ENCODING-ONION)."""

from __future__ import annotations

import base64
import hashlib

SUFFIX = ".onion"
_LENGTH = 56
_VERSION = b"\x03"


def onion_host(public_key: bytes) -> str:
    """The address of a service's Ed25519 identity key (32 bytes): base32(key || checksum || version).onion."""
    return base64.b32encode(public_key + _checksum(public_key) + _VERSION).decode().lower() + SUFFIX


def is_onion(host: str) -> bool:
    """True if a host is meant to be an onion address, rightly spelt or not."""
    return host.lower().rstrip(".").endswith(SUFFIX)


def onion_fault(host: str) -> str:
    """The fault of an onion address in its one spelling; empty when nothing is."""
    name = host.removesuffix(SUFFIX)
    if len(name) != _LENGTH or host != host.lower() or name == host:
        return f"expected an onion address of {_LENGTH} lower-case characters and {SUFFIX}, without a subdomain"
    try:
        decoded = base64.b32decode(name.upper())
    except ValueError:
        return "the onion address has a character that none has"
    if decoded[34:] != _VERSION:
        return "the onion address is not of version 3"
    if decoded[32:34] != _checksum(decoded[:32]):
        return "the onion address was copied wrongly: its checksum does not match"
    return ""


def _checksum(public_key: bytes) -> bytes:
    return hashlib.sha3_256(b".onion checksum" + public_key + _VERSION).digest()[:2]
