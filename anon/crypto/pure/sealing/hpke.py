"""RFC 9180 with the KEM MLKEM768-X25519 (X-Wing), HKDF-SHA256 and ChaCha20-Poly1305: base mode, one message."""

from __future__ import annotations

import hashlib
import hmac
import os

from anon.crypto.pure.nacl import CryptoError
from anon.crypto.pure.nacl.boxes import BASE_POINT, x25519
from anon.crypto.pure.sealing import chacha, mlkem
from anon.crypto.sealing_sizes import (
    ENCAPSULATED_SIZE,
    MLKEM_CIPHERTEXT_SIZE,
    MLKEM_KEY_SIZE,
    PUBLIC_KEY_SIZE,
    SECRET_SIZE,
    bad_key,
    demand_sealed,
    does_not_open,
    expand,
)

ENCAPSULATION_SEED_SIZE = 64
"""Of ML-KEM's message, then the curve's secret."""
XWING_LABEL = b"\\.//^\\"
SUITE = b"HPKE" + bytes.fromhex("647a00010003")
MODE_BASE = b"\0"


def seal(plaintext: bytes, public_key: bytes, info: bytes) -> bytes:
    """As `anon.crypto.sealing.openssl.seal`, with the operating system's randomness."""
    return seal_with(plaintext, public_key, info, b"", os.urandom(ENCAPSULATION_SEED_SIZE))


def seal_with(plaintext: bytes, public_key: bytes, info: bytes, associated: bytes, seed: bytes) -> bytes:
    """`seal` with the randomness and associated data given. Only `seal` and the official vectors call it."""
    encapsulated, shared = encapsulate(public_key, seed)
    key, nonce = key_schedule(shared, info)
    return encapsulated + chacha.seal(plaintext, nonce, key, associated)


class Opener:
    """As `anon.crypto.sealing.openssl.Opener`: the same public key for a secret, the same verdicts on messages.

    **Not constant-time**: timings of many openings tell of the secret to anyone who can measure them closely.
    """

    def __init__(self, secret: bytes) -> None:
        lattice_seed, self._curve_secret = expand(secret)
        self._rejection = lattice_seed[mlkem.SEED_SIZE :]
        self._lattice_key, self._lattice_secret = mlkem.key_pair(lattice_seed[: mlkem.SEED_SIZE])
        self._curve_key = x25519(self._curve_secret, BASE_POINT)
        self.public_key = self._lattice_key + self._curve_key

    def open(self, sealed_untrusted: bytes, info: bytes) -> bytes:
        """The plaintext (RFC 9180, 5.1.1 and 5.2). Raises `Malformed` and `RejectedProof` as the native one does."""
        demand_sealed(sealed_untrusted)
        try:
            key, nonce = key_schedule(self.decapsulate(sealed_untrusted[:ENCAPSULATED_SIZE]), info)
            return chacha.unseal(sealed_untrusted[ENCAPSULATED_SIZE:], nonce, key)
        except CryptoError:
            raise does_not_open() from None

    def decapsulate(self, encapsulated_untrusted: bytes) -> bytes:
        """X-Wing's shared secret (its draft, 5.5) from a ciphertext of 1120 bytes. A lattice ciphertext that is not of
        this key gives another one. Raises `CryptoError` for a share of small order (RFC 9180, 7.1.4)."""
        ciphertext = encapsulated_untrusted[:MLKEM_CIPHERTEXT_SIZE]
        shown = encapsulated_untrusted[MLKEM_CIPHERTEXT_SIZE:]
        lattice_secret = mlkem.decapsulate(ciphertext, self._lattice_key, self._lattice_secret, self._rejection)
        return combine(lattice_secret, x25519(self._curve_secret, shown), shown, self._curve_key)


def encapsulate(public_key: bytes, seed: bytes) -> tuple[bytes, bytes]:
    """X-Wing's ciphertext of 1120 bytes and shared secret of 32, from 64 random bytes. Raises `Malformed`."""
    if len(public_key) != PUBLIC_KEY_SIZE:
        raise bad_key()
    lattice_key, curve_key = public_key[:MLKEM_KEY_SIZE], public_key[MLKEM_KEY_SIZE:]
    message, once = seed[:SECRET_SIZE], seed[SECRET_SIZE:]
    ciphertext, lattice_secret = mlkem.encapsulate(lattice_key, message)
    shown = x25519(once, BASE_POINT)
    try:
        curve_secret = x25519(once, curve_key)
    except CryptoError:
        raise bad_key() from None
    return ciphertext + shown, combine(lattice_secret, curve_secret, shown, curve_key)


def combine(lattice_secret: bytes, curve_secret: bytes, shown: bytes, curve_key: bytes) -> bytes:
    """X-Wing's shared secret (its draft, 5.3). `shown` is the curve's share of the ciphertext."""
    # X-Wing leaves the ML-KEM ciphertext out: no second one opens to the same secret (ePrint 2024/039).
    return hashlib.sha3_256(lattice_secret + curve_secret + shown + curve_key + XWING_LABEL).digest()


def key_schedule(shared: bytes, info: bytes) -> tuple[bytes, bytes]:
    """Key and nonce of the first message (RFC 9180, 5.1), without a pre-shared key."""
    context = MODE_BASE + _extract(b"", b"psk_id_hash", b"") + _extract(b"", b"info_hash", info)
    secret = _extract(shared, b"secret", b"")
    return _expand(secret, b"key", context, chacha.KEY_SIZE), _expand(secret, b"base_nonce", context, chacha.NONCE_SIZE)


def _extract(salt: bytes, label: bytes, material: bytes) -> bytes:
    """LabeledExtract (RFC 9180, 4) by HKDF-SHA256 (RFC 5869)."""
    # No salt counts as zeros of the hash's length (RFC 5869, section 2.2).
    return hmac.digest(salt or bytes(32), b"HPKE-v1" + SUITE + label + material, "sha256")


def _expand(secret: bytes, label: bytes, context: bytes, length: int) -> bytes:
    """LabeledExpand of at most 32 bytes, HKDF's first block."""
    labeled = length.to_bytes(2, "big") + b"HPKE-v1" + SUITE + label + context
    return hmac.digest(secret, labeled + b"\1", "sha256")[:length]
