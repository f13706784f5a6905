"""Privacy-loss distributions: what several independent releases lose together, as a curve of (epsilon, delta).

The guarantee stays the plain sum of pure epsilons (`anon.ldp.composition`); a curve says how unlikely it is that so
much is lost. Losses are whole multiples of a step in nano-epsilon, probabilities whole multiples of 2**-96. Both are
rounded up, so a curve is never below the truth. Sources: Koskela et al. 2020, arXiv 2006.01684; Doroshenko et al. 2022,
"Connect the dots", arXiv 2207.04380. Pure Python: lists are multiplied as long integers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from math import ceil, exp, expm1, fsum, gcd
from typing import Self

from attrs import field

from anon.ldp.epsilon import NANO
from anon.values import frozen

_BITS = 96
_ONE = 1 << _BITS
_FINEST = 40_000  # most multiples of the step between the lowest and the highest loss
_LAST_DIGITS = 1e-13  # of a curve of doubles drawn by a few hundred points
_OUTWARD = 1 + 1e-9  # for sums of doubles, whose error is far smaller


def _whole(chance: float) -> int:
    return int(chance * _ONE) + 1 if chance > 0 else 0


@frozen
class Loss:
    """How much is lost with which probability: `masses` over 2**96 by loss in nano-epsilon, and `infinite`, over 2**96,
    that anything may be. Dominates the real release: its delta is nowhere smaller."""

    masses: Mapping[int, int] = field(repr=False)
    infinite: int = 0

    @classmethod
    def of_response(cls, epsilon: int, signal: float) -> Self:
        """Of one report of a mechanism here: +epsilon with probability `signal`, -epsilon with e**-epsilon times that,
        or nothing. Epsilon in nano-epsilon, rounded up; then the pair so described dominates that of the true epsilon,
        because delta(t) = signal (1 - e**(t - epsilon)) only grows."""
        if epsilon <= 0 or not 0 < signal * (1 + exp(-epsilon / NANO)) <= 1 + 1e-9:
            raise ValueError("a loss needs a positive epsilon and a signal with which its probabilities sum to 1")
        back = signal * exp(-epsilon / NANO)
        return cls({epsilon: _whole(signal), 0: _whole(max(1 - signal - back, 0.0)), -epsilon: _whole(back)})

    def delta(self, epsilon: float) -> float:
        """Delta at any epsilon, in nats: the expectation of (1 - e**(epsilon - loss))_+."""
        # The function expm1 keeps the digits that 1 - exp(x) loses near 0.
        above = (
            -mass / _ONE * expm1(epsilon - loss / NANO) for loss, mass in self.masses.items() if loss > epsilon * NANO
        )
        return min((fsum(above) + self.infinite / _ONE) * _OUTWARD, 1.0)

    @property
    def highest(self) -> float:
        """The largest finite loss, in nats."""
        return max(self.masses) / NANO


def compose(losses: Sequence[Loss]) -> Loss:
    """The joint loss of independent releases, also when later ones were chosen after seeing earlier ones.

    Eight packets of epsilon 1 have epsilon 8 together, and are very unlikely to lose so much:

    >>> together = compose([Loss.of_response(NANO, 0.4)] * 8)
    >>> together.highest
    8.0
    >>> [round(together.delta(epsilon), 3) for epsilon in (2.0, 4.0, 6.0)]
    [0.325, 0.072, 0.004]
    """
    if not losses:
        return Loss({0: _ONE})
    step = _common_step(losses)
    lists = [_on_lattice(loss, step) for loss in losses]
    lowest = sum(low for low, _ in lists)
    # Short ones first: then most products are of short lists.
    masses = reduce(_convolve, sorted((list(masses) for _, masses in lists), key=len))
    kept = {(lowest + index) * step: mass for index, mass in enumerate(masses) if mass}
    return Loss(kept, sum(distribution.infinite for distribution in losses))


def connect(curve: Callable[[float], float], step: int, count: int) -> Loss:
    """The loss of a symmetric pair of distributions whose delta is at most `curve`, by its values at 0, step, 2 step...

    Between the points the largest convex curve below them is drawn straight in e**epsilon; the true one, being convex
    too, lies below that. Beyond the last point everything may be lost.
    """
    right = [(index, min(curve(index * step / NANO), 1.0)) for index in range(count + 1)]
    left = [(-index, 1 - exp(-index * step / NANO) * (1 - delta)) for index, delta in right[:0:-1]]
    points = _hull([(exp(index * step / NANO), delta, index) for index, delta in (*left, *right)])
    slopes = [(low[1] - high[1]) / (high[0] - low[0]) for low, high in pairwise(points)]
    slopes = [max(slope, 0.0) for slope in slopes] + [0.0]
    masses = {}
    for (factor, _, index), (before, after) in zip(points[1:], pairwise(slopes), strict=True):
        masses[index * step] = _whole(max(before - after, 0.0) * factor)
    infinite = _whole(points[-1][1] + _LAST_DIGITS)
    rest = _ONE - infinite - sum(masses.values())
    masses[points[0][2] * step] = masses.get(points[0][2] * step, 0) + max(rest, 0)
    return Loss({loss: mass for loss, mass in masses.items() if mass}, infinite)


def _hull(points: list[tuple[float, float, int]]) -> list[tuple[float, float, int]]:
    """The lower convex hull of points in order of their first coordinate."""
    kept: list[tuple[float, float, int]] = []
    for point in points:
        while len(kept) >= 2 and _not_below(kept[-2], kept[-1], point):
            kept.pop()
        kept.append(point)
    return kept


def _not_below(
    first: tuple[float, float, int], middle: tuple[float, float, int], last: tuple[float, float, int]
) -> bool:
    return (middle[1] - first[1]) * (last[0] - first[0]) >= (last[1] - first[1]) * (middle[0] - first[0])


def _common_step(losses: Sequence[Loss]) -> int:
    exact = gcd(*(loss for distribution in losses for loss in distribution.masses)) or 1
    span = sum(max(distribution.masses) - min(distribution.masses) for distribution in losses)
    return exact if span <= _FINEST * exact else ceil(span / _FINEST)


def _on_lattice(loss: Loss, step: int) -> tuple[int, list[int]]:
    """The lowest multiple of the step and the masses from there on; a loss between two multiples becomes the upper."""
    rounded: dict[int, int] = {}
    for point, mass in loss.masses.items():
        rounded[-(-point // step)] = rounded.get(-(-point // step), 0) + mass
    low, high = min(rounded), max(rounded)
    return low, [rounded.get(index, 0) for index in range(low, high + 1)]


def _convolve(first: list[int], second: list[int]) -> list[int]:
    """The masses of the sum, each rounded up."""
    short, long = sorted((first, second), key=lambda masses: sum(map(bool, masses)))
    products = _shift_and_add(short, long) if sum(map(bool, short)) <= 8 else _as_integers(short, long)
    return [-(-product >> _BITS) for product in products]


def _shift_and_add(short: list[int], long: list[int]) -> list[int]:
    product = [0] * (len(short) + len(long) - 1)
    for shift, factor in enumerate(short):
        if factor:
            for index, mass in enumerate(long):
                if mass:
                    product[shift + index] += factor * mass
    return product


def _as_integers(short: list[int], long: list[int]) -> list[int]:
    """The product of two polynomials by one product of integers in which every coefficient has room (Kronecker)."""
    # Room for a sum of products of two masses: no coefficient carries into the next.
    room = (2 * _BITS + len(short).bit_length() + 8) // 8
    packed = [
        int.from_bytes(b"".join(mass.to_bytes(room, "little") for mass in masses), "little") for masses in (short, long)
    ]
    count = len(short) + len(long) - 1
    spelled = (packed[0] * packed[1]).to_bytes(room * count, "little")
    return [int.from_bytes(spelled[start : start + room], "little") for start in range(0, room * count, room)]
