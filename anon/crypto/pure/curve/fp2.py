"""The field of BLS12-381 and its square extension Fp2 = Fp[u] / (u^2 + 1), on Python's integers.

An element of Fp is an integer from 0 to p-1, one of Fp2 a pair (a, b) of them for a + b*u.
"""

from __future__ import annotations

from anon.crypto.bls12381 import FIELD_ORDER

Fp2 = tuple[int, int]

ZERO2: Fp2 = (0, 0)
ONE2: Fp2 = (1, 0)


def square_root(value: int) -> int | None:
    """A root of `value`, or None where it has none. The field order is 3 modulo 4."""
    root = pow(value, (FIELD_ORDER + 1) // 4, FIELD_ORDER)
    return root if root * root % FIELD_ORDER == value % FIELD_ORDER else None


def is_greater_half(value: int) -> bool:
    """True if `value` is the greater of itself and its negative: the sign that an encoding keeps."""
    return value > FIELD_ORDER // 2


def add2(first: Fp2, second: Fp2) -> Fp2:
    return (first[0] + second[0]) % FIELD_ORDER, (first[1] + second[1]) % FIELD_ORDER


def subtract2(first: Fp2, second: Fp2) -> Fp2:
    return (first[0] - second[0]) % FIELD_ORDER, (first[1] - second[1]) % FIELD_ORDER


def negate2(value: Fp2) -> Fp2:
    return -value[0] % FIELD_ORDER, -value[1] % FIELD_ORDER


def conjugate2(value: Fp2) -> Fp2:
    """value^p."""
    return value[0], -value[1] % FIELD_ORDER


def multiply2(first: Fp2, second: Fp2) -> Fp2:
    real, imaginary = first[0] * second[0], first[1] * second[1]
    cross = (first[0] + first[1]) * (second[0] + second[1])
    return (real - imaginary) % FIELD_ORDER, (cross - real - imaginary) % FIELD_ORDER


def scale2(value: Fp2, factor: int) -> Fp2:
    return value[0] * factor % FIELD_ORDER, value[1] * factor % FIELD_ORDER


def invert2(value: Fp2) -> Fp2:
    """1 / value. Raises `ValueError` for zero."""
    inverse = pow(value[0] * value[0] + value[1] * value[1], -1, FIELD_ORDER)
    return value[0] * inverse % FIELD_ORDER, -value[1] * inverse % FIELD_ORDER


def power2(value: Fp2, exponent: int) -> Fp2:
    """value^exponent for an exponent of at least 0."""
    result = ONE2
    for bit in f"{exponent:b}":
        result = multiply2(result, result)
        if bit == "1":
            result = multiply2(result, value)
    return result


def square_root2(value: Fp2) -> Fp2 | None:
    """A root of `value`, or None where it has none (RFC 9380, appendix I.3's method by norms).

    With n^2 = a^2 + b^2, one of (a + n) / 2 and (a - n) / 2 is the square of the root's real part.
    """
    norm = square_root(value[0] * value[0] + value[1] * value[1])
    if norm is None:
        return None
    half = (FIELD_ORDER + 1) // 2
    for sign in (norm, -norm):
        real = square_root((value[0] + sign) * half % FIELD_ORDER)
        if real:
            return real, value[1] * half * pow(real, -1, FIELD_ORDER) % FIELD_ORDER
    imaginary = square_root(-value[0] % FIELD_ORDER)
    return (0, imaginary) if imaginary is not None and value[1] == 0 else None
