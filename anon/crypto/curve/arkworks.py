"""The native curve library, py_arkworks_bls12381, under the names that `curve` uses. No other module imports it.

It accepts several spellings of infinity, silently truncates unequal lists and calls an empty pairing product one:
`curve` stands in front. Not constant-time.
"""

from __future__ import annotations

from collections.abc import Sequence

from py_arkworks_bls12381 import GT, Scalar
from py_arkworks_bls12381 import G1Point as G1
from py_arkworks_bls12381 import G2Point as G2

from anon.crypto.bls12381 import EIGENVALUE, FIELD_ORDER, G1_SIZE, ROOT

__all__ = ["G1", "G2", "Scalar", "multiexp", "pairing_product_is_one"]

FEW_POINTS = 6
RADIX = Scalar(16)
ZERO_DIGIT = 8
DIGIT_OFFSET = sum(ZERO_DIGIT << 4 * place for place in range(33))
IDENTITY_G1 = G1.identity()


def multiexp(points: Sequence[G1], scalars: Sequence[Scalar]) -> G1:
    """The sum of points[i] * scalars[i] for lists of one length, at least one, and points of the subgroup."""
    if len(points) > FEW_POINTS:
        return G1.multiexp_unchecked(list(points), list(scalars))
    return _multiexp_few(points, scalars)


def pairing_product_is_one(pairs: Sequence[tuple[G1, G2]]) -> bool:
    """True if the product of e(first, second) over all pairs, at least one, is one."""
    return GT.pairing_check([first for first, _ in pairs], [second for _, second in pairs])


def _multiexp_few(points: Sequence[G1], scalars: Sequence[Scalar]) -> G1:
    """The same by Straus' method, on scalars of half the length in signed digits: a quarter faster for few points.

    Needs points of the subgroup.
    """
    tables: list[tuple[G1, ...]] = []
    digits: list[bytes] = []
    for point, scalar in zip(points, scalars, strict=True):
        # The endomorphism f multiplies points of the subgroup by EIGENVALUE: P * scalar = P * low + f(P) * high.
        high, low = divmod(int(scalar), EIGENVALUE)
        tables += [_signed_multiples(point), _signed_multiples(_endomorphism(point))]
        digits += [_signed_digits(low), _signed_digits(high)]
    total = IDENTITY_G1
    for row in zip(*digits, strict=True):
        total = total * RADIX
        for table, digit in zip(tables, row, strict=True):
            if digit != ZERO_DIGIT:
                total = total + table[digit]
    return total


def _signed_digits(number: int) -> bytes:
    """33 digits to base 16, most significant first, each 8 too large: 0 stands for -8 and 15 for 7."""
    return bytes.fromhex("0" + "0".join(f"{number + DIGIT_OFFSET:033x}"))


def _signed_multiples(point: G1) -> tuple[G1, ...]:
    """-8 to 7 times `point`, in this order."""
    two = point + point
    three, four = two + point, two + two
    positive = [point, two, three, four, four + point, three + three, four + three]
    negative = [-(four + four), *(-multiple for multiple in reversed(positive))]
    return (*negative, IDENTITY_G1, *positive)


def _endomorphism(point: G1) -> G1:
    octets = point.to_xy_bytes_be()
    x = int.from_bytes(octets[:G1_SIZE], "big") * ROOT % FIELD_ORDER
    return G1.from_xy_bytes_unchecked_be(x.to_bytes(G1_SIZE, "big") + octets[G1_SIZE:])
