"""Points of y^2 = x^3 + 4 over Fp, under the native library's names. Decoded points may lie outside G1: see `curve`."""

from __future__ import annotations

from anon.crypto.bls12381 import FIELD_ORDER, G1_SIZE, PARAMETER, ROOT, WIDE_SIZE
from anon.crypto.pure.curve import jacobian
from anon.crypto.pure.curve.fp2 import is_greater_half, square_root
from anon.crypto.pure.curve.hash_to_curve import hash_to_curve
from anon.crypto.pure.curve.jacobian import Affine, Jacobian
from anon.crypto.pure.curve.scalar import Scalar

COMPRESSED, INFINITY, GREATER = 1 << 383, 1 << 382, 1 << 381
GENERATOR: Jacobian = (
    0x17F1D3A73197D7942695638C4FA9AC0FC3688C4F9774B905A14E3A3F171BAC586C55E83FF97A1AEFFB3AF00ADB22C6BB,
    0x08B3F481E3AAA0F1A09E30ED741D8AE4FCF5E095D5D00AF600DB18CB2C04B3EDD03CC744A2888AE40CAA232946C5E7E1,
    1,
)


class G1:
    """A point of the curve; `G1()` is the generator. Immutable but for its coordinates' scale."""

    __slots__ = ("_point",)

    def __init__(self, point: Jacobian = GENERATOR) -> None:
        self._point = point

    @staticmethod
    def identity() -> G1:
        return G1(jacobian.IDENTITY)

    @staticmethod
    def hash_to_curve(message: bytes, dst: bytes) -> G1:
        """RFC 9380, BLS12381G1_XMD:SHA-256_SSWU_RO_. Raises `ValueError` for a tag of more than 255 bytes."""
        return G1(hash_to_curve(message, dst))

    @staticmethod
    def from_compressed_bytes_unchecked(data: bytes) -> G1:
        """The point that `data` spells, in the subgroup or not. Raises `ValueError` where it spells none.

        As lax as the native library about the identity, which all bytes with its flag spell: `curve` compares.
        """
        word = int.from_bytes(data, "big")
        if len(data) != G1_SIZE or not word & COMPRESSED:
            raise ValueError("expected 48 bytes of a compressed point")
        if word & INFINITY:
            return G1.identity()
        x = word & (GREATER - 1)
        y = square_root(x**3 + 4) if x < FIELD_ORDER else None
        if y is None:
            raise ValueError("expected the first coordinate of a point")
        return G1((x, y if is_greater_half(y) == bool(word & GREATER) else FIELD_ORDER - y, 1))

    @staticmethod
    def from_xy_bytes_unchecked_be(data: bytes) -> G1:
        """The point of both coordinates, in the subgroup or not; zeros are the identity. Raises `ValueError`."""
        if len(data) != WIDE_SIZE:
            raise ValueError("expected 96 bytes of two coordinates")
        x, y = int.from_bytes(data[:G1_SIZE], "big"), int.from_bytes(data[G1_SIZE:], "big")
        if x == y == 0:
            return G1.identity()
        if max(x, y) >= FIELD_ORDER or (y * y - x**3 - 4) % FIELD_ORDER:
            raise ValueError("expected the coordinates of a point")
        return G1((x, y, 1))

    def to_xy_bytes_be(self) -> bytes:
        x, y = self.affine() or (0, 0)
        return x.to_bytes(G1_SIZE, "big") + y.to_bytes(G1_SIZE, "big")

    def to_compressed_bytes(self) -> bytes:
        affine = self.affine()
        if affine is None:
            return (COMPRESSED | INFINITY).to_bytes(G1_SIZE, "big")
        flags = COMPRESSED | (GREATER if is_greater_half(affine[1]) else 0)
        return (flags | affine[0]).to_bytes(G1_SIZE, "big")

    def affine(self) -> Affine | None:
        """Both coordinates, or None for the identity. Kept, because points are encoded again and again."""
        if not self._point[2]:
            return None
        if self._point[2] != 1:
            ((x, y),) = jacobian.to_affine([self._point])
            self._point = (x, y, 1)
        return self._point[:2]

    def is_in_subgroup(self) -> bool:
        """True if (ROOT^2 * x, y) = -point * PARAMETER^2 (Scott, "A note on group membership tests", 2021).

        The endomorphism f on the left has f^2 + f + 1 = 0. So f + PARAMETER^2 has degree PARAMETER^4 - PARAMETER^2 + 1,
        which is the prime group order. The points that it maps to the identity are G1 and no more.
        """
        affine = self.affine()
        if affine is None:
            return True
        image = (ROOT * ROOT * affine[0] % FIELD_ORDER, affine[1])
        multiple = jacobian.multiply(jacobian.multiply(self._point, PARAMETER), PARAMETER)
        return not jacobian.add_affine(multiple, image)[2]

    def __add__(self, other: G1) -> G1:
        return G1(jacobian.add(self._point, other._point))

    def __sub__(self, other: G1) -> G1:
        return self + -other

    def __neg__(self) -> G1:
        x, y, z = self._point
        return G1((x, -y % FIELD_ORDER, z))

    def __mul__(self, scalar: Scalar) -> G1:
        return G1(jacobian.multiply(self._point, int(scalar)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, G1) and self.affine() == other.affine()

    def __hash__(self) -> int:
        return hash(self.affine())

    def __repr__(self) -> str:
        return "G1(...)"
