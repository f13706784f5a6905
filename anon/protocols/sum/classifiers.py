"""A member's own classifiers: each learns from its records, and votes 0 or 1 on public rows. Votes alone leave.

Every one is total: one record or one class are enough. Rows are of norm at most 1 (`anon.protocols.vectors.transfer`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import nsmallest
from itertools import pairwise
from operator import mul, sub
from typing import Final

from anon.protocols.sum.sections import LOCAL_STRENGTH
from anon.protocols.vectors.logistic import fit

Row = Sequence[float]
Classifier = Callable[[Sequence[Row], Sequence[int], Sequence[Row]], list[int]]
"""Votes on the last rows, from rows with their labels of 0 and 1. At least one row has a label."""

NEIGHBOURS: Final = 5
DEPTH: Final = 4


def logistic(rows: Sequence[Row], labels: Sequence[int], public: Sequence[Row]) -> list[int]:
    """Regularised logistic regression; a row on the line is a no."""
    weights = fit(rows, labels, LOCAL_STRENGTH)
    return [int(sum(map(mul, weights, row)) > 0) for row in public]


def nearest(rows: Sequence[Row], labels: Sequence[int], public: Sequence[Row]) -> list[int]:
    """The majority among the nearest `NEIGHBOURS` records, or as many as there are; a tie is a no."""
    few = min(NEIGHBOURS, len(rows))
    return [int(2 * sum(label for _, label in _closest(rows, labels, row, few)) > few) for row in public]


def _closest(rows: Sequence[Row], labels: Sequence[int], row: Row, few: int) -> list[tuple[float, int]]:
    distances = (sum(map(mul, apart, apart)) for apart in (list(map(sub, own, row)) for own in rows))
    return nsmallest(few, zip(distances, labels, strict=True))


def tree(rows: Sequence[Row], labels: Sequence[int], public: Sequence[Row]) -> list[int]:
    """A tree of depth `DEPTH` by Gini impurity (Breiman and others 1984); a leaf with a tie is a no."""
    vote = _grown(list(zip(rows, labels, strict=True)), DEPTH)
    return [vote(row) for row in public]


def _grown(held: list[tuple[Row, int]], depth: int) -> Callable[[Row], int]:
    yes = sum(label for _, label in held)
    split = _best_split(held) if depth and 0 < yes < len(held) else None
    if split is None:
        answer = int(2 * yes > len(held))
        return lambda _row: answer
    at, threshold = split
    below = _grown([one for one in held if one[0][at] <= threshold], depth - 1)
    above = _grown([one for one in held if one[0][at] > threshold], depth - 1)
    return lambda row: below(row) if row[at] <= threshold else above(row)


def _best_split(held: list[tuple[Row, int]]) -> tuple[int, float] | None:
    """The column and threshold with the least impurity of both sides together; None where all rows are alike."""
    best: tuple[float, int, float] | None = None
    total, n = sum(label for _, label in held), len(held)
    for at in range(len(held[0][0])):
        ordered = sorted((row[at], label) for row, label in held)
        yes = 0
        for count, ((value, label), (following, _)) in enumerate(pairwise(ordered), 1):
            yes += label
            if value < following:
                rest = total - yes
                impurity = yes * (count - yes) / count + rest * (n - count - rest) / (n - count)
                found = (impurity, at, value)
                best = found if best is None or found < best else best
    return None if best is None else (best[1], best[2])


CLASSIFY: Final[Mapping[str, Classifier]] = {"logistic": logistic, "nearest": nearest, "tree": tree}
