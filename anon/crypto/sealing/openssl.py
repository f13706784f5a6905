"""Sealing and opening by `cryptography`, which is OpenSSL underneath."""

from __future__ import annotations

from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey, MLKEM768PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, MLKEM768X25519PrivateKey, MLKEM768X25519PublicKey, Suite

from anon.crypto.sealing_sizes import MLKEM_KEY_SIZE, PUBLIC_KEY_SIZE, bad_key, demand_sealed, does_not_open, expand

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


class Opener:
    """A secret of 32 bytes, expanded as X-Wing does (SHAKE256), and its public key. `repr` shows nothing.

    Raises `ValueError` for a secret of another length.
    """

    def __init__(self, secret: bytes) -> None:
        lattice_seed, curve_secret = expand(secret)
        lattice = MLKEM768PrivateKey.from_seed_bytes(lattice_seed)
        curve = X25519PrivateKey.from_private_bytes(curve_secret)
        self._key = MLKEM768X25519PrivateKey(lattice, curve)
        self.public_key = lattice.public_key().public_bytes_raw() + curve.public_key().public_bytes_raw()

    def open(self, sealed_untrusted: bytes, info: bytes) -> bytes:
        """The plaintext. Raises `Malformed` if it is too short to be sealed, `RejectedProof` for whatever was not
        sealed to this key for this purpose, one changed bit or a shared secret of zeros included."""
        demand_sealed(sealed_untrusted)
        try:
            return SUITE.decrypt(sealed_untrusted, self._key, info)
        except (InvalidTag, ValueError):
            raise does_not_open() from None
