"""The field of pairings, Fp12 = Fp[w] / (w^12 - 2 * w^6 + 2), in which w^6 = 1 + u.

An element is its twelve coefficients over Fp, from w^0 up. Python multiplies one long integer faster than many short
ones, so a product is one multiplication of the coefficients laid side by side (Kronecker substitution).
"""

from __future__ import annotations

from anon.crypto.bls12381 import FIELD_ORDER
from anon.crypto.pure.curve.fp2 import Fp2, power2

Fp12 = tuple[int, ...]

DEGREE = 12
SLOT = 96
"""Bytes for a coefficient of a product before it is reduced: 12 * p^2 < 2^766."""
ONE: Fp12 = (1, *[0] * (DEGREE - 1))
WINDOW_BITS = 4
# w^(p^2) = TURN * w: a sixth root of one, in Fp.
TURN = power2((1, 1), (FIELD_ORDER**2 - 1) // 6)[0]
TURNS = tuple(pow(TURN, place, FIELD_ORDER) for place in range(DEGREE))


def place2(value: Fp2, power: int) -> list[tuple[int, int]]:
    """`value` * w^power as (power, coefficient) pairs: a + b*u = (a - b) + b * w^6. `power` below 6."""
    return [(power, (value[0] - value[1]) % FIELD_ORDER), (power + 6, value[1])]


def multiply(first: Fp12, second: Fp12) -> Fp12:
    """first * second. A square costs less, because Python sees the equal factors."""
    left = _side_by_side(first)
    product = left * (left if second is first else _side_by_side(second))
    octets = product.to_bytes(2 * DEGREE * SLOT, "little")
    terms = [int.from_bytes(octets[start : start + SLOT], "little") for start in range(0, len(octets), SLOT)]
    for power in range(2 * DEGREE - 2, DEGREE - 1, -1):
        terms[power - 6] += 2 * terms[power]
        terms[power - 12] -= 2 * terms[power]
    return tuple(term % FIELD_ORDER for term in terms[:DEGREE])


def _side_by_side(value: Fp12) -> int:
    return int.from_bytes(b"".join(term.to_bytes(SLOT, "little") for term in value), "little")


def frobenius_squared(value: Fp12) -> Fp12:
    """value^(p^2)."""
    return tuple(term * turn % FIELD_ORDER for term, turn in zip(value, TURNS, strict=True))


def power(value: Fp12, exponent: int) -> Fp12:
    """value^exponent for an exponent of at least 1."""
    powers = [ONE, value]
    for _ in range(2, 1 << WINDOW_BITS):
        powers.append(multiply(powers[-1], value))
    result = ONE
    for digit in f"{exponent:x}":
        for _ in range(WINDOW_BITS):
            result = multiply(result, result)
        if digit != "0":
            result = multiply(result, powers[int(digit, 16)])
    return result
