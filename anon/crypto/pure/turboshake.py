"""TurboSHAKE128 (RFC 9861) in Python, for phones. Not constant-time: Python's integers are not.

The standard library has SHAKE128 alone, with 24 rounds in place of 12.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from struct import iter_unpack, pack

RATE = 168
"""Bytes that the sponge takes up or gives out for each permutation."""
ROUNDS = (
    0x0000000000000001, 0x0000000000008082, 0x800000000000808A, 0x8000000080008000, 0x000000000000808B,
    0x0000000080000001, 0x8000000080008081, 0x8000000000008009, 0x000000000000008A, 0x0000000000000088,
    0x0000000080008009, 0x000000008000000A, 0x000000008000808B, 0x800000000000008B, 0x8000000000008089,
    0x8000000000008003, 0x8000000000008002, 0x8000000000000080, 0x000000000000800A, 0x800000008000000A,
    0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
)
"""The constants of Keccak's 24 rounds (FIPS 202, section 3.2.5)."""
# TurboSHAKE keeps the last 12 rounds of Keccak, and so their constants (RFC 9861).
TURBO = ROUNDS[12:]
LANE = (1 << 64) - 1
TWICE = (1 << 64) + 1
"""A lane times this stands twice side by side, so that a shift and a mask turn it."""


