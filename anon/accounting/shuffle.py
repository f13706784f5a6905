"""How well honest reports hide one among them: upper bounds of the hockey-stick divergence after a shuffle.

Two inputs x, x' of one peer, all other inputs fixed and known. Each other honest report is, with probability `rate`,
drawn from a distribution that does not depend on its sender; whoever looks is told which are not, and removes them.
Left are T reports, one of them the peer's, and only how many support x (A) and x' (B) tells x from x'. With
c = e**epsilon0 - 1,

    delta(epsilon) = E[((T + c A) - e**epsilon (T + c B))_+] / (h rate (1 + c P(supports x))),  T ~ Binomial(h, rate),

for h honest reports, the peer's own among them. Sources: section 5 of Balle, Bell, Gascon, Nissim 2019, arXiv
1903.02837, for the privacy blanket. Section 3 of Feldman, McMillan, Talwar 2021, arXiv 2012.12803, for clones. All in
pure Python.

Rounding is outward. Numbers of reports are replaced by coarser ones that have the same mean and spread further, or that
hide less; the expectation is convex in them. The mass that is cut off at both ends is added back. See `CrowdCurve`.
"""

from __future__ import annotations

from itertools import accumulate
from math import exp, floor, fsum, sqrt
from typing import Final

from attrs import field

from anon.values import frozen

SLACK_IN_EPSILON: Final = 1e-7
"""Covers every difference between the integer probabilities and the doubles here, each below a tenth of it in log."""

_NEGLIGIBLE = 1e-20
_SET_STEP, _SHAPE_STEP = 0.3, 0.7  # widths of the coarser grids, in standard deviations
_FEW = 48  # values that need no coarser grid


@frozen
class Crowd:
    """The reports that hide a peer. `rate`: the probability that an honest report is drawn independently of its sender.
    `only`: the probability that such a report supports x but not x', and equally the reverse. `both`: that it supports
    both. `exposed`: the probability that the peer's own report says anything about x or x' at all. The observer is told
    if it does not."""

    rate: float
    only: float
    both: float = 0.0
    exposed: float = 1.0


Pmf = tuple[int, list[float]]
"""The first value and the probabilities of it and the next ones."""


def binomial(n: int, chance: float) -> Pmf:
    """Binomial(n, chance), cut where it falls below 1e-20 of its greatest; normalised, so nowhere below the truth.

    Ratios of neighbours are multiplied up from the mode: no logarithm of a factorial is taken, whose last digits fail.
    """
    mode = min(int((n + 1) * chance), n)
    if chance <= 0 or n == 0 or chance >= 1:
        return (n if chance >= 1 else 0), [1.0]
    odds = chance / (1 - chance)
    above, below = [1.0], []
    for value in range(mode, n):
        above.append(above[-1] * (n - value) / (value + 1) * odds)
        if above[-1] < _NEGLIGIBLE:
            break
    last = 1.0
    for value in range(mode, 0, -1):
        last *= value / (n - value + 1) / odds
        below.append(last)
        if last < _NEGLIGIBLE:
            break
    whole = below[::-1] + above
    total = fsum(whole)
    return mode - len(below), [weight / total for weight in whole]


Nodes = list[tuple[float, float]]
"""Values with their probabilities."""


def spread(values: Nodes, step: float) -> Nodes:
    """The values moved to multiples of `step`, each split between its two neighbours so that its mean stays.

    The expectation of no convex function becomes smaller.
    """
    masses: dict[int, float] = {}
    for value, chance in values:
        low = floor(value / step)
        share = value / step - low
        masses[low] = masses.get(low, 0.0) + chance * (1 - share)
        masses[low + 1] = masses.get(low + 1, 0.0) + chance * share
    return [(index * step, chance) for index, chance in sorted(masses.items()) if chance > 0]


def _shape(n: int, chance: float, scale: float) -> Nodes:
    """scale x (Binomial(n, chance) - its mean), spread."""
    deviation = sqrt(n * chance * (1 - chance)) if 0 < chance < 1 else 0.0
    if deviation == 0 or scale == 0:
        return [(0.0, 1.0)]
    start, chances = binomial(n, chance)
    around = [(scale * (start + index - n * chance), probability) for index, probability in enumerate(chances)]
    return around if len(around) <= _FEW else spread(around, max(_SHAPE_STEP * deviation, 1.0) * abs(scale))


