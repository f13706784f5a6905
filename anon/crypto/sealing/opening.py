"""Opening sealed messages, for those that own a secret: the aggregator and the tellers. Needs `cryptography`."""

from __future__ import annotations

import hashlib

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.hpke import MLKEM768X25519PrivateKey

from anon.crypto.sealing.openssl import SUITE
from anon.crypto.sealing_sizes import OVERHEAD, SECRET_SIZE
from anon.errors import Malformed, RejectedProof

_MLKEM_SEED_SIZE, _EXPANDED_SIZE = 64, 96


class Opener:
    """A secret of 32 bytes, expanded as X-Wing does (SHAKE256), and its public key. `repr` shows nothing.

    Raises `ValueError` for a secret of another length.

    >>> from os import urandom
    >>> from anon.crypto.sealing import seal
    >>> opener = Opener(urandom(32))
    >>> sealed = seal(b"a report", opener.public_key, b"packets of study 1")
    >>> opener.open(sealed, b"packets of study 1"), len(sealed) - OVERHEAD
    (b'a report', 8)
    >>> opener.open(sealed, b"packets of study 2")
    Traceback (most recent call last):
    anon.errors.RejectedProof: a sealed message does not open
    """

    def __init__(self, secret: bytes) -> None:
        if len(secret) != SECRET_SIZE:
            raise ValueError(f"sealing secret: expected {SECRET_SIZE} bytes, got {len(secret)}")
        # X-Wing's expandDecapsulationKey: 64 bytes are the seed of ML-KEM, the last 32 the secret of X25519.
        expanded = hashlib.shake_256(secret).digest(_EXPANDED_SIZE)
        lattice = MLKEM768PrivateKey.from_seed_bytes(expanded[:_MLKEM_SEED_SIZE])
        curve = X25519PrivateKey.from_private_bytes(expanded[_MLKEM_SEED_SIZE:])
        self._key = MLKEM768X25519PrivateKey(lattice, curve)
        self.public_key = lattice.public_key().public_bytes_raw() + curve.public_key().public_bytes_raw()

    def open(self, sealed_untrusted: bytes, info: bytes) -> bytes:
        """The plaintext. Raises `Malformed` if it is too short to be sealed, `RejectedProof` for whatever was not
        sealed to this key for this purpose, one changed bit or a shared secret of zeros included."""
        if len(sealed_untrusted) < OVERHEAD:
            raise Malformed(f"sealed message: expected at least {OVERHEAD} bytes, got {len(sealed_untrusted)}")
        try:
            return SUITE.decrypt(sealed_untrusted, self._key, info)
        except (InvalidTag, ValueError):
            raise RejectedProof("a sealed message does not open") from None
