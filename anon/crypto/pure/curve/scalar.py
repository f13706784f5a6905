"""Integers modulo the group order, under the native library's names."""

from __future__ import annotations

from anon.crypto.bls12381 import ORDER, SCALAR_SIZE


class Scalar:
    """An integer modulo the group order. Immutable by convention; `repr` shows nothing, because most are secret."""

    __slots__ = ("_value",)

    def __init__(self, value: int) -> None:
        """Raises `OverflowError` below 0, as the native library does; anything above is reduced."""
        if value < 0:
            raise OverflowError("expected an integer of at least 0")
        self._value = value % ORDER

    @staticmethod
    def from_be_bytes(data: bytes) -> Scalar:
        """Raises `ValueError` unless `data` is 32 bytes that spell an integer below the order."""
        value = int.from_bytes(data, "big")
        if len(data) != SCALAR_SIZE or value >= ORDER:
            raise ValueError(f"expected {SCALAR_SIZE} bytes below the group order")
        return Scalar(value)

    @staticmethod
    def from_be_bytes_mod_order(data: bytes) -> Scalar:
        """Any number of bytes, reduced."""
        return Scalar(int.from_bytes(data, "big"))

    def to_be_bytes(self) -> bytes:
        return self._value.to_bytes(SCALAR_SIZE, "big")

    def to_le_bytes(self) -> bytes:
        return self._value.to_bytes(SCALAR_SIZE, "little")

    def inverse(self) -> Scalar:
        """Raises `ZeroDivisionError` for zero."""
        if not self._value:
            raise ZeroDivisionError("zero has no inverse")
        return Scalar(pow(self._value, -1, ORDER))

    def is_zero(self) -> bool:
        return not self._value

    def __int__(self) -> int:
        return self._value

    def __add__(self, other: Scalar) -> Scalar:
        return Scalar(self._value + other._value)

    def __sub__(self, other: Scalar) -> Scalar:
        return Scalar((self._value - other._value) % ORDER)

    def __mul__(self, other: Scalar) -> Scalar:
        return Scalar(self._value * other._value)

    def __neg__(self) -> Scalar:
        return Scalar(-self._value % ORDER)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scalar) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return "Scalar(...)"
