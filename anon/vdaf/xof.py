"""XofTurboShake128: seeds and vectors drawn from a seed. draft-irtf-cfrg-vdaf-20, section 6.2.1."""

from __future__ import annotations

from struct import pack

from anon.crypto.turboshake import turboshake128
from anon.vdaf.field import Field, Vector

SEED_SIZE = 32
DOMAIN = 1


def expand(field: Field, seed: bytes, separation: bytes, binder: bytes, length: int) -> Vector:
    """`length` field elements, each uniform if the seed is secret. Those at or above the modulus are drawn again."""
    read_next = turboshake128(_framed(seed, separation, binder), DOMAIN)
    size, modulus = field.size, field.modulus
    bits = (modulus - 1).bit_length()
    vector: Vector = []
    while len(vector) < length:
        drawn = field.read(read_next((length - len(vector)) * size))
        if bits < 8 * size:  # draws are cut to the modulus' own bits first, so that few of them lie above it
            drawn = [element & (1 << bits) - 1 for element in drawn]
        vector += drawn if max(drawn) < modulus else [element for element in drawn if element < modulus]
    return vector


def derive_seed(seed: bytes, separation: bytes, binder: bytes) -> bytes:
    """32 bytes."""
    return turboshake128(_framed(seed, separation, binder), DOMAIN)(SEED_SIZE)


def _framed(seed: bytes, separation: bytes, binder: bytes) -> bytes:
    """Raises `ValueError` if the seed is not of 32 bytes, `struct.error` above 65535 bytes of separation."""
    if len(seed) != SEED_SIZE:
        raise ValueError(f"expected a seed of {SEED_SIZE} bytes, got {len(seed)}")
    return pack("<H", len(separation)) + separation + bytes([len(seed)]) + seed + binder
