"""A search for the pair of neighbouring data sets that an exact sum is moved by most: it climbs, value by value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

Genes = list[Any]


def summed(peers: Sequence[list[int]]) -> list[int]:
    return [sum(entries) for entries in zip(*peers, strict=True)]


def apart(one: Sequence[int], other: Sequence[int]) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def climbed(
    starts: Sequence[Genes], choices: Sequence[Any], value: Callable[[Genes], float], limit: float, steps: int = 120
) -> float:
    """The largest value found; each one that is seen on the way is held to the limit."""
    spring, best = Random(11), 0.0
    for start in starts:
        here, height = list(start), value(start)
        assert height <= limit
        for _ in range(steps):
            there = list(here)
            for _ in range(spring.choice((1, 1, 2))):
                there[spring.randrange(len(there))] = spring.choice(choices)
            found = value(there)
            assert found <= limit
            if found >= height:
                here, height = there, found
        best = max(best, height)
    return best
