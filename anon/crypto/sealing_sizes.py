"""Bytes of keys and sealed messages in the one suite (draft-ietf-hpke-pq, section 4; draft-connolly-cfrg-xwing-kem)."""

from __future__ import annotations

from anon.errors import Malformed
from anon.text.sentences import say

SECRET_SIZE = 32
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
