"""The part of NaCl that the protocol uses: Ed25519, X25519 keys, secret boxes, and keys from passphrases.

The classes are PyNaCl's own where it is installed, and those of `anon.crypto.pure` where it has no build.
`anon.crypto.backend` decides. Both have the same names, bytes and verdicts for the parts used here. The twin is not
constant-time, and makes no keys from passphrases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from anon.crypto.backend import PURE, implementation

IMPLEMENTATION = implementation("nacl")
if TYPE_CHECKING or IMPLEMENTATION != PURE:
    from nacl.exceptions import BadSignatureError, CryptoError
    from nacl.public import PrivateKey, PublicKey
    from nacl.secret import SecretBox
    from nacl.signing import SigningKey, VerifyKey

    from anon.crypto.nacl.libsodium import SALT_BYTES, passphrase_key, x25519
else:
    from anon.crypto.pure.nacl import (
        SALT_BYTES,
        BadSignatureError,
        CryptoError,
        PrivateKey,
        PublicKey,
        SecretBox,
        SigningKey,
        VerifyKey,
        passphrase_key,
        x25519,
    )

__all__ = [
    "IMPLEMENTATION",
    "SALT_BYTES",
    "BadSignatureError",
    "CryptoError",
    "PrivateKey",
    "PublicKey",
    "SecretBox",
    "SigningKey",
    "VerifyKey",
    "passphrase_key",
    "x25519",
]
