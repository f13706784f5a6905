"""Merkle trees of RFC 9162, section 2.1, over SHA-256: root, inclusion path, and what a path leads to.

A leaf is hashed after 0x00 and a node after 0x01, so that no node passes for a leaf. Times and memory are linear in the
leaves' hashes. No randomness, no secret: time may depend on everything here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

HASH_BYTES = 32
_LEAF, _NODE = b"\x00", b"\x01"


def leaf_hash(body: bytes) -> bytes:
    """SHA-256(0x00 || body), 32 bytes."""
    digest = hashlib.sha256(_LEAF)
    digest.update(body)
    return digest.digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """SHA-256(0x01 || left || right), 32 bytes."""
    return hashlib.sha256(_NODE + left + right).digest()


def root_of(leaves: Sequence[bytes]) -> bytes:
    """The root over hashed leaves (section 2.1.1). The tree of no leaf has SHA-256 of nothing."""
    if not leaves:
        return hashlib.sha256().digest()
    if len(leaves) == 1:
        return leaves[0]
    left = _left(len(leaves))
    return node_hash(root_of(leaves[:left]), root_of(leaves[left:]))


def path_of(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """The inclusion path of a leaf, from the bottom up (section 2.1.3.1). Raises `IndexError` for no leaf."""
    if not 0 <= index < len(leaves):
        raise IndexError(index)
    if len(leaves) == 1:
        return []
    left = _left(len(leaves))
    if index < left:
        return [*path_of(leaves[:left], index), root_of(leaves[left:])]
    return [*path_of(leaves[left:], index - left), root_of(leaves[:left])]


def led_to(leaf: bytes, index: int, count: int, path: Sequence[bytes]) -> bytes | None:
    """The root to which a path leads from leaf `index` of `count` (section 2.1.3.2); None for a path of another length.

    >>> leaves = [leaf_hash(body) for body in (b"a", b"b", b"c")]
    >>> led_to(leaf_hash(b"c"), 2, 3, path_of(leaves, 2)) == root_of(leaves)
    True
    >>> led_to(leaf_hash(b"d"), 2, 3, path_of(leaves, 2)) == root_of(leaves)
    False
    """
    if not 0 <= index < count:
        return None
    place, last, reached = index, count - 1, leaf
    for step in path:
        if last == 0:
            return None
        if place & 1 or place == last:
            reached = node_hash(step, reached)
            # A last node without a sibling rises alone, by as many levels as it has none.
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            reached = node_hash(reached, step)
        place, last = place >> 1, last >> 1
    return reached if last == 0 else None


def _left(count: int) -> int:
    """The largest power of two below the count: the leaves of the left subtree."""
    return 1 << (count - 1).bit_length() - 1
