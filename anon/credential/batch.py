"""Many pairing equations folded into one, and the search for those that fail."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from attrs import frozen

from anon.credential.curve import (
    G1,
    G2,
    NEGATED_GENERATOR_G2,
    Scalar,
    encode_g1,
    multiexp,
    pairing_product_is_one,
    scalar_from_uniform,
)
from anon.labels import BATCH

SEED_SIZE = 32
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
    return _search(key, folds, fresh_coefficients(folds, random_bytes))


def fresh_coefficients(folds: Sequence[Fold], random_bytes: Callable[[int], bytes]) -> list[Scalar]:
    """One 128-bit coefficient each, unknown when the tokens were made: from fresh randomness and from all the points.

    Fixed or guessable ones would let two bad tokens cancel each other's errors.
    """
    seed = random_bytes(SEED_SIZE)
    if len(seed) != SEED_SIZE:
        raise ValueError(f"expected {SEED_SIZE} random bytes, got {len(seed)}")
    shown = b"".join(encode_g1(fold.a_bar) + encode_g1(fold.b_bar) for fold in folds)
    root = hashlib.sha256(BATCH + seed + shown).digest()
    digests = (hashlib.sha256(BATCH + root + number.to_bytes(8, "big")).digest() for number in range(len(folds)))
    return [scalar_from_uniform(digest[:COEFFICIENT_SIZE]) for digest in digests]


def _search(key: G2, folds: Sequence[Fold], coefficients: Sequence[Scalar], known_bad: bool = False) -> list[int]:
    if not known_bad and _holds(key, folds, coefficients):
        return []
    if len(folds) == 1:
        return [folds[0].place]
    middle = len(folds) // 2
    first = _search(key, folds[:middle], coefficients[:middle])
    # A product of the two halves that is not one, with a first half that is, leaves the second.
    return first + _search(key, folds[middle:], coefficients[middle:], known_bad=not first)


def _holds(key: G2, folds: Sequence[Fold], coefficients: Sequence[Scalar]) -> bool:
    if len(folds) == 1:
        return pairing_product_is_one([(folds[0].a_bar, key), (folds[0].b_bar, NEGATED_GENERATOR_G2)])
    a_bar = multiexp([fold.a_bar for fold in folds], coefficients)
    b_bar = multiexp([fold.b_bar for fold in folds], coefficients)
    return pairing_product_is_one([(a_bar, key), (b_bar, NEGATED_GENERATOR_G2)])
