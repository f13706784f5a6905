"""Hashing to G1: RFC 9380, suite BLS12381G1_XMD:SHA-256_SSWU_RO_."""

from __future__ import annotations

from collections.abc import Sequence

from anon.crypto.bls12381 import FIELD_ORDER, PARAMETER
from anon.crypto.expand_message import expand_message
from anon.crypto.pure.curve import isogeny, jacobian
from anon.crypto.pure.curve.fp2 import square_root
from anon.crypto.pure.curve.jacobian import Affine, Jacobian

ELEMENT_SIZE = 64
SCALE = -isogeny.CURVE_B * pow(isogeny.CURVE_A, -1, FIELD_ORDER) % FIELD_ORDER
EXCEPTION = isogeny.CURVE_B * pow(isogeny.NON_SQUARE * isogeny.CURVE_A, -1, FIELD_ORDER) % FIELD_ORDER


def hash_to_curve(message: bytes, dst: bytes) -> Jacobian:
    """A point of G1 (RFC 9380, 3: two elements, mapped and added, then the cofactor cleared)."""
    uniform = expand_message(message, dst, 2 * ELEMENT_SIZE)
    halves = (uniform[:ELEMENT_SIZE], uniform[ELEMENT_SIZE:])
    first, second = (map_to_curve(int.from_bytes(half, "big") % FIELD_ORDER) for half in halves)
    # The effective cofactor, 0xd201000000010001 (RFC 9380, section 8.8.1).
    return jacobian.multiply(jacobian.add(first, second), PARAMETER + 1)


def map_to_curve(element: int) -> Jacobian:
    """RFC 9380, 6.6.3: a point of the isogenous curve, then the isogeny."""
    return evaluate_isogeny(simplified_swu(element))


def simplified_swu(element: int) -> Affine:
    """RFC 9380, 6.6.2, with its exceptional case: a point of y^2 = x^3 + A * x + B."""
    stretched = isogeny.NON_SQUARE * element * element % FIELD_ORDER
    common = (stretched * stretched + stretched) % FIELD_ORDER
    x = SCALE * (1 + pow(common, -1, FIELD_ORDER)) % FIELD_ORDER if common else EXCEPTION
    y = square_root(_right_side(x))
    if y is None:
        x = stretched * x % FIELD_ORDER
        y = square_root(_right_side(x))
    if y is None:
        raise ArithmeticError("expected one of two candidates to be a square")
    return x, y if y % 2 == element % 2 else FIELD_ORDER - y


def evaluate_isogeny(point: Affine) -> Jacobian:
    """The image on y^2 = x^3 + 4; the identity where a denominator vanishes."""
    x, y = point
    x_below, y_below = _polynomial(isogeny.X_DENOMINATOR, x), _polynomial(isogeny.Y_DENOMINATOR, x)
    below = x_below * y_below % FIELD_ORDER
    if not below:
        return jacobian.IDENTITY
    image_x = _polynomial(isogeny.X_NUMERATOR, x) * y_below * below % FIELD_ORDER
    image_y = y * _polynomial(isogeny.Y_NUMERATOR, x) * x_below * below * below % FIELD_ORDER
    return image_x, image_y, below


def _right_side(x: int) -> int:
    return ((x * x + isogeny.CURVE_A) * x + isogeny.CURVE_B) % FIELD_ORDER


def _polynomial(coefficients: Sequence[int], x: int) -> int:
    value = 0
    for coefficient in reversed(coefficients):
        value = (value * x + coefficient) % FIELD_ORDER
    return value
