"""The one question about pairings: is a product of them one?

The optimal ate pairing (Vercauteren 2010) of BLS12 curves. Its loop runs over the parameter's size; the sign that is
left out inverts every pairing, which no answer depends on.
"""

from __future__ import annotations

from collections.abc import Sequence

from anon.crypto.bls12381 import FIELD_ORDER, ORDER, PARAMETER
from anon.crypto.pure.curve import fp12 as twelfth
from anon.crypto.pure.curve.fp2 import Fp2, multiply2, scale2, subtract2
from anon.crypto.pure.curve.fp12 import Fp12
from anon.crypto.pure.curve.g1 import G1
from anon.crypto.pure.curve.g2 import G2, TwistPoint, along, slope
from anon.crypto.pure.curve.jacobian import Affine

HARD_PART = (FIELD_ORDER**4 - FIELD_ORDER**2 + 1) // ORDER


def pairing_product_is_one(pairs: Sequence[tuple[G1, G2]]) -> bool:
    """True if the product of e(first, second) is one, for points of the subgroups; identities give one."""
    places = [(first.affine(), second.place) for first, second in pairs]
    return _ends_in_one(_miller_loop([(first, second) for first, second in places if first and second]))


def _miller_loop(pairs: Sequence[tuple[Affine, TwistPoint]]) -> Fp12:
    """The product of the pairs' loops: one chain of squarings for all."""
    value = twelfth.ONE
    walkers = [second for _, second in pairs]
    for bit in f"{PARAMETER:b}"[1:]:
        value = twelfth.multiply(value, value)
        for index, (first, second) in enumerate(pairs):
            walkers[index], line = _step(walkers[index], walkers[index], first)
            value = twelfth.multiply(value, line)
            if bit == "1":
                walkers[index], line = _step(walkers[index], second, first)
                value = twelfth.multiply(value, line)
    return value


def _step(walker: TwistPoint, other: TwistPoint, at: Affine) -> tuple[TwistPoint, Fp12]:
    """walker + other, and the line through both, evaluated `at` a point of G1."""
    steepness = slope(walker, other)
    if steepness is None:
        raise ValueError("expected points of the subgroup: a multiple met its negative")
    return along(steepness, walker, other), _line(steepness, walker, at)


def _line(steepness: Fp2, through: TwistPoint, at: Affine) -> Fp12:
    """y - y0 - s * (x - x0), with the twist undone (x0 / w^2, y0 / w^3, s / w), times w^3, which the end makes one."""
    terms = [0] * twelfth.DEGREE
    constant = subtract2(multiply2(steepness, through[0]), through[1])
    for power, term in (*twelfth.place2(constant, 0), *twelfth.place2(scale2(steepness, -at[0]), 2), (3, at[1])):
        terms[power] = term
    return tuple(terms)


def _ends_in_one(value: Fp12) -> bool:
    """True if value^((p^12 - 1) / r) is one.

    The exponent is (p^6 - 1) * (p^2 + 1) * HARD_PART. The last two factors come first; then z^(p^6 - 1) is one exactly
    where z^(p^6) = z, and since that power turns w into -w, where the odd coefficients are zero. Nothing is inverted.
    """
    turned = twelfth.multiply(twelfth.frobenius_squared(value), value)
    return not any(twelfth.power(turned, HARD_PART)[1::2])
