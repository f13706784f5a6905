"""Every central figure is a bound: exact enumeration of all shuffled outputs, in fractions, for few peers and
categories.

For each mechanism, each pair of inputs of one peer and each data set of the others, the hockey-stick divergence of the
multisets of reports is computed exactly and compared with what `anon.accounting.shuffle` says.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product

import numpy as np
import pytest
from scipy.stats import binom

from anon.accounting.central import SlotCurve, crowds
from anon.accounting.shuffle import SLACK_IN_EPSILON, BinomialCall, Crowd, CrowdCurve, binomial, spread
from anon.ldp import SCALE, Mechanism, RawCategory, from_spec
from anon.ldp.subset import SubsetSelection
from tests.support.tries import every

UNIT = SCALE // 2**20

Law = dict[bytes, Fraction]
Multisets = dict[tuple[tuple[bytes, int], ...], Fraction]


def law(rows: list[tuple[Mechanism, int]], value: int) -> Law:
    """The exact probability of each possible report, with its survey's number. The value is cut to fit a row."""
    total = sum(weight for _, weight in rows)
    found: Law = {}
    for number, (mechanism, weight) in enumerate(rows):
        for data in spellings(mechanism):
            category = RawCategory(value % mechanism.m, mechanism.m)
            chance = mechanism.likelihood(category, mechanism.parse(data))
            # Sets are even to within 2**-64; evened out here so that the fractions stay small.
            found[bytes([number]) + data] = Fraction(weight, total) * chance.limit_denominator(2**30)
    whole = sum(found.values())
    return {data: chance / whole for data, chance in found.items()}


def spellings(mechanism: Mechanism) -> list[bytes]:
    if mechanism.name == "krr":
        return [index.to_bytes(2, "big") for index in range(mechanism.m)]
    sizes = {mechanism.w} if isinstance(mechanism, SubsetSelection) else set(range(mechanism.m + 1))
    shift = -mechanism.m % 8
    return [(bits << shift).to_bytes(1, "big") for bits in range(2**mechanism.m) if bits.bit_count() in sizes]


def shuffled(laws: list[Law]) -> Multisets:
    """The exact law of the multiset of one report of each."""
    reached: dict[tuple[tuple[bytes, int], ...], Fraction] = {(): Fraction(1)}
    for one in laws:
        after: dict[tuple[tuple[bytes, int], ...], Fraction] = {}
        for multiset, chance in reached.items():
            for data, likely in one.items():
                counted = Counter(dict(multiset))
                counted[data] += 1
                key = tuple(sorted(counted.items()))
                after[key] = after.get(key, Fraction(0)) + chance * likely
        reached = after
    return reached


def hockey_stick(first: Multisets, second: Multisets, factor: Fraction) -> Fraction:
    return sum(
        (max(chance - factor * second.get(key, Fraction(0)), Fraction(0)) for key, chance in first.items()), Fraction(0)
    )


def worst(rows: list[tuple[Mechanism, int]], n: int, factors: list[Fraction]) -> list[Fraction]:
    """The largest divergence over the others' data, between inputs 0 and 1 of the first peer (and the reverse)."""
    values = max(mechanism.m for mechanism, _ in rows)
    laws = [law(rows, value) for value in range(values)]
    found = [Fraction(0)] * len(factors)
    for others in combinations_with_replacement(range(values), n - 1):
        first, second = (shuffled([laws[other] for other in others] + [laws[own]]) for own in (0, 1))
        found = [
            max(worse, hockey_stick(first, second, f), hockey_stick(second, first, f))
            for worse, f in zip(found, factors, strict=True)
        ]
    return found


def krr(m: int, odds: int) -> Mechanism:
    """k-RR with p / q close to `odds`, of small fractions."""
    q = SCALE // (odds + m - 1) // UNIT * UNIT
    return from_spec("krr", m, SCALE - (m - 1) * q, q)


def unary(m: int, p: Fraction, q: Fraction) -> Mechanism:
    return from_spec("pq", m, int(p * SCALE), int(q * SCALE))


def subset(m: int, w: int, p: Fraction) -> Mechanism:
    q = (w * SCALE - int(p * SCALE)) // (m - 1)
    return from_spec("subset", m, w * SCALE - (m - 1) * q, q)


HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)
FACTORS = [Fraction(1), Fraction(9, 8), Fraction(5, 4), Fraction(3, 2), Fraction(2), Fraction(3)]

