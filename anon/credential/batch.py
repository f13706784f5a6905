"""Random coefficients for many equations that are folded into one, and the search for those that fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Self, TypeVar

from anon.crypto.curve import G1, G2, NEGATED_GENERATOR_G2, Scalar, pairing_product_is_one, scalar_from_uniform
from anon.crypto.expand_message import fresh_bytes
from anon.values import frozen

# So many bytes bound the error at 2^-128; longer ones would only cost time.
COEFFICIENT_SIZE = 16


def coefficients_for(
    label: bytes, count: int, shown: bytes, random_bytes: Callable[[int], bytes]
) -> list[Scalar]:
    """`count` coefficients of 128 bits: from 32 fresh random bytes, and hedged by all that is `shown`.

    Fixed or guessable ones would let two bad tokens cancel each other's errors.
    """
    drawn = fresh_bytes(label, COEFFICIENT_SIZE * count, shown, random_bytes)
    return [scalar_from_uniform(drawn[at : at + COEFFICIENT_SIZE]) for at in range(0, len(drawn), COEFFICIENT_SIZE)]


class Difference(Protocol):
    """A sum over a part, which is another's less a third's."""

    def __sub__(self, part: Self, /) -> Self: ...


Sums = TypeVar("Sums", bound=Difference)


@frozen
class FoldedPairings:
    """Both sums of folded pairing equations e(left, W) = e(right, BP2)."""

    left: G1
    right: G1

    def __sub__(self, part: FoldedPairings) -> FoldedPairings:
        return FoldedPairings(self.left - part.left, self.right - part.right)

    def holds(self, key: G2) -> bool:
        """True if all folded equations hold; if one does not, with probability 2^-128 at most."""
        return pairing_product_is_one([(self.left, key), (self.right, NEGATED_GENERATOR_G2)])


def search(
    part: range,
    total: Sums,
    summed: Callable[[range], Sums],
    holds: Callable[[Sums], bool],
    most: int | None = None,
    known_bad: bool = False,
) -> list[int]:
    """The places of a part, which has at least one, at which an equation fails, by halving; the first `most` if given.

    `total`: the part's sum, as `summed` gives it. That of a second half is what the first half leaves.
    """
    if not known_bad and holds(total):
        return []
    if len(part) == 1:
        return [part.start]
    first, second = part[: len(part) // 2], part[len(part) // 2 :]
    left = summed(first)
    found = search(first, left, summed, holds, most)
    if most is not None and len(found) >= most:
        return found[:most]
    # Of two halves that do not hold together, and a first that does, the second fails.
    rest = None if most is None else most - len(found)
    return found + search(second, total - left, summed, holds, rest, known_bad=not found)
