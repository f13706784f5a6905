"""Many points of the curve tested for the prime-order subgroup at once, by sums over random subsets.

The points outside are those whose class in E(Fp) / G1 is not neutral. Let one of the given points be such a one. Fix of
a random subset everything but the bit of this point. The two sums that are left differ by the point, so at most one of
them lies in G1. A subset thus misses it with probability 1/2 at most, and 128 independent ones with 2^-128.

The smallest order of a class is 3. So one sum with large random factors would be no test: an order of 3 makes it
vanish for a third of the factors, however large they are.

The 128 sums are computed eight at a time. Each point is added to one of 256 sums, by eight of its bits, and each of the
eight subsets consists of half of those.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self, TypeVar

BYTES_EACH = 16
"""Random bytes for each point: a bit for each of 128 subsets."""


class CurvePoint(Protocol):
    """A point of the curve, in the subgroup or not. Its addition holds for every pair of points."""

    def __add__(self, other: Self, /) -> Self: ...

    def is_in_subgroup(self) -> bool: ...


Point = TypeVar("Point", bound=CurvePoint)


def all_in_subgroup(points: Sequence[Point], identity: Point, randomness: bytes) -> bool:
    """True if all points lie in the subgroup; if one does not, with probability 2^-128 at most.

    `randomness`: 16 uniform bytes for each point, which could not be known when the points were chosen. Raises
    `ValueError` for another length.
    """
    count = len(points)
    if len(randomness) != BYTES_EACH * count:
        raise ValueError(f"expected {BYTES_EACH * count} random bytes, got {len(randomness)}")
    # A range with a step of 0 is a ValueError; no points have no sums.
    for start in range(0, len(randomness), max(count, 1)):
        classes = [identity] * 256
        for point, byte in zip(points, randomness[start : start + count], strict=True):
            classes[byte] = classes[byte] + point
        if not all(total.is_in_subgroup() for total in _totals(classes, identity)):
            return False
    return True


def _totals(classes: Sequence[Point], identity: Point) -> list[Point]:
    """For each bit of a class's number, the sum of the classes in which it is set."""
    totals = []
    while len(classes) > 1:
        half = len(classes) // 2
        without, having = classes[:half], classes[half:]
        totals.append(sum(having[1:], start=having[0]))
        classes = [less + more for less, more in zip(without, having, strict=True)]
    return totals
