"""The curve of Ed25519 (RFC 8032, 5.1), in extended coordinates (X, Y, Z, T) with x = X/Z, y = Y/Z, T = XY/Z."""

from __future__ import annotations

FIELD_ORDER = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
CURVE_D = -121665 * pow(121666, -1, FIELD_ORDER) % FIELD_ORDER
ROOT_OF_MINUS_ONE = pow(2, (FIELD_ORDER - 1) // 4, FIELD_ORDER)
SIZE = 32

Extended = tuple[int, int, int, int]

IDENTITY: Extended = (0, 1, 1, 0)


def add(first: Extended, second: Extended) -> Extended:
    """The complete addition law (RFC 8032, 5.1.4): right for all points, equal ones included."""
    minus = (first[1] - first[0]) * (second[1] - second[0]) % FIELD_ORDER
    plus = (first[1] + first[0]) * (second[1] + second[0]) % FIELD_ORDER
    cross = 2 * first[3] * second[3] * CURVE_D % FIELD_ORDER
    scale = 2 * first[2] * second[2] % FIELD_ORDER
    e, f, g, h = plus - minus, scale - cross, scale + cross, plus + minus
    return e * f % FIELD_ORDER, g * h % FIELD_ORDER, f * g % FIELD_ORDER, e * h % FIELD_ORDER


def multiply(point: Extended, factor: int) -> Extended:
    """point * factor for a factor of at least 0."""
    total = IDENTITY
    for bit in f"{factor:b}":
        total = add(total, total)
        if bit == "1":
            total = add(total, point)
    return total


def negate(point: Extended) -> Extended:
    x, y, z, t = point
    return -x % FIELD_ORDER, y, z, -t % FIELD_ORDER


def is_small_order(point: Extended) -> bool:
    """True if eight times the point is the identity."""
    x, y, z, _ = multiply(point, 8)
    return not x and y == z


def encode(point: Extended) -> bytes:
    """RFC 8032, 5.1.2."""
    inverse = pow(point[2], -1, FIELD_ORDER)
    x, y = point[0] * inverse % FIELD_ORDER, point[1] * inverse % FIELD_ORDER
    return (y | (x & 1) << 255).to_bytes(SIZE, "little")


def decode(data: bytes) -> Extended | None:
    """RFC 8032, 5.1.3: the point of 32 bytes, or None where they are not the one spelling of a point."""
    word = int.from_bytes(data, "little")
    sign, y = word >> 255, word & (1 << 255) - 1
    if y >= FIELD_ORDER:
        return None
    above, below = (y * y - 1) % FIELD_ORDER, (CURVE_D * y * y + 1) % FIELD_ORDER
    x = above * below**3 * pow(above * below**7, (FIELD_ORDER - 5) // 8, FIELD_ORDER) % FIELD_ORDER
    if (below * x * x - above) % FIELD_ORDER:
        x = x * ROOT_OF_MINUS_ONE % FIELD_ORDER
    if (below * x * x - above) % FIELD_ORDER or (not x and sign):
        return None
    if x & 1 != sign:
        x = FIELD_ORDER - x
    return x, y, 1, x * y % FIELD_ORDER


def _base() -> Extended:
    point = decode((4 * pow(5, -1, FIELD_ORDER) % FIELD_ORDER).to_bytes(SIZE, "little"))
    if point is None:
        raise ArithmeticError("expected the base point to decode")
    return point


BASE = _base()
