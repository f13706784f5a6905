"""Sealing by `cryptography`, which is OpenSSL underneath."""

from __future__ import annotations

from functools import lru_cache

from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, MLKEM768X25519PublicKey, Suite

from anon.crypto.sealing_sizes import MLKEM_KEY_SIZE, PUBLIC_KEY_SIZE, bad_key

SUITE = Suite(KEM.MLKEM768_X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)


def seal(plaintext: bytes, public_key: bytes, info: bytes) -> bytes:
    """The plaintext, sealed to a key of 1216 bytes for one purpose; 1136 bytes longer, never the same twice.

    Raises `Malformed` for a key of another form: too short, an element not below the modulus, a point of small order.

    >>> from os import urandom
    >>> from anon.crypto.sealing.opening import Opener
    >>> key = Opener(urandom(32)).public_key
    >>> seal(b"a report", key, b"purpose") == seal(b"a report", key, b"purpose")  # each has a fresh shared secret
    False
    """
    if len(public_key) != PUBLIC_KEY_SIZE:
        raise bad_key()
    try:
        return SUITE.encrypt(plaintext, _read(public_key), info)
    except ValueError:
        raise bad_key() from None


@lru_cache(maxsize=8)
def _read(public_key: bytes) -> MLKEM768X25519PublicKey:
    """The key behind these bytes. A machine that seals often does so to one key. Raises `ValueError`."""
    lattice = MLKEM768PublicKey.from_public_bytes(public_key[:MLKEM_KEY_SIZE])
    return MLKEM768X25519PublicKey(lattice, X25519PublicKey.from_public_bytes(public_key[MLKEM_KEY_SIZE:]))