def turboshake128(message: bytes, domain: int) -> Callable[[int], bytes]:
    """See `anon.crypto.turboshake`."""
    blocks, kept = _blocks(message, domain, TURBO), bytearray()

    def read(size: int) -> bytes:
        kept.extend(b"".join(islice(blocks, max(0, -(-(size - len(kept)) // RATE)))))
        data = bytes(kept[:size])
        del kept[:size]
        return data

    return read


def squeeze(message: bytes, domain: int, length: int, rounds: tuple[int, ...] = TURBO) -> bytes:
    """The first `length` bytes of the sponge's stream: TurboSHAKE128, or SHAKE128 with all rounds and domain 0x1f."""
    return b"".join(islice(_blocks(message, domain, rounds), -(-length // RATE)))[:length]


def _blocks(message: bytes, domain: int, rounds: tuple[int, ...]) -> Iterator[bytes]:
    """The sponge's endless stream, 168 bytes at a time."""
    padded = bytearray(message + bytes([domain]))
    padded.extend(bytes(-len(padded) % RATE))
    # The last bit of pad10*1 (FIPS 202, section 5.1). Its first one is in the domain byte (RFC 9861).
    padded[-1] ^= 0x80
    state = [0] * 25
    for block in iter_unpack("<21Q", padded):
        state = permute([a ^ b for a, b in zip(state, block, strict=False)] + state[21:], rounds)
    while True:
        yield pack("<21Q", *state[:21])
        state = permute(state, rounds)


def permute(state: list[int], rounds: tuple[int, ...]) -> list[int]:  # noqa: PLR0915
    """Keccak-p[1600] on 25 lanes of 64 bits, row by row (FIPS 202, section 3.3), one round for each constant.

    Written out, since a loop over lanes takes twice as long: theta's parities, rho and pi in one line a lane, chi.
    """
    a0, a1, a2, a3, a4, b0, b1, b2, b3, b4, c0, c1, c2, c3, c4, d0, d1, d2, d3, d4, e0, e1, e2, e3, e4 = state
    for constant in rounds:
        t0 = a0 ^ b0 ^ c0 ^ d0 ^ e0
        t1 = a1 ^ b1 ^ c1 ^ d1 ^ e1
        t2 = a2 ^ b2 ^ c2 ^ d2 ^ e2
        t3 = a3 ^ b3 ^ c3 ^ d3 ^ e3
        t4 = a4 ^ b4 ^ c4 ^ d4 ^ e4
        u0 = t4 ^ (t1 * TWICE >> 63 & LANE)
        u1 = t0 ^ (t2 * TWICE >> 63 & LANE)
        u2 = t1 ^ (t3 * TWICE >> 63 & LANE)
        u3 = t2 ^ (t4 * TWICE >> 63 & LANE)
        u4 = t3 ^ (t0 * TWICE >> 63 & LANE)
        k0 = a0 ^ u0
        k1 = (b1 ^ u1) * TWICE >> 20 & LANE
        k2 = (c2 ^ u2) * TWICE >> 21 & LANE
        k3 = (d3 ^ u3) * TWICE >> 43 & LANE
        k4 = (e4 ^ u4) * TWICE >> 50 & LANE
        l0 = (a3 ^ u3) * TWICE >> 36 & LANE
        l1 = (b4 ^ u4) * TWICE >> 44 & LANE
        l2 = (c0 ^ u0) * TWICE >> 61 & LANE
        l3 = (d1 ^ u1) * TWICE >> 19 & LANE
        l4 = (e2 ^ u2) * TWICE >> 3 & LANE
        m0 = (a1 ^ u1) * TWICE >> 63 & LANE
        m1 = (b2 ^ u2) * TWICE >> 58 & LANE
        m2 = (c3 ^ u3) * TWICE >> 39 & LANE
        m3 = (d4 ^ u4) * TWICE >> 56 & LANE
        m4 = (e0 ^ u0) * TWICE >> 46 & LANE
        n0 = (a4 ^ u4) * TWICE >> 37 & LANE
        n1 = (b0 ^ u0) * TWICE >> 28 & LANE
        n2 = (c1 ^ u1) * TWICE >> 54 & LANE
        n3 = (d2 ^ u2) * TWICE >> 49 & LANE
        n4 = (e3 ^ u3) * TWICE >> 8 & LANE
        o0 = (a2 ^ u2) * TWICE >> 2 & LANE
        o1 = (b3 ^ u3) * TWICE >> 9 & LANE
        o2 = (c4 ^ u4) * TWICE >> 25 & LANE
        o3 = (d0 ^ u0) * TWICE >> 23 & LANE
        o4 = (e1 ^ u1) * TWICE >> 62 & LANE
        a0 = k0 ^ (k1 | k2) ^ k1 ^ constant
        a1 = k1 ^ (k2 | k3) ^ k2
        a2 = k2 ^ (k3 | k4) ^ k3
        a3 = k3 ^ (k4 | k0) ^ k4
        a4 = k4 ^ (k0 | k1) ^ k0
        b0 = l0 ^ (l1 | l2) ^ l1
        b1 = l1 ^ (l2 | l3) ^ l2
        b2 = l2 ^ (l3 | l4) ^ l3
        b3 = l3 ^ (l4 | l0) ^ l4
        b4 = l4 ^ (l0 | l1) ^ l0
        c0 = m0 ^ (m1 | m2) ^ m1
        c1 = m1 ^ (m2 | m3) ^ m2
        c2 = m2 ^ (m3 | m4) ^ m3
        c3 = m3 ^ (m4 | m0) ^ m4
        c4 = m4 ^ (m0 | m1) ^ m0
        d0 = n0 ^ (n1 | n2) ^ n1
        d1 = n1 ^ (n2 | n3) ^ n2
        d2 = n2 ^ (n3 | n4) ^ n3
        d3 = n3 ^ (n4 | n0) ^ n4
        d4 = n4 ^ (n0 | n1) ^ n0
        e0 = o0 ^ (o1 | o2) ^ o1
        e1 = o1 ^ (o2 | o3) ^ o2
        e2 = o2 ^ (o3 | o4) ^ o3
        e3 = o3 ^ (o4 | o0) ^ o4
        e4 = o4 ^ (o0 | o1) ^ o0
    return [a0, a1, a2, a3, a4, b0, b1, b2, b3, b4, c0, c1, c2, c3, c4, d0, d1, d2, d3, d4, e0, e1, e2, e3, e4]
