"""X25519 (RFC 7748), and NaCl's boxes under a shared key."""

from __future__ import annotations

import os

from anon.crypto.pure.nacl import salsa
from anon.crypto.pure.nacl.exceptions import CryptoError
from anon.crypto.pure.nacl.sizes import exactly

FIELD_ORDER = 2**255 - 19
SIZE = 32
BASE_POINT = (9).to_bytes(SIZE, "little")


def x25519(secret: bytes, point: bytes) -> bytes:
    """RFC 7748, 5. Raises `CryptoError` for a point of small order, whose product says nothing of the secret."""
    # Clamped (RFC 7748, section 5): a multiple of 8, which takes away any part of small order.
    factor = int.from_bytes(secret, "little") & (1 << 254) - 8 | 1 << 254
    # The top bit of a point is not its own (RFC 7748, section 5).
    base = int.from_bytes(point, "little") & (1 << 255) - 1
    x2, z2, x3, z3 = 1, 0, base, 1
    for bit in f"{factor:b}":
        if bit == "1":
            x2, z2, x3, z3 = x3, z3, x2, z2
        plus, minus = x2 + z2, x2 - z2
        square_plus, square_minus = plus * plus % FIELD_ORDER, minus * minus % FIELD_ORDER
        left, right = (x3 - z3) * plus % FIELD_ORDER, (x3 + z3) * minus % FIELD_ORDER
        x3, z3 = (left + right) ** 2 % FIELD_ORDER, base * (left - right) ** 2 % FIELD_ORDER
        difference = square_plus - square_minus
        x2 = square_plus * square_minus % FIELD_ORDER
        z2 = difference * (square_plus + 121665 * difference) % FIELD_ORDER
        if bit == "1":
            x2, z2, x3, z3 = x3, z3, x2, z2
    if not z2 or not x2:
        raise CryptoError("a key of small order")
    return (x2 * pow(z2, -1, FIELD_ORDER) % FIELD_ORDER).to_bytes(SIZE, "little")


class PublicKey:
    """An X25519 public key. Raises `TypeError` or `ValueError` unless it is 32 bytes."""

    def __init__(self, key: bytes) -> None:
        self._key = exactly(key, SIZE)

    def __bytes__(self) -> bytes:
        return self._key


class PrivateKey:
    """An X25519 secret key and its public half."""

    def __init__(self, key: bytes) -> None:
        self._key = exactly(key, SIZE)
        self.public_key = PublicKey(x25519(key, BASE_POINT))

    @classmethod
    def generate(cls) -> PrivateKey:
        """A fresh key from the operating system's generator."""
        return cls(os.urandom(SIZE))

    def __bytes__(self) -> bytes:
        return self._key


class SecretBox:
    """XSalsa20-Poly1305 under one key of 32 bytes."""

    KEY_SIZE = salsa.KEY_SIZE
    NONCE_SIZE = salsa.NONCE_SIZE

    def __init__(self, key: bytes) -> None:
        self._key = exactly(key, self.KEY_SIZE)

    def encrypt(self, plaintext: bytes, nonce: bytes) -> bytes:
        """The nonce, then the box."""
        return nonce + salsa.seal(plaintext, exactly(nonce, self.NONCE_SIZE), self._key)

    def decrypt(self, box_untrusted: bytes) -> bytes:
        """Raises `CryptoError` unless it was made under this key; nonce first."""
        nonce = box_untrusted[: self.NONCE_SIZE]
        if len(nonce) != self.NONCE_SIZE:
            raise CryptoError("the box does not open")
        return salsa.unseal(box_untrusted[self.NONCE_SIZE :], nonce, self._key)
