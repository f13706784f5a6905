"""The parts of NaCl that a peer needs, on Python's integers, under PyNaCl's names.

Same keys, bytes and verdicts as libsodium (tests/anon/nacl). **Not constant-time.** For machines that libsodium has no
build for.
"""

from anon.crypto.pure.nacl.boxes import PrivateKey, PublicKey, SecretBox, x25519
from anon.crypto.pure.nacl.exceptions import BadSignatureError, CryptoError
from anon.crypto.pure.nacl.passphrases import SALT_BYTES, passphrase_key
from anon.crypto.pure.nacl.signing import SigningKey, VerifyKey

__all__ = [
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
