"""Points of the twist y^2 = x^3 + 4 * (1 + u) over Fp2, under the native library's names.

Affine and slow: a peer needs G2 once a study, to check its credential.
"""

from __future__ import annotations

from anon.crypto.bls12381 import FIELD_ORDER, G2_SIZE, PARAMETER
from anon.crypto.pure.curve.fp2 import (
    ZERO2,
    Fp2,
    add2,
    conjugate2,
    invert2,
    is_greater_half,
    multiply2,
    negate2,
    power2,
    scale2,
    square_root2,
    subtract2,
)
from anon.crypto.pure.curve.scalar import Scalar

TwistPoint = tuple[Fp2, Fp2]

COMPRESSED, INFINITY, GREATER = 1 << 767, 1 << 766, 1 << 765
HALF_BITS = 384
COEFFICIENT: Fp2 = (4, 4)
GENERATOR: TwistPoint = (
    (
        0x024AA2B2F08F0A91260805272DC51051C6E47AD4FA403B02B4510B647AE3D1770BAC0326A805BBEFD48056C8C121BDB8,
        0x13E02B6052719F607DACD3A088274F65596BD0D09920B61AB5DA61BBDC7F5049334CF11213945D57E5AC7D055D042B7E,
    ),
    (
        0x0CE5D527727D6E118CC9CDC6DA2E351AADFD9BAA8CBDD3A76D429A695160D12C923AC9CC3BACA289E193548608B82801,
        0x0606C4A02EA734CC32ACD2B02BC28B99CB3E287E85A763AF267492AB572E99AB3F370D275CEC1DA1AAA9075FF05F79BE,
    ),
)
# The untwist-Frobenius-twist endomorphism psi(x, y) = (FROBENIUS_X * x^p, FROBENIUS_Y * y^p).
FROBENIUS_X = invert2(power2((1, 1), (FIELD_ORDER - 1) // 3))
FROBENIUS_Y = invert2(power2((1, 1), (FIELD_ORDER - 1) // 2))


def slope(first: TwistPoint, second: TwistPoint) -> Fp2 | None:
    """Of the line through both, the tangent where they are one; None where the line is vertical."""
    across = subtract2(second[0], first[0])
    if across != ZERO2:
        return multiply2(subtract2(second[1], first[1]), invert2(across))
    if first[1] != second[1] or first[1] == ZERO2:
        return None
    return multiply2(scale2(multiply2(first[0], first[0]), 3), invert2(scale2(first[1], 2)))


def along(steepness: Fp2, first: TwistPoint, second: TwistPoint) -> TwistPoint:
    """The sum of two points whose line has this slope."""
    x = subtract2(multiply2(steepness, steepness), add2(first[0], second[0]))
    return x, subtract2(multiply2(steepness, subtract2(first[0], x)), first[1])


class G2:
    """A point of the twist; `G2()` is the generator. Immutable. `place` is None for the identity."""

    __slots__ = ("place",)

    def __init__(self, affine: TwistPoint | None = GENERATOR) -> None:
        self.place = affine

    @staticmethod
    def identity() -> G2:
        return G2(None)

    @staticmethod
    def from_compressed_bytes_unchecked(data: bytes) -> G2:
        """The point that `data` spells, in the subgroup or not. Raises `ValueError` where it spells none.

        As lax as the native library about the identity, which all bytes with its flag spell: `curve` compares.
        """
        word = int.from_bytes(data, "big")
        if len(data) != G2_SIZE or not word & COMPRESSED:
            raise ValueError("expected 96 bytes of a compressed point")
        if word & INFINITY:
            return G2.identity()
        x = (word & (1 << HALF_BITS) - 1, (word & GREATER - 1) >> HALF_BITS)
        y = square_root2(_right_side(x)) if max(x) < FIELD_ORDER else None
        if y is None:
            raise ValueError("expected the first coordinate of a point")
        return G2((x, y if _is_greater(y) == bool(word & GREATER) else negate2(y)))

    def to_compressed_bytes(self) -> bytes:
        if self.place is None:
            return (COMPRESSED | INFINITY).to_bytes(G2_SIZE, "big")
        (real, imaginary), y = self.place
        flags = COMPRESSED | (GREATER if _is_greater(y) else 0)
        return (flags | imaginary << HALF_BITS | real).to_bytes(G2_SIZE, "big")

    def is_in_subgroup(self) -> bool:
        """True if psi(point) = -point * PARAMETER (Scott, "A note on group membership tests", 2021, section 4)."""
        if self.place is None:
            return True
        x, y = self.place
        image = G2((multiply2(FROBENIUS_X, conjugate2(x)), multiply2(FROBENIUS_Y, conjugate2(y))))
        return image == -self._times(PARAMETER)

    def _times(self, factor: int) -> G2:
        total = G2.identity()
        for bit in f"{factor:b}":
            total = total + total
            if bit == "1":
                total = total + self
        return total

    def __add__(self, other: G2) -> G2:
        if self.place is None or other.place is None:
            return other if self.place is None else self
        steepness = slope(self.place, other.place)
        return G2.identity() if steepness is None else G2(along(steepness, self.place, other.place))

    def __sub__(self, other: G2) -> G2:
        return self + -other

    def __neg__(self) -> G2:
        return self if self.place is None else G2((self.place[0], negate2(self.place[1])))

    def __mul__(self, scalar: Scalar) -> G2:
        return self._times(int(scalar))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, G2) and self.place == other.place

    def __hash__(self) -> int:
        return hash(self.place)

    def __repr__(self) -> str:
        return "G2(...)"


def _right_side(x: Fp2) -> Fp2:
    return add2(multiply2(multiply2(x, x), x), COEFFICIENT)


def _is_greater(y: Fp2) -> bool:
    """The sign of y: that of its imaginary part, or of the real one where that is zero."""
    return is_greater_half(y[1] or y[0])
