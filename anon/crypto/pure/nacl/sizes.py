"""Inputs of a fixed size."""

from __future__ import annotations


def exactly(value: bytes, size: int) -> bytes:
    """The value, if it is so many bytes. Raises `TypeError` or `ValueError`, as PyNaCl does."""
    if not isinstance(value, bytes):
        raise TypeError("expected bytes")
    if len(value) != size:
        raise ValueError(f"expected {size} bytes, got {len(value)}")
    return value
