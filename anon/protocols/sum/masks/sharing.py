"""Secrets in shares (Shamir 1979), and their recovery where some shares are lies.

The shares of a secret are values of a polynomial, so those of liars are errors of a Reed-Solomon code. Gao's decoder
(2003, algorithm 1) takes out up to half of the errors that the shares beyond the threshold could show. A secret counts
only if it fits what its owner said of it beforehand, so no lies make another one. Everybody decodes the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from math import comb, prod
from typing import Final

from anon.crypto import labels
from anon.wire.cbor import encode

SECRET: Final = 31
"""Bytes of a secret, so that it lies below `PRIME`."""
SHARE: Final = 32
PRIME: Final = 2**255 - 19
_TRIES: Final = 400
"""So many sets of shares are left out at most, all of one size: in small groups more lies are passed over then."""


def shares(secret: bytes, seed: bytes, word: bytes, needed: int, many: int) -> list[bytes]:
    """So many shares of a secret of 31 bytes, of which `needed` tell it. `seed`: 32 random bytes."""
    drawn = hashlib.shake_256(encode([labels.MASK_SHARES, word, seed])).digest(48 * (needed - 1))
    coefficients = [int.from_bytes(drawn[at : at + 48], "big") % PRIME for at in range(0, len(drawn), 48)]
    polynomial = [int.from_bytes(secret, "big"), *coefficients]
    return [_value_at(place, polynomial).to_bytes(SHARE, "big") for place in range(1, many + 1)]


def recovered(points: Mapping[int, bytes], needed: int, fits: Callable[[bytes], bool]) -> bytes | None:
    """The secret of enough shares, by their places from 1 on; None where the lies among them are too many.

    Of so many shares up to (shown - needed) // 2 may be lies, rounded down. Of small numbers more may be.
    """
    values = {place: int.from_bytes(share, "big") % PRIME for place, share in points.items()}
    for value in _decodings(values, needed):
        if value < 1 << 8 * SECRET and fits(secret := value.to_bytes(SECRET, "big")):
            return secret
    return None


def _decodings(points: Mapping[int, int], needed: int) -> Iterator[int]:
    """The values at 0 that these points can mean, the likeliest first."""
    beyond = len(points) - needed
    if beyond < 0:
        return
    yield _at_zero(dict(list(points.items())[:needed]))
    for many in range(beyond + 1):
        if comb(len(points), many) > _TRIES:
            return
        if many and (beyond - many) % 2:  # one fewer finds as many lies
            continue
        for left_out in combinations(points, many):
            yield _decoded({place: value for place, value in points.items() if place not in left_out}, needed)


def _at_zero(points: Mapping[int, int]) -> int:
    """The value at 0 of the polynomial through these points (Lagrange), by one inversion."""
    total, below = 0, 1
    for x, y in points.items():
        others = [other for other in points if other != x]
        share = prod(other - x for other in others)
        total, below = (total * share + y * prod(others) * below) % PRIME, below * share % PRIME
    return total * pow(below, -1, PRIME) % PRIME


def _decoded(points: Mapping[int, int], needed: int) -> int:
    """The value at 0 of the polynomial with `needed` coefficients that all but (shown - needed) // 2 of these points
    lie on; where there is none, any number.

    Euclid's algorithm on the product of all x - place and the polynomial through all points (Gao 2003). It stops at the
    polynomial times the locator of the errors, and the locator. Lists of coefficients, the constant first.
    """
    above, below = [1], list[int]()
    for place, value in points.items():  # Newton's interpolation
        factor = (value - _value_at(place, below)) * pow(_value_at(place, above), -1, PRIME)
        below = _plus(below, above, factor)
        above = _plus([0, *above], above, -place)
    before, locator = list[int](), [1]
    while 2 * (len(below) - 1) >= len(points) + needed:
        while len(above) >= len(below):
            step = [0] * (len(above) - len(below))
            factor = -above[-1] * pow(below[-1], -1, PRIME)
            above, before = _plus(above, [*step, *below], factor), _plus(before, [*step, *locator], factor)
        above, below, before, locator = below, above, locator, before
    return below[0] * pow(locator[0], -1, PRIME) % PRIME if below and locator[0] else 0


def _plus(left: Sequence[int], right: Sequence[int], factor: int) -> list[int]:
    """The sum of a polynomial and a multiple of another, without leading zeros."""
    longest = max(len(left), len(right))
    one, other = ([*each, *[0] * (longest - len(each))] for each in (left, right))
    total = [(a + b * factor) % PRIME for a, b in zip(one, other, strict=True)]
    while total and not total[-1]:
        total.pop()
    return total


def _value_at(place: int, polynomial: Sequence[int]) -> int:
    total = 0
    for coefficient in reversed(polynomial):
        total = (total * place + coefficient) % PRIME
    return total
