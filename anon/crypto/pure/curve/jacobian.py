"""Adding and doubling on y^2 = x^3 + 4 over Fp, where the time of a proof goes.

A Jacobian point (X, Y, Z) stands for (X / Z^2, Y / Z^3); any with Z = 0 is the identity. The formulas are the usual
ones (Cohen, Miyaji and Ono 1998) with the cases that they leave out. So they are right for every point of the curve,
also outside the prime-order subgroup.
"""

from __future__ import annotations

from collections.abc import Sequence

from anon.crypto.bls12381 import FIELD_ORDER

Jacobian = tuple[int, int, int]
Affine = tuple[int, int]

IDENTITY: Jacobian = (1, 1, 0)


def double(point: Jacobian) -> Jacobian:
    """point + point."""
    x, y, z = point
    yy = y * y % FIELD_ORDER
    crossed = 4 * x * yy % FIELD_ORDER
    slope = 3 * x * x % FIELD_ORDER
    doubled = (slope * slope - 2 * crossed) % FIELD_ORDER
    return doubled, (slope * (crossed - doubled) - 8 * yy * yy) % FIELD_ORDER, 2 * y * z % FIELD_ORDER


def add_affine(point: Jacobian, other: Affine) -> Jacobian:
    """point + other, which is not the identity."""
    x, y, z = point
    if not z:
        return other[0], other[1], 1
    zz = z * z % FIELD_ORDER
    across = (other[0] * zz - x) % FIELD_ORDER
    rise = (other[1] * zz * z - y) % FIELD_ORDER
    if not across:
        return IDENTITY if rise else double(point)
    squared = across * across % FIELD_ORDER
    cubed = squared * across % FIELD_ORDER
    shared = x * squared % FIELD_ORDER
    total = (rise * rise - cubed - 2 * shared) % FIELD_ORDER
    return total, (rise * (shared - total) - y * cubed) % FIELD_ORDER, z * across % FIELD_ORDER


def add(point: Jacobian, other: Jacobian) -> Jacobian:
    """point + other."""
    x, y, z = other
    if not z:
        return point
    if not point[2]:
        return other
    if z == 1:
        return add_affine(point, (x, y))
    zz, zz_point = z * z % FIELD_ORDER, point[2] * point[2] % FIELD_ORDER
    shifted = (point[0] * zz % FIELD_ORDER, point[1] * zz * z % FIELD_ORDER, point[2])
    across = (x * zz_point - shifted[0]) % FIELD_ORDER
    rise = (y * zz_point * point[2] - shifted[1]) % FIELD_ORDER
    if not across:
        return IDENTITY if rise else double(point)
    squared = across * across % FIELD_ORDER
    cubed = squared * across % FIELD_ORDER
    shared = shifted[0] * squared % FIELD_ORDER
    total = (rise * rise - cubed - 2 * shared) % FIELD_ORDER
    return total, (rise * (shared - total) - shifted[1] * cubed) % FIELD_ORDER, z * point[2] * across % FIELD_ORDER


def multiply(point: Jacobian, factor: int) -> Jacobian:
    """point * factor for a factor of at least 0, bit by bit: right for every point, and not fast."""
    total = IDENTITY
    for bit in f"{factor:b}":
        total = double(total)
        if bit == "1":
            total = add(total, point)
    return total


def to_affine(points: Sequence[Jacobian]) -> list[Affine]:
    """The affine coordinates of points other than the identity, for one inversion in all (Montgomery's trick)."""
    products = [1]
    for point in points:
        products.append(products[-1] * point[2] % FIELD_ORDER)
    inverse = pow(products.pop(), -1, FIELD_ORDER)
    affine: list[Affine] = []
    for (x, y, z), before in zip(reversed(points), reversed(products), strict=True):
        own = inverse * before % FIELD_ORDER
        inverse = inverse * z % FIELD_ORDER
        square = own * own % FIELD_ORDER
        affine.append((x * square % FIELD_ORDER, y * square * own % FIELD_ORDER))
    affine.reverse()
    return affine
