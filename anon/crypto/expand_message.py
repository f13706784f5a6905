"""Uniform bytes: from a message under a domain separation tag (expand_message_xmd of RFC 9380), and fresh ones."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

SEED_SIZE = 32


def expand_message(message: bytes, dst: bytes, size: int) -> bytes:
    """RFC 9380, 5.3.1; `size` at most 8160. Raises `ValueError` beyond its limits."""
    blocks = -(-size // 32)
    if blocks > 255 or len(dst) > 255:
        raise ValueError(f"expected at most 8160 bytes and a tag of at most 255, got {size} and {len(dst)}")
    dst_prime = dst + bytes([len(dst)])
    # Z_pad is as long as a block of SHA-256 (RFC 9380, section 5.3.1).
    base = hashlib.sha256(bytes(64) + message + size.to_bytes(2, "big") + b"\0" + dst_prime).digest()
    block = hashlib.sha256(base + b"\1" + dst_prime).digest()
    output = block
    for counter in range(2, blocks + 1):
        mixed = int.from_bytes(base, "big") ^ int.from_bytes(block, "big")
        block = hashlib.sha256(mixed.to_bytes(32, "big") + bytes([counter]) + dst_prime).digest()
        output += block
    return output[:size]


def fresh_bytes(label: bytes, size: int, shown: bytes, random_bytes: Callable[[int], bytes]) -> bytes:
    """`size` uniform bytes from 32 fresh random ones, hedged by all that is `shown`: SHAKE-256(label, both).

    For a verifier's coefficients: not to be known by whoever made what is shown, also if the generator is stuck.
    """
    seed = random_bytes(SEED_SIZE)
    if len(seed) != SEED_SIZE:
        raise ValueError(f"expected {SEED_SIZE} random bytes, got {len(seed)}")
    return hashlib.shake_256(label + seed + shown).digest(size)