@frozen
class BinomialCall:
    """E(U - u)_+ for U ~ Binomial(size, 1/2), exact between whole numbers, where it is linear."""

    size: int
    _from: int = field(init=False)
    _values: list[float] = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        start, chances = binomial(self.size, 0.5)
        tails = list(accumulate(reversed(chances)))  # P(U >= last), P(U >= last - 1), ...
        calls = [0.0, *accumulate(tails)]  # at last, last - 1, ...: sums of the tails above
        first = self.size // 2 - 1
        kept = start + len(chances) - 1 - first
        object.__setattr__(self, "_from", first)
        object.__setattr__(self, "_values", calls[: kept + 1][::-1])

    def at(self, point: float) -> float:
        """The value at u >= size / 2, or below it by the symmetry of U."""
        if point < self.size / 2:
            return self.size / 2 - point + self.at(self.size - point)
        offset = point - self._from
        low = int(offset)
        if low + 1 >= len(self._values):
            return self._values[-1] if low < len(self._values) else 0.0
        share = offset - low
        return self._values[low] * (1 - share) + self._values[low + 1] * share


@frozen
class _Bucket:
    """Numbers S of reports that support just one of x and x', taken together: the smallest, and how much it weighs."""

    call: BinomialCall
    weight: float
    offsets: Nodes


@frozen
class CrowdCurve:
    """An upper bound of delta as a function of epsilon >= 0, for `honest` reports and a local epsilon0 of ln(growth).

    S reports support exactly one of x and x', of these U ~ Binomial(S, 1/2) x; the T - S others give K = T + c (those
    that support both). The integrand (K + c U - t (K + c (S - U)))_+ is convex and falls in K. So K is replaced by a
    sum with the same mean and a wider spread. Over a bucket S1..S2 its expectation G obeys G(S, K) <= (S2 / S1) G(S1, K
    S1 / S2) for the least K. The share of the peer's own report grows with S, and coins fewer in number hide less.
    """

    crowd: Crowd
    growth: float
    honest: int
    _buckets: list[_Bucket] = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_buckets", list(self._gather()))

    def delta(self, epsilon: float) -> float:
        """The bound at epsilon >= 0; at most 1."""
        if epsilon < 0:
            raise ValueError("a central epsilon is not negative")
        # Delta falls in epsilon, so its value a little below is a bound here.
        factor, gain = exp(max(epsilon - 2 * SLACK_IN_EPSILON, 0.0)), self.growth - 1
        half, pull = factor / (1 + factor), (factor - 1) / (gain * (1 + factor))
        total = 0.0
        for bucket in self._buckets:
            call, start = bucket.call.at, half * bucket.call.size
            total += bucket.weight * sum([chance * call(start + pull * offset) for offset, chance in bucket.offsets])
        found = self._per_report * gain * (1 + factor) * total
        return min(1.0, found * exp(SLACK_IN_EPSILON) + self._cut_off)

    @property
    def _per_report(self) -> float:
        crowd = self.crowd
        mean = crowd.rate * (1 + (self.growth - 1) * (crowd.only + crowd.both))
        return crowd.exposed / (self.honest * mean)

    @property
    def _cut_off(self) -> float:
        """More than all probabilities below 1e-20 together can contribute: fewer than 10**7 of them, growth each."""
        return 3e-13 * self.growth * self.crowd.exposed / min(self.crowd.rate, 1.0)

    def _gather(self) -> list[_Bucket]:
        crowd, honest = self.crowd, self.honest
        single = min(2 * crowd.rate * crowd.only, 1.0)
        start, chances = binomial(honest, single)
        rest = max(1 - single, 1e-300)
        both, none = crowd.rate * crowd.both / rest, crowd.rate * (1 - 2 * crowd.only - crowd.both) / rest
        none = max(none, 0.0)
        mean = none + both * self.growth
        shape = _offset_shape(honest - start, both, none, self.growth)
        width = _SET_STEP * sqrt(honest * single * (1 - single))
        found, index = [], 0
        while index < len(chances):
            first = start + index
            last = index + max(1, int(min(width, first / 20)))
            mass = fsum(chances[index:last])
            final = start + min(last, len(chances)) - 1
            index = last
            if first and mass:
                least = min(first * (1 - mean), final * (1 - mean)) + honest * mean
                offsets = [((least + off) * first / final, probability) for off, probability in shape]
                found.append(_Bucket(BinomialCall(first), mass * final / first, offsets))
        return found


def _offset_shape(others: int, both: float, none: float, growth: float) -> Nodes:
    """The sum over so many reports of growth (probability `both`) or 1 (probability `none`), less its mean, spread.

    Given the number W of the former, the number of the latter is Binomial(others - W, none'); a binomial of all others,
    moved to the right mean, spreads further. So the sum is (growth - none') W plus an independent shape.
    """
    conditional = min(none / (1 - both), 1.0) if both < 1 else 0.0
    first = _shape(others, both, growth - conditional)
    second = _shape(others, conditional, 1.0)
    if len(first) == 1 or len(second) == 1:
        return second if len(first) == 1 else first
    sums = [(value + other, chance * share) for value, chance in first for other, share in second]
    deviation = sqrt(fsum(value * value * chance for value, chance in sums))
    return sums if len(sums) <= _FEW else spread(sums, _SHAPE_STEP * deviation)
