"""Sums of multiples of points of G1: what proving consists of."""

from __future__ import annotations

from collections.abc import Sequence

from anon.crypto.bls12381 import EIGENVALUE, FIELD_ORDER, ROOT
from anon.crypto.pure.curve import jacobian
from anon.crypto.pure.curve.g1 import G1
from anon.crypto.pure.curve.jacobian import Affine, Jacobian
from anon.crypto.pure.curve.scalar import Scalar

WINDOW_BITS = 5
ODD_MULTIPLES = 1 << WINDOW_BITS - 2


def multiexp(points: Sequence[G1], scalars: Sequence[Scalar]) -> G1:
    """The sum of points[i] * scalars[i] for points of G1, the identity included.

    Straus' method: one chain of doublings for all points. The endomorphism cuts each scalar into two of half the
    length, and signed digits leave five in six places empty.
    """
    pairs = [
        (point, int(scalar)) for point, scalar in zip(points, scalars, strict=True) if point.affine() and int(scalar)
    ]
    additions: list[list[Affine]] = [[] for _ in range(EIGENVALUE.bit_length() + 2)]
    for (_, scalar), table in zip(pairs, _tables([point for point, _ in pairs]), strict=True):
        high, low = divmod(scalar, EIGENVALUE)
        _schedule(low, table, additions)
        _schedule(high, [(ROOT * x % FIELD_ORDER, y) for x, y in table], additions)
    total = jacobian.IDENTITY
    for step in reversed(additions):
        total = jacobian.double(total)
        for point in step:
            total = jacobian.add_affine(total, point)
    return G1(total)


def _tables(points: Sequence[G1]) -> list[list[Affine]]:
    """The odd multiples of each point, 1 to 15 times. None is the identity, because the order is a greater prime."""
    multiples: list[Jacobian] = []
    for point in points:
        affine = point.affine()
        if affine is None:
            raise ValueError("expected points other than the identity")
        multiples.append((*affine, 1))
        twice = jacobian.double((*affine, 1))
        for _ in range(ODD_MULTIPLES - 1):
            multiples.append(jacobian.add(multiples[-1], twice))
    flat = jacobian.to_affine(multiples)
    return [flat[start : start + ODD_MULTIPLES] for start in range(0, len(flat), ODD_MULTIPLES)]


def _schedule(number: int, table: Sequence[Affine], additions: Sequence[list[Affine]]) -> None:
    """Enters at each binary place what to add there: `number` in signed odd digits of at most 15, few of them."""
    position = 0
    while number:
        empty = (number & -number).bit_length() - 1
        position, number = position + empty, number >> empty
        digit = number & (1 << WINDOW_BITS) - 1
        if digit < 1 << WINDOW_BITS - 1:
            additions[position].append(table[digit >> 1])
        else:
            digit -= 1 << WINDOW_BITS
            x, y = table[-digit >> 1]
            additions[position].append((x, FIELD_ORDER - y))
        number -= digit
