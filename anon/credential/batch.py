"""Many pairing equations folded into one, and the search for those that fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from anon.crypto.curve import (
    G1,
    G2,
    NEGATED_GENERATOR_G2,
    Scalar,
    encode_g1,
    multiexp,
    pairing_product_is_one,
    scalar_from_uniform,
)
from anon.crypto.expand_message import fresh_bytes
from anon.crypto.labels import BATCH

# So many bytes bound the error at 2^-128; longer ones would only cost time.
COEFFICIENT_SIZE = 16


@frozen
class Fold:
    """One equation e(Abar, W) = e(Bbar, BP2), and its place in the batch."""

    place: int
    a_bar: G1
    b_bar: G1


def failures(key: G2, folds: Sequence[Fold], random_bytes: Callable[[int], bytes]) -> list[int]:
    """The places of the equations that do not hold; empty for an empty batch.

    One pairing product when all hold; else the batch is halved, about log2(n) to 2 * log2(n) products for one failure
    and at most 2n if all fail. Points must lie in the prime-order subgroup.
    """
    if not folds:
        return []
    coefficients = fresh_coefficients(folds, random_bytes)

    def holds(part: slice) -> bool:
        return _holds(key, folds[part], coefficients[part])

    return [folds[index].place for index in search(holds, len(folds))]


def fresh_coefficients(folds: Sequence[Fold], random_bytes: Callable[[int], bytes]) -> list[Scalar]:
    """One 128-bit coefficient each, unknown when the tokens were made: from fresh randomness and from all the points.

    Fixed or guessable ones would let two bad tokens cancel each other's errors.
    """
    shown = b"".join(encode_g1(fold.a_bar) + encode_g1(fold.b_bar) for fold in folds)
    return coefficients_for(BATCH, len(folds), shown, random_bytes)


def coefficients_for(
    label: bytes, count: int, shown: bytes, random_bytes: Callable[[int], bytes]
) -> list[Scalar]:
    """`count` coefficients of 128 bits: from 32 fresh random bytes, and hedged by all that is `shown`."""
    drawn = fresh_bytes(label, COEFFICIENT_SIZE * count, shown, random_bytes)
    return [scalar_from_uniform(drawn[at : at + COEFFICIENT_SIZE]) for at in range(0, len(drawn), COEFFICIENT_SIZE)]


def search(holds: Callable[[slice], bool], count: int, most: int | None = None) -> list[int]:
    """The places below `count`, at least 1, at which an equation fails, by halving; the first `most` of them if given.

    `holds(part)` says whether the fold of a part holds, and for a part of one place whether its equation does.
    """
    return _search(holds, 0, count, most)


def _search(
    holds: Callable[[slice], bool], start: int, stop: int, most: int | None, known_bad: bool = False
) -> list[int]:
    if not known_bad and holds(slice(start, stop)):
        return []
    if stop - start == 1:
        return [start]
    middle = (start + stop) // 2
    first = _search(holds, start, middle, most)
    if most is not None and len(first) >= most:
        return first[:most]
    # A product of the two halves that is not one, with a first half that is, leaves the second.
    left = None if most is None else most - len(first)
    return first + _search(holds, middle, stop, left, known_bad=not first)


def _holds(key: G2, folds: Sequence[Fold], coefficients: Sequence[Scalar]) -> bool:
    if len(folds) == 1:
        return pairing_product_is_one([(folds[0].a_bar, key), (folds[0].b_bar, NEGATED_GENERATOR_G2)])
    a_bar = multiexp([fold.a_bar for fold in folds], coefficients)
    b_bar = multiexp([fold.b_bar for fold in folds], coefficients)
    return pairing_product_is_one([(a_bar, key), (b_bar, NEGATED_GENERATOR_G2)])
