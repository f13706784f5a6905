"""L2 Laplace noise: its length, its direction, and the odds of neighbours. Seeded."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import exp, hypot, sqrt
from random import Random

import pytest
from scipy import stats

from anon.protocols.sum.oblivious.l2_laplace import L2Laplace

ALARM = 1e-6
"""How often a test of these would fail if nothing were wrong."""


@pytest.mark.parametrize("length", [1, 2, 5, pytest.param(124, marks=pytest.mark.slow)])
def test_lengths_are_gamma_and_directions_even(length: int) -> None:
    scale, many = 10**6, 200
    noise, random_bytes = L2Laplace(Fraction(scale)), Random(length).randbytes
    drawn = [noise.vector(length, random_bytes) for _ in range(many)]
    lengths = [sqrt(sum(entry * entry for entry in vector)) / scale for vector in drawn]
    assert stats.kstest(lengths, stats.gamma(length).cdf).pvalue > ALARM
    if length > 1:
        # The square of one coordinate's part of the length is Beta(1/2, (d - 1)/2).
        parts = [(vector[-1] / scale / norm) ** 2 for vector, norm in zip(drawn, lengths, strict=True)]
        assert stats.kstest(parts, stats.beta(0.5, (length - 1) / 2).cdf).pvalue > ALARM
    assert stats.binomtest(sum(vector[0] > 0 for vector in drawn), many).pvalue > ALARM


@pytest.mark.slow
def test_no_outcome_tells_neighbours_apart_by_more_than_epsilon() -> None:
    """Cells of a grid, for sums (0, 0) and (3, 4), whose distance is 5: epsilon is 5 / scale, in both directions. A
    cell with n counts of 20,000 may exceed its odds by five standard errors."""
    scale, many = Fraction(10), 20_000
    noise, random_bytes = L2Laplace(scale), Random(7).randbytes
    cells = [Counter[tuple[int, int]](), Counter[tuple[int, int]]()]
    for counted, (x, y) in zip(cells, ((0, 0), (3, 4)), strict=True):
        for _ in range(many):
            first, second = noise.vector(2, random_bytes)
            counted[(first + x) // 8, (second + y) // 8] += 1
    odds, tried, near = exp(hypot(3, 4) / float(scale)), 0, 0
    for one, other in (cells, cells[::-1]):
        for cell, often in one.items():
            if often >= 50:
                tried += 1
                expected = odds * other[cell]
                assert often <= expected + 5 * sqrt(often + odds * expected), cell
                near += often > 0.8 * expected
    assert tried > 50 and near > 5  # some cells lie close to the bound, so that half the noise would be seen


@pytest.mark.parametrize("scale", [0, -1])
def test_a_scale_lies_above_zero(scale: int) -> None:
    with pytest.raises(ValueError, match="above 0"):
        L2Laplace(Fraction(scale))
