"""Bytes of keys and sealed messages in the one suite (draft-ietf-hpke-pq, section 4; draft-connolly-cfrg-xwing-kem).

Secrets are expanded and faults are told here, for both implementations.
"""

from __future__ import annotations

import hashlib

from anon.errors import Malformed, RejectedProof
from anon.text.sentences import say

SECRET_SIZE = 32
MLKEM_SEED_SIZE, EXPANDED_SIZE = 64, 96
MLKEM_KEY_SIZE, CURVE_KEY_SIZE = 1184, 32
PUBLIC_KEY_SIZE = MLKEM_KEY_SIZE + CURVE_KEY_SIZE
MLKEM_CIPHERTEXT_SIZE = 1088
ENCAPSULATED_SIZE = MLKEM_CIPHERTEXT_SIZE + CURVE_KEY_SIZE
TAG_SIZE = 16
OVERHEAD = ENCAPSULATED_SIZE + TAG_SIZE
"""A sealed message is so much longer than its plaintext: 1136 bytes."""


def bad_key() -> Malformed:
    """For a public key to which nothing can be sealed."""
    return Malformed(say("sealing key: not a key to which anything can be sealed; do not take part"))


def expand(secret: bytes) -> tuple[bytes, bytes]:
    """ML-KEM's seed of 64 bytes (d, then z) and X25519's secret of 32: X-Wing's expandDecapsulationKey.

    Its draft's section 5.2. Raises `ValueError` for a secret of another length.
    """
    if len(secret) != SECRET_SIZE:
        raise ValueError(f"sealing secret: expected {SECRET_SIZE} bytes, got {len(secret)}")
    expanded = hashlib.shake_256(secret).digest(EXPANDED_SIZE)
    return expanded[:MLKEM_SEED_SIZE], expanded[MLKEM_SEED_SIZE:]


def demand_sealed(sealed_untrusted: bytes) -> None:
    """Raises `Malformed` for bytes that are shorter than any sealed message."""
    if len(sealed_untrusted) < OVERHEAD:
        raise Malformed(f"sealed message: expected at least {OVERHEAD} bytes, got {len(sealed_untrusted)}")


def does_not_open() -> RejectedProof:
    """For a message that was not sealed to this key for this purpose. It says nothing more."""
    return RejectedProof("a sealed message does not open")
