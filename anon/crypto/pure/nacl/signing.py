"""Ed25519 (RFC 8032, 5.1) with libsodium's verdicts: without cofactor, small orders and second spellings refused."""

from __future__ import annotations

import hashlib
import os

from anon.crypto.pure.nacl import edwards
from anon.crypto.pure.nacl.edwards import ORDER, SIZE
from anon.crypto.pure.nacl.exceptions import BadSignatureError
from anon.crypto.pure.nacl.sizes import exactly
from anon.values import frozen

SIGNATURE_SIZE = 64


@frozen
class SignedMessage:
    """The result of `SigningKey.sign`."""

    message: bytes
    signature: bytes


class VerifyKey:
    """A public key. Raises `ValueError` unless it is 32 bytes, `TypeError` unless bytes."""

    def __init__(self, key: bytes) -> None:
        self._key = exactly(key, SIZE)

    def __bytes__(self) -> bytes:
        return self._key

    def verify(self, message: bytes, signature: bytes) -> bytes:
        """`message`. Raises `BadSignatureError`, and `ValueError` for a signature of another length."""
        exactly(signature, SIGNATURE_SIZE)
        key, shown = edwards.decode(self._key), edwards.decode(signature[:SIZE])
        answer = int.from_bytes(signature[SIZE:], "little")
        # A larger answer would be a second signature of the same (RFC 8032, section 8.4).
        if key is None or shown is None or answer >= ORDER:
            raise BadSignatureError("signature rejected")
        if edwards.is_small_order(key) or edwards.is_small_order(shown):
            raise BadSignatureError("signature rejected")
        challenge = _number(signature[:SIZE], self._key, message)
        expected = edwards.add(edwards.multiply(edwards.BASE, answer), edwards.multiply(edwards.negate(key), challenge))
        if edwards.encode(expected) != signature[:SIZE]:
            raise BadSignatureError("signature rejected")
        return message


class SigningKey:
    """A key from its seed of 32 bytes; `repr` shows nothing."""

    def __init__(self, seed: bytes) -> None:
        self._seed = exactly(seed, SIZE)
        digest = hashlib.sha512(seed).digest()
        self._exponent = int.from_bytes(digest[:SIZE], "little") & (1 << 254) - 8 | 1 << 254
        self._prefix = digest[SIZE:]
        self.verify_key = VerifyKey(edwards.encode(edwards.multiply(edwards.BASE, self._exponent)))

    @classmethod
    def generate(cls) -> SigningKey:
        """A fresh key from the operating system's generator."""
        return cls(os.urandom(SIZE))

    def __bytes__(self) -> bytes:
        return self._seed

    def sign(self, message: bytes) -> SignedMessage:
        """Deterministic, as RFC 8032 has it."""
        once = _number(self._prefix, message)
        shown = edwards.encode(edwards.multiply(edwards.BASE, once))
        answer = (once + _number(shown, bytes(self.verify_key), message) * self._exponent) % ORDER
        return SignedMessage(message, shown + answer.to_bytes(SIZE, "little"))


def _number(*parts: bytes) -> int:
    return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little") % ORDER
