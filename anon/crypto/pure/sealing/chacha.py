"""ChaCha20-Poly1305 (RFC 8439)."""

from __future__ import annotations

import struct
from hmac import compare_digest

from anon.crypto.pure.nacl.exceptions import CryptoError
from anon.crypto.pure.nacl.salsa import TAG_SIZE, poly1305

KEY_SIZE, NONCE_SIZE = 32, 12
BLOCK_SIZE = 64
WORD = 0xFFFFFFFF
CONSTANTS = struct.unpack("<4I", b"expand 32-byte k")
QUARTERS = (
    (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
    (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
)  # fmt: skip


def seal(plaintext: bytes, nonce: bytes, key: bytes, associated: bytes = b"") -> bytes:
    """Ciphertext, then its tag of 16 bytes (RFC 8439, 2.8). A nonce serves a key once."""
    ciphertext = _masked(plaintext, nonce, key)
    return ciphertext + _tag(ciphertext, nonce, key, associated)


def unseal(sealed_untrusted: bytes, nonce: bytes, key: bytes, associated: bytes = b"") -> bytes:
    """The plaintext (RFC 8439, 2.8). Raises `CryptoError` for anything that this key did not seal."""
    ciphertext, tag = sealed_untrusted[:-TAG_SIZE], sealed_untrusted[-TAG_SIZE:]
    if not compare_digest(tag, _tag(ciphertext, nonce, key, associated)):
        raise CryptoError("the message does not open")
    return _masked(ciphertext, nonce, key)


def block(key: bytes, counter: int, nonce: bytes) -> bytes:
    """64 bytes of the key stream (RFC 8439, 2.3)."""
    state = [*CONSTANTS, *struct.unpack("<8I", key), counter, *struct.unpack("<3I", nonce)]
    words = list(state)
    for _ in range(10):
        for a, b, c, d in QUARTERS:
            words[a] = words[a] + words[b] & WORD
            mixed = words[d] ^ words[a]
            words[d] = mixed << 16 & WORD | mixed >> 16
            words[c] = words[c] + words[d] & WORD
            mixed = words[b] ^ words[c]
            words[b] = mixed << 12 & WORD | mixed >> 20
            words[a] = words[a] + words[b] & WORD
            mixed = words[d] ^ words[a]
            words[d] = mixed << 8 & WORD | mixed >> 24
            words[c] = words[c] + words[d] & WORD
            mixed = words[b] ^ words[c]
            words[b] = mixed << 7 & WORD | mixed >> 25
    return struct.pack("<16I", *((old + new) & WORD for old, new in zip(state, words, strict=True)))


def _masked(text: bytes, nonce: bytes, key: bytes) -> bytes:
    """The text under the key stream, which takes itself off again (RFC 8439, 2.4)."""
    # Block 0 is the key of Poly1305 (RFC 8439, section 2.8), so the text begins at block 1.
    stream = b"".join(block(key, 1 + number, nonce) for number in range(-(-len(text) // BLOCK_SIZE)))
    masked = int.from_bytes(text, "little") ^ int.from_bytes(stream[: len(text)], "little")
    return masked.to_bytes(len(text), "little")


def _tag(ciphertext: bytes, nonce: bytes, key: bytes, associated: bytes) -> bytes:
    lengths = struct.pack("<2Q", len(associated), len(ciphertext))
    authenticated = _filled(associated) + _filled(ciphertext) + lengths
    return poly1305(authenticated, block(key, 0, nonce)[:KEY_SIZE])


def _filled(data: bytes) -> bytes:
    return data + bytes(-len(data) % 16)
