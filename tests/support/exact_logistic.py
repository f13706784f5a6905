"""The gradient of regularised logistic regression with 40 digits, and the distance from the minimum that it certifies.

The objective is lambda-strongly convex. So weights lie within |gradient| / lambda of its minimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

Rows = Sequence[Sequence[float]]


def certified(
    rows: Rows, labels: Sequence[int], strength: Fraction, weights: Sequence[float], fewest: int = 1
) -> float:
    """An upper bound of the distance of these weights from the exact minimum, for labels of 0 and 1."""
    with localcontext(prec=40):
        squares = sum(entry * entry for entry in gradient(rows, labels, strength, weights, fewest))
        return float(squares.sqrt() / _decimal(strength)) if squares else 0.0


def gradient(
    rows: Rows, labels: Sequence[int], strength: Fraction, weights: Sequence[float], fewest: int = 1
) -> list[Decimal]:
    """The gradient of (1 / n) sum log(1 + exp(-y w.x)) + (lambda / 2) |w|^2 for y of -1 and 1."""
    with localcontext(prec=40):
        exact, count = [Decimal(weight) for weight in weights], max(len(rows), fewest)
        sums = [Decimal(0)] * len(exact)
        for values, label in zip(rows, labels, strict=True):
            row = [Decimal(value if label else -value) for value in values]  # y x
            margin = sum((weight * value for weight, value in zip(exact, row, strict=True)), Decimal(0))
            pull = 1 / (1 + margin.exp())  # log(1 + exp(-m)) falls by so much
            sums = [total - pull * value for total, value in zip(sums, row, strict=True)]
        return [total / count + _decimal(strength) * weight for total, weight in zip(sums, exact, strict=True)]


def _decimal(exact: Fraction) -> Decimal:
    return Decimal(exact.numerator) / exact.denominator