CASES: dict[str, tuple[list[tuple[Mechanism, int]], list[int]]] = {
    "k-RR of 2": ([(krr(2, 3), 1)], [1, 2, 5, 8]),
    "k-RR of 3": ([(krr(3, 4), 1)], [1, 2, 4, 6]),
    "k-RR of 4": ([(krr(4, 8), 1)], [2, 5]),
    "k-RR of 4, quiet": ([(krr(4, 2), 1)], [5]),
    "one-time RAPPOR of 2": ([(from_spec("rappor", 2, 3 * SCALE // 4, SCALE // 4), 1)], [1, 2, 4]),
    "unary of 2": ([(unary(2, HALF, QUARTER), 1)], [2, 4, 5]),
    "unary of 3": ([(unary(3, HALF, QUARTER), 1)], [1, 2, 3]),
    "2 of 3": ([(subset(3, 2, Fraction(3, 4)), 1)], [2, 4]),
    "2 of 4": ([(subset(4, 2, Fraction(3, 4)), 1)], [1, 3]),
    "two surveys alike": ([(krr(2, 3), 1), (krr(2, 3), 3)], [2, 4]),
    "two surveys of two sizes": ([(krr(2, 3), 1), (krr(3, 3), 1)], [2, 3]),
    "two surveys of two epsilons": ([(krr(2, 2), 1), (krr(2, 5), 1)], [2, 4]),
    "k-RR beside unary": ([(krr(2, 3), 2), (unary(2, HALF, QUARTER), 1)], [2, 3]),
}


@pytest.mark.parametrize("case", every(3, CASES))
def test_every_bound_is_a_bound(case: str) -> None:
    rows, sizes = CASES[case]
    for n in sizes:
        exact = worst(rows, n, FACTORS)
        curve = SlotCurve.of(rows, n)
        for factor, true in zip(FACTORS, exact, strict=True):
            epsilon = math.log(factor)
            for crowd in crowds(rows):
                stated = CrowdCurve(crowd, math.exp(curve.local), n).delta(epsilon)
                assert stated >= float(true), (n, factor, crowd)
            assert curve.delta(epsilon) >= float(true) * (1 - 1e-12), (n, factor)


@pytest.mark.parametrize("case", ["two surveys of two sizes", "k-RR beside unary", "two surveys of two epsilons"])
def test_every_ordered_pair_of_inputs_is_bounded_by_one_curve(case: str) -> None:
    """Rows of a slot may tell the two inputs apart or not: 0 and 2 are one category to a row of two."""
    rows, n = CASES[case][0], 3
    values = range(max(mechanism.m for mechanism, _ in rows))
    laws, curve = [law(rows, value) for value in values], SlotCurve.of(rows, n)
    for others in combinations_with_replacement(values, n - 1):
        views = [shuffled([laws[other] for other in others] + [laws[own]]) for own in values]
        for one, other in permutations(views, 2):
            for factor in FACTORS:
                assert curve.delta(math.log(factor)) >= float(hockey_stick(one, other, factor)) * (1 - 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("centre", [Fraction(1, 1000), Fraction(1, 3), Fraction(999, 1000)])
def test_one_bit_packets_hide_as_the_response_beneath_them(centre: Fraction) -> None:
    """Others and the peer itself answer mixtures of the two signs, as rounding makes them: never past the signs'
    bound."""
    mechanism, n = krr(2, 3), 4
    p, q = Fraction(mechanism.p, SCALE), Fraction(mechanism.q, SCALE)
    laws: list[Law] = []
    for sign, label in product((-1, 1), (0, 1)):
        plus = (1 + sign * (label - centre) / max(centre, 1 - centre)) / 2
        chance = plus * p + (1 - plus) * q
        laws.append({b"+": chance, b"-": 1 - chance})
    curve = SlotCurve.of([(mechanism, 1)], n)
    for others in combinations_with_replacement(laws, n - 1):
        views = [shuffled([*others, own]) for own in laws]
        for one, other in permutations(views, 2):
            for factor in FACTORS:
                assert curve.delta(math.log(factor)) >= float(hockey_stick(one, other, factor)) * (1 - 1e-12)


def test_the_bound_of_binary_response_among_few_is_nearly_exact() -> None:
    """The blanket is all there is to two categories when the others are as in the worst case: little may be lost."""
    rows = [(krr(2, 3), 1)]
    for n in (5, 8):
        exact, curve = worst(rows, n, FACTORS[:4]), SlotCurve.of(rows, n)
        for factor, true in zip(FACTORS[:4], exact, strict=True):
            assert curve.delta(math.log(factor)) <= 2.5 * float(true) + 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("crowd", [Crowd(0.6, 0.25), Crowd(0.4, 0.5), Crowd(0.7, 0.2, 0.1), Crowd(0.5, 0.1, 0.05, 0.4)])
@pytest.mark.parametrize("honest", [1, 2, 5, 12, 18])
def test_the_coarse_curve_is_above_the_exact_sum_and_close_to_it(crowd: Crowd, honest: int) -> None:
    growth = 3.0
    curve = CrowdCurve(crowd, growth, honest)
    for factor in (1.0, 1.1, 1.4, 2.0, 2.9):
        true, stated = exact_sum(crowd, growth, honest, factor), curve.delta(math.log(factor))
        assert true <= stated <= 3 * true + 0.2 / honest


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "only", "growth"), [(0.6, 0.25, 3.0), (0.5, 0.5, 3.0), (0.8, 0.06, 2.0)])
def test_among_100_the_curve_is_within_3_percent_of_epsilon_of_the_exact_sum(
    rate: float, only: float, growth: float
) -> None:
    curve, gain, honest = CrowdCurve(Crowd(rate, only), growth, 100), growth - 1, 100
    first, second = np.meshgrid(np.arange(honest + 1), np.arange(honest + 1), indexing="ij")

    def exact(epsilon: float) -> float:
        total = 0.0
        for hidden in range(25, honest + 1):
            law = binom.pmf(first, hidden, only) * binom.pmf(second, np.maximum(hidden - first, 0), only / (1 - only))
            law = np.where(first + second <= hidden, law, 0.0)
            excess = np.maximum(hidden + gain * first - math.exp(epsilon) * (hidden + gain * second), 0)
            total += float(binom.pmf(hidden, honest, rate) * (law * excess).sum())
        return total / (honest * rate * (1 + gain * only))

    for epsilon in (0.1, 0.25):
        assert exact(epsilon) <= curve.delta(epsilon) <= exact(epsilon * 0.97) * 1.001 + 1e-9


def exact_sum(crowd: Crowd, growth: float, honest: int, factor: float) -> float:
    """The formula of the module, summed over everything."""
    gain, total = growth - 1, 0.0
    for hidden in range(1, honest + 1):
        among = math.comb(honest, hidden) * crowd.rate**hidden * (1 - crowd.rate) ** (honest - hidden)
        for both, first, second in product(range(hidden + 1), repeat=3):
            none = hidden - both - first - second
            if none < 0 or (both and not crowd.both):
                continue
            ways = math.factorial(hidden) / math.prod(map(math.factorial, (both, first, second, none)))
            left = max(1 - 2 * crowd.only - crowd.both, 0.0)
            chance = ways * crowd.both**both * crowd.only ** (first + second) * left**none
            a, b = both + first, both + second
            total += among * chance * max(hidden + gain * a - factor * (hidden + gain * b), 0.0)
    return crowd.exposed * total / (honest * crowd.rate * (1 + gain * (crowd.only + crowd.both)))


@pytest.mark.parametrize(("n", "chance"), [(1, 0.5), (40, 0.03), (100, 0.4), (1_000_000, 0.37)])
def test_binomials_are_binomial(n: int, chance: float) -> None:
    start, chances = binomial(n, chance)
    assert math.fsum(chances) == pytest.approx(1, abs=1e-13)
    mean = math.fsum((start + index) * one for index, one in enumerate(chances))
    assert mean == pytest.approx(n * chance, rel=1e-10)
    if n <= 1000:
        exact = [
            math.comb(n, start + i) * Fraction(chance) ** (start + i) * (1 - Fraction(chance)) ** (n - start - i)
            for i in range(len(chances))
        ]
        assert all(one == pytest.approx(float(true), rel=1e-10) for one, true in zip(chances, exact, strict=True))


def test_calls_are_expectations() -> None:
    for size in (1, 2, 7, 40):
        call = BinomialCall(size)
        for point in (size / 2, size / 2 + 0.3, size - 0.5, size, size + 2, size / 2 - 0.7):
            true = sum(math.comb(size, u) * max(u - point, 0) for u in range(size + 1)) / 2**size
            assert call.at(point) == pytest.approx(true, rel=1e-12, abs=1e-18), (size, point)


def test_spreading_keeps_the_mean_and_lowers_no_convex_expectation() -> None:
    values = [(value, 1 / 11) for value in range(-5, 6)]
    coarse = spread([(float(v), c) for v, c in values], 2.3)
    assert math.fsum(v * c for v, c in coarse) == pytest.approx(0, abs=1e-12)
    for bend in (-3.0, -0.4, 0.0, 1.7):
        assert sum(c * max(v - bend, 0) for v, c in coarse) >= sum(c * max(v - bend, 0) for v, c in values) - 1e-12


def test_the_slack_is_small_beside_what_is_printed() -> None:
    assert 3 * SLACK_IN_EPSILON < 1e-5
