"""A key from a passphrase, by libsodium."""

from __future__ import annotations

from nacl import pwhash
from nacl.secret import SecretBox

SALT_BYTES: int = pwhash.argon2id.SALTBYTES
OPERATIONS: int = pwhash.argon2id.OPSLIMIT_MODERATE
MEMORY: int = pwhash.argon2id.MEMLIMIT_MODERATE


def passphrase_key(passphrase: str, salt: bytes) -> bytes:
    """32 bytes from a passphrase by argon2id at libsodium's "moderate" cost (256 MiB, about a second)."""
    return pwhash.argon2id.kdf(
        SecretBox.KEY_SIZE,
        passphrase.encode(),
        salt,
        opslimit=OPERATIONS,
        memlimit=MEMORY,
    )
