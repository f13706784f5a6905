"""XSalsa20-Poly1305, NaCl's secret box (Bernstein, "Cryptography in NaCl" 2009; "Extending the Salsa20 nonce" 2011)."""

from __future__ import annotations

import struct
from hmac import compare_digest

from anon.crypto.pure.nacl.exceptions import CryptoError

KEY_SIZE, NONCE_SIZE, TAG_SIZE = 32, 24, 16
BLOCK_SIZE = 64
WORD = 0xFFFFFFFF
CONSTANTS = struct.unpack("<4I", b"expand 32-byte k")
# Columns, then rows: each quarter-round changes its four words in turn.
QUARTERS = (
    (0, 4, 8, 12), (5, 9, 13, 1), (10, 14, 2, 6), (15, 3, 7, 11),
    (0, 1, 2, 3), (5, 6, 7, 4), (10, 11, 8, 9), (15, 12, 13, 14),
)  # fmt: skip
OUTER = (0, 5, 10, 15, 6, 7, 8, 9)
POLY_PRIME = 2**130 - 5
POLY_MASK = 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF


def seal(plaintext: bytes, nonce: bytes, key: bytes) -> bytes:
    """Tag and ciphertext: 16 bytes more than the plaintext. A nonce serves a key once."""
    stream = _stream(BLOCK_SIZE // 2 + len(plaintext), nonce, key)
    ciphertext = _exclusive(plaintext, stream[KEY_SIZE:])
    return poly1305(ciphertext, stream[:KEY_SIZE]) + ciphertext


def unseal(box_untrusted: bytes, nonce: bytes, key: bytes) -> bytes:
    """The plaintext. Raises `CryptoError` for anything that this key did not seal."""
    tag, ciphertext = box_untrusted[:TAG_SIZE], box_untrusted[TAG_SIZE:]
    stream = _stream(BLOCK_SIZE // 2 + len(ciphertext), nonce, key)
    if len(tag) != TAG_SIZE or not compare_digest(tag, poly1305(ciphertext, stream[:KEY_SIZE])):
        raise CryptoError("the box does not open")
    return _exclusive(ciphertext, stream[KEY_SIZE:])


def poly1305(message: bytes, key: bytes) -> bytes:
    """RFC 8439, 2.5. A key serves once."""
    factor = int.from_bytes(key[:16], "little") & POLY_MASK
    total = 0
    for start in range(0, len(message), 16):
        total = (total + int.from_bytes(message[start : start + 16] + b"\1", "little")) * factor % POLY_PRIME
    return ((total + int.from_bytes(key[16:], "little")) % (1 << 128)).to_bytes(TAG_SIZE, "little")


def hsalsa20(key: bytes, nonce: bytes) -> bytes:
    """A key from a key and 16 bytes: eight words of the rounds, without the final addition."""
    words = _rounds(_state(key, nonce))
    return struct.pack("<8I", *(words[index] for index in OUTER))


def _stream(size: int, nonce: bytes, key: bytes) -> bytes:
    inner = hsalsa20(key, nonce[:16])
    blocks = (_block(inner, nonce[16:] + struct.pack("<Q", number)) for number in range(-(-size // BLOCK_SIZE)))
    return b"".join(blocks)[:size]


def _block(key: bytes, nonce: bytes) -> bytes:
    state = _state(key, nonce)
    return struct.pack("<16I", *((old + new) & WORD for old, new in zip(state, _rounds(state), strict=True)))


def _state(key: bytes, nonce: bytes) -> list[int]:
    a, b = struct.unpack("<4I", key[:16]), struct.unpack("<4I", key[16:])
    middle = struct.unpack("<4I", nonce)
    c = CONSTANTS
    return [c[0], *a, c[1], *middle, c[2], *b, c[3]]


def _rounds(state: list[int]) -> list[int]:
    words = list(state)
    for _ in range(10):
        for a, b, c, d in QUARTERS:
            mixed = words[a] + words[d] & WORD
            words[b] ^= mixed << 7 & WORD | mixed >> 25
            mixed = words[b] + words[a] & WORD
            words[c] ^= mixed << 9 & WORD | mixed >> 23
            mixed = words[c] + words[b] & WORD
            words[d] ^= mixed << 13 & WORD | mixed >> 19
            mixed = words[d] + words[c] & WORD
            words[a] ^= mixed << 18 & WORD | mixed >> 14
    return words


def _exclusive(first: bytes, second: bytes) -> bytes:
    size = len(first)
    return (int.from_bytes(first, "little") ^ int.from_bytes(second[:size], "little")).to_bytes(size, "little")
