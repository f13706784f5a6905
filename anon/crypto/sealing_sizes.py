"""Bytes of keys and sealed messages in the one suite (draft-ietf-hpke-pq, section 4; draft-connolly-cfrg-xwing-kem).

Secrets are expanded and faults are told here, for both implementations.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

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


_MODULUS, _ELEMENTS_SIZE = 3329, 1152
_FIELD_ORDER = 2**255 - 19
_OF_ORDER_8 = (
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
)
_SMALL_ORDERS = frozenset({0, 1, _FIELD_ORDER - 1, *_OF_ORDER_8})


@lru_cache(maxsize=2048)
def is_public_key(public_key: bytes) -> bool:
    """True if something can be sealed to these bytes. The same verdict on every machine, whichever code seals there.

    Each of the 768 elements is below the modulus (FIPS 203, 7.2), and the point has no small order (RFC 7748, 6.1).
    """
    if len(public_key) != PUBLIC_KEY_SIZE:
        return False
    elements, curve = public_key[:_ELEMENTS_SIZE], public_key[MLKEM_KEY_SIZE:]
    pairs = (int.from_bytes(elements[at : at + 3], "little") for at in range(0, _ELEMENTS_SIZE, 3))
    if any(pair & 0xFFF >= _MODULUS or pair >> 12 >= _MODULUS for pair in pairs):
        return False
    # The top bit of a point is not its own (RFC 7748, section 5).
    point = int.from_bytes(curve, "little") & (1 << 255) - 1
    return point % _FIELD_ORDER not in _SMALL_ORDERS


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
