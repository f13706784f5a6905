"""BLS12-381, checked: the only module that touches a curve library.

Invariant: every `G1` and `G2` that leaves this module lies in the prime-order subgroup, but for what
`decode_g1_wide` reads. Decoding is strict whatever library is underneath: `arkworks`, or `pure` where the native one
has no build. `IMPLEMENTATION` says which,
`anon.crypto.backend` decides. Both give the same bytes, and neither is constant-time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from anon.crypto.backend import PURE, implementation
from anon.crypto.bls12381 import (
    EFFECTIVE_COFACTOR,
    EIGENVALUE,
    FIELD_ORDER,
    G1_SIZE,
    G2_SIZE,
    ORDER,
    ROOT,
    SCALAR_SIZE,
    WIDE_SIZE,
)
from anon.crypto.curve.subset_sums import BYTES_EACH, all_in_subgroup
from anon.crypto.expand_message import fresh_bytes
from anon.crypto.labels import SUBGROUP
from anon.errors import Malformed

IMPLEMENTATION = implementation("py_arkworks_bls12381")
if TYPE_CHECKING or IMPLEMENTATION == PURE:
    from anon.crypto.pure import curve as library
    from anon.crypto.pure.curve import G1, G2, Scalar
else:
    from anon.crypto.curve import arkworks as library
    from anon.crypto.curve.arkworks import G1, G2, Scalar

__all__ = [
    "EIGENVALUE",
    "FIELD_ORDER",
    "G1",
    "G1_SIZE",
    "G2",
    "G2_SIZE",
    "GENERATOR_G2",
    "IDENTITY_G1",
    "IDENTITY_G2",
    "IMPLEMENTATION",
    "NEGATED_GENERATOR_G2",
    "ORDER",
    "ROOT",
    "SCALAR_SIZE",
    "WIDE_SIZE",
    "FixedBase",
    "FixedBases",
    "Scalar",
    "clear_cofactor",
    "decode_g1",
    "decode_g1_rows",
    "decode_g1_wide",
    "decode_g2",
    "decode_scalar",
    "demand_large_order",
    "demand_subgroup",
    "encode_g1",
    "encode_g1_wide",
    "encode_g2",
    "encode_scalar",
    "hash_to_g1",
    "multiexp",
    "multiply_g2_generator",
    "pairing_product_is_one",
    "scalar_from_uniform",
    "subgroup_rows",
]

WINDOW_BITS = 8
WORTH_A_TABLE = 60
MOST_TABLES = 8
LONGEST_DST = 255
_NO_FLAGS = 0x1F
LEAST_TOGETHER = 400
"""Points from which one test of all costs less than a test of each (48 us)."""

Point = TypeVar("Point", G1, G2)

IDENTITY_G1 = G1.identity()
IDENTITY_G2 = G2.identity()
GENERATOR_G2 = G2()
_COFACTOR = Scalar(EFFECTIVE_COFACTOR)
NEGATED_GENERATOR_G2 = -GENERATOR_G2


def decode_g1(data_untrusted: bytes, what: str) -> G1:
    """A point of G1: exactly 48 bytes, canonical, in the subgroup, not the identity; else `Malformed`."""
    return _decode_point(G1, IDENTITY_G1, G1_SIZE, data_untrusted, what)


def decode_g1_wide(data_untrusted: bytes, what: str) -> G1:
    """A point of G1's curve from its compressed form and y, **in the subgroup or not**; else `Malformed`.

    Exactly 96 bytes, canonical, on the curve, not the identity. The y saves the square root of a compressed point (1 us
    in place of 27). Equations with such points have to hold after `clear_cofactor`.
    """
    _demand_length(data_untrusted, WIDE_SIZE, what)
    try:
        point = G1.from_xy_bytes_unchecked_be(bytes([data_untrusted[0] & _NO_FLAGS]) + data_untrusted[1:])
    except ValueError:
        raise Malformed(f"{what}: expected a compressed point of the curve and its y; recompute it") from None
    return _demand_spelled(point, IDENTITY_G1, data_untrusted[:G1_SIZE], what)


def clear_cofactor(point: G1) -> G1:
    """The same multiple of any point of the curve, which lies in the subgroup. Of small orders nothing is left."""
    return point * _COFACTOR


def demand_large_order(point: G1, what: str) -> None:
    """Raises `Malformed` for a point of the curve that has no part in the subgroup: its order divides the cofactor."""
    if clear_cofactor(point) == IDENTITY_G1:
        raise Malformed(f"{what}: expected a point with a part in the prime-order subgroup; recompute it")


def decode_g2(data_untrusted: bytes, what: str) -> G2:
    """A point of G2: exactly 96 bytes, canonical, in the subgroup, not the identity; else `Malformed`."""
    return _decode_point(G2, IDENTITY_G2, G2_SIZE, data_untrusted, what)


def decode_g1_rows(
    rows_untrusted: Sequence[Sequence[bytes]], names: Sequence[str], random_bytes: Callable[[int], bytes]
) -> list[tuple[G1, ...] | Malformed]:
    """For each row the points that `decode_g1` gives, or the error that it raises. `names` are those of a row's points.

    Large numbers of points share one test of the subgroup, which errs with probability 2^-128 at most
    (`subset_sums`); if it fails, each point is tested. `random_bytes` must be the operating system's.
    """
    rows = [_decode_row(row_untrusted, names) for row_untrusted in rows_untrusted]
    shown = b"".join(b"".join(row_untrusted) for row_untrusted in rows_untrusted)
    return subgroup_rows(rows, names, shown, random_bytes)


def subgroup_rows(
    rows: Sequence[tuple[G1, ...] | Malformed],
    names: Sequence[str],
    shown: bytes,
    random_bytes: Callable[[int], bytes],
) -> list[tuple[G1, ...] | Malformed]:
    """For each row of points of the curve the row, or the error that one of its points is not of the subgroup.

    `shown`: the bytes that the points came from.
    """
    points = [point for row in rows if not isinstance(row, Malformed) for point in row]
    if len(points) >= LEAST_TOGETHER:
        randomness = fresh_bytes(SUBGROUP, BYTES_EACH * len(points), shown, random_bytes)
        if all_in_subgroup(points, IDENTITY_G1, randomness):
            return list(rows)
    return [row if isinstance(row, Malformed) else _row_in_subgroup(row, names) for row in rows]


def _decode_row(row_untrusted: Sequence[bytes], names: Sequence[str]) -> tuple[G1, ...] | Malformed:
    try:
        return tuple(
            _decode_any(G1, IDENTITY_G1, G1_SIZE, data_untrusted, what)
            for data_untrusted, what in zip(row_untrusted, names, strict=True)
        )
    except Malformed as error:
        return error


def _row_in_subgroup(row: tuple[G1, ...], names: Sequence[str]) -> tuple[G1, ...] | Malformed:
    try:
        for point, what in zip(row, names, strict=True):
            demand_subgroup(point, what)
    except Malformed as error:
        return error
    return row


def _decode_point(group: type[Point], identity: Point, size: int, data_untrusted: bytes, what: str) -> Point:
    point = _decode_any(group, identity, size, data_untrusted, what)
    demand_subgroup(point, what)
    return point


def _decode_any(group: type[Point], identity: Point, size: int, data_untrusted: bytes, what: str) -> Point:
    """A point of the curve, in the subgroup or not."""
    _demand_length(data_untrusted, size, what)
    try:
        point = group.from_compressed_bytes_unchecked(data_untrusted)
    except ValueError:
        raise Malformed(f"{what}: expected a compressed point of the curve; recompute it") from None
    return _demand_spelled(point, identity, data_untrusted, what)


def _demand_spelled(point: Point, identity: Point, data_untrusted: bytes, what: str) -> Point:
    # A second spelling would be a second tag of one member; the libraries are lax about infinity at least.
    if point.to_compressed_bytes() != data_untrusted:
        raise Malformed(f"{what}: expected the one canonical encoding of the point; re-encode it")
    if point == identity:
        raise Malformed(f"{what}: expected a point other than the identity; recompute it")
    return point


def demand_subgroup(point: G1 | G2, what: str) -> None:
    """Raises `Malformed` for a point of the curve outside the subgroup."""
    if not point.is_in_subgroup():
        raise Malformed(f"{what}: expected a point of the prime-order subgroup; recompute it")


def decode_scalar(data_untrusted: bytes, what: str) -> Scalar:
    """A scalar: exactly 32 bytes big-endian, at least 1 and below the group order; else `Malformed`."""
    _demand_length(data_untrusted, SCALAR_SIZE, what)
    if not 0 < int.from_bytes(data_untrusted, "big") < ORDER:
        raise Malformed(f"{what}: expected a scalar from 1 to the group order less 1; draw it again")
    return Scalar.from_be_bytes(data_untrusted)


def encode_g1(point: G1) -> bytes:
    """The 48 compressed bytes of `point`."""
    return bytes(point.to_compressed_bytes())


def encode_g1_wide(point: G1) -> bytes:
    """The compressed form of `point`, then its y: 96 bytes."""
    return bytes(point.to_compressed_bytes() + point.to_xy_bytes_be()[G1_SIZE:])


def encode_g2(point: G2) -> bytes:
    """The 96 compressed bytes of `point`."""
    return bytes(point.to_compressed_bytes())


def encode_scalar(scalar: Scalar) -> bytes:
    """The 32 big-endian bytes of `scalar`."""
    return bytes(scalar.to_be_bytes())


def scalar_from_uniform(uniform: bytes) -> Scalar:
    """`uniform` as a big-endian integer, reduced modulo the group order (48 bytes keep the bias below 2^-128)."""
    return Scalar.from_be_bytes_mod_order(uniform)


def hash_to_g1(message: bytes, dst: bytes) -> G1:
    """RFC 9380, suite BLS12381G1_XMD:SHA-256_SSWU_RO_ under the given domain separation tag.

    Raises `ValueError` for a tag of more than 255 bytes, which the RFC hashes and nothing here uses.
    """
    if len(dst) > LONGEST_DST:
        raise ValueError(f"expected a tag of at most {LONGEST_DST} bytes, got {len(dst)}")
    return G1.hash_to_curve(message, dst)


def multiply_g2_generator(scalar: Scalar) -> G2:
    """BP2 * scalar."""
    return GENERATOR_G2 * scalar


def multiexp(points: Sequence[G1], scalars: Sequence[Scalar]) -> G1:
    """The sum of points[i] * scalars[i]. Raises `ValueError` when the lists are empty or differ in length."""
    if not points or len(points) != len(scalars):
        raise ValueError(f"expected as many scalars as points and at least one, got {len(points)} and {len(scalars)}")
    return library.multiexp(points, scalars)


def pairing_product_is_one(pairs: Sequence[tuple[G1, G2]]) -> bool:
    """True if the product of e(first, second) over all pairs is one. Raises `ValueError` for no pairs at all."""
    if not pairs:
        raise ValueError("expected at least one pair: an empty product would verify anything")
    return library.pairing_product_is_one(pairs)


class FixedBase:
    """One point of G1 that gets a table which makes multiplying it cheap: 8 ms and about 2 MB, worth it after 60 uses.

    In Python a table takes ten times as long to make, and who goes without the native library verifies little: none.
    """

    def __init__(self, point: G1) -> None:
        self.point = point
        self._uses = 0
        self._rows: list[list[G1]] = []

    def multiply(self, scalar: Scalar) -> G1:
        """point * scalar."""
        self._uses += 1
        if not self._rows and self._uses > WORTH_A_TABLE and IMPLEMENTATION != PURE:
            self._rows = _table(self.point)
        if not self._rows:
            return multiexp([self.point], [scalar])
        total = IDENTITY_G1
        for row, digit in zip(self._rows, scalar.to_le_bytes(), strict=True):
            if digit:
                total = total + row[digit]
        return total


def _table(point: G1) -> list[list[G1]]:
    """By the place of a byte in a scalar and its value, the multiple of the point."""
    rows = []
    for _ in range(SCALAR_SIZE * 8 // WINDOW_BITS):
        row = [IDENTITY_G1, point]
        for _ in range(2, 1 << WINDOW_BITS):
            row.append(row[-1] + point)
        rows.append(row)
        point = row[-1] + point
    return rows


class FixedBases:
    """The same points multiplied again and again: tables for the first eight, multi-exponentiation for the rest."""

    def __init__(self, points: Sequence[G1]) -> None:
        self._tables = [FixedBase(point) for point in points[:MOST_TABLES]]
        self._others = list(points[MOST_TABLES:])

    def combine(self, scalars: Sequence[Scalar]) -> G1:
        """The sum of points[i] * scalars[i]. Raises `ValueError` unless there is one scalar per point."""
        if len(scalars) != len(self._tables) + len(self._others):
            raise ValueError(f"expected {len(self._tables) + len(self._others)} scalars, got {len(scalars)}")
        total = IDENTITY_G1
        for table, scalar in zip(self._tables, scalars, strict=False):
            total = total + table.multiply(scalar)
        return total + multiexp(self._others, scalars[MOST_TABLES:]) if self._others else total


def _demand_length(data_untrusted: bytes, size: int, what: str) -> None:
    if len(data_untrusted) != size:
        raise Malformed(f"{what}: expected {size} bytes, got {len(data_untrusted)}; send the whole value")
