"""A key from a passphrase, and X25519, by libsodium."""

from __future__ import annotations

from nacl import pwhash
from nacl.bindings import crypto_scalarmult
from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

SALT_BYTES: int = pwhash.argon2id.SALTBYTES
OPERATIONS: int = pwhash.argon2id.OPSLIMIT_MODERATE
MEMORY: int = pwhash.argon2id.MEMLIMIT_MODERATE


def x25519(secret: bytes, point: bytes) -> bytes:
    """RFC 7748, 5. Raises `CryptoError` for a point of small order, whose product says nothing of the secret."""
    try:
        return crypto_scalarmult(secret, point)
    except RuntimeError as refused:
        raise CryptoError("a key of small order") from refused


def passphrase_key(passphrase: str, salt: bytes) -> bytes:
    """32 bytes from a passphrase by argon2id at libsodium's "moderate" cost (256 MiB, about a second)."""
    return pwhash.argon2id.kdf(
        SecretBox.KEY_SIZE,
        passphrase.encode(),
        salt,
        opslimit=OPERATIONS,
        memlimit=MEMORY,
    )
