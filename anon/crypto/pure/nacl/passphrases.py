"""No key from a passphrase: argon2id at a useful cost takes minutes in Python, and a cheap function only looks safe."""

from __future__ import annotations

from typing import NoReturn

from anon.errors import Refused

SALT_BYTES = 16


def passphrase_key(passphrase: str, salt: bytes) -> NoReturn:
    """Always raises `Refused`."""
    raise Refused(
        "a passphrase needs libsodium, which is not on this device; leave it away and rely on the device's own lock, "
        "or open this home on a computer"
    )
