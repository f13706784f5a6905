"""The cost of integer sums with noise: zCDP, (epsilon, delta), pure epsilon, and the noise that a promise needs.

All of it holds for one full noise. A sum with the noise of several parties keeps the promise while one party's noise
is unknown to the attacker: the others' is added to a value that is private already (post-processing).

Units: nano-epsilon and nano-rho are integer counts of 1e-9. Everything is rounded to the side that promises less.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, isqrt
from typing import Final

from attrs import field

from anon.accounting.gaussian_delta import LARGEST_EXACT, SMOOTHING, one_entry_delta, smoothed_delta
from anon.accounting.zcdp import (
    NanoRho,
    check_delta,
    delta_of_rho,
    epsilon_of_rho,
    gaussian_rho,
    smallest,
)
from anon.ldp.epsilon import NANO, NanoEpsilon
from anon.values import frozen

STEP: Final = Fraction(1, 1024)
"""Sigma squared is sought in steps of this size."""


@frozen
class GaussianSum:
    """One published integer vector with discrete Gaussian noise of one sigma squared on each entry.

    `sensitivity_squared`: the largest sum of squares by which one unit (a person, a record) changes the exact vector.
    `entries`: how many entries one unit changes at most. Raises `ValueError` unless all are above 0.

    >>> noisy_sum = GaussianSum(sensitivity_squared=100, entries=10, sigma_squared=Fraction(500))
    >>> noisy_sum.rho, rho_of([noisy_sum, noisy_sum])  # 100 / (2 x 500), and twice that
    (100000000, 200000000)
    """

    sensitivity_squared: int
    entries: int
    sigma_squared: Fraction
    rho: NanoRho = field(init=False)

    def __attrs_post_init__(self) -> None:
        if self.entries < 1:
            raise ValueError("a noisy sum has at least one entry")
        object.__setattr__(self, "rho", gaussian_rho(self.sensitivity_squared, self.sigma_squared))

    @property
    def changed(self) -> int:
        """How many entries really change at most: each changes by at least 1."""
        return min(self.entries, self.sensitivity_squared)


def delta_of(sums: Sequence[GaussianSum], epsilon: int) -> Decimal:
    """Return the delta of all these sums together at so many nano-epsilon, at most 1.

    Later sums may be chosen after seeing earlier ones. For a single sum of which one entry changes it is exact;
    otherwise the least of the bounds by smoothing and by rho.
    """
    if not sums:
        return Decimal(0)
    by_rho = delta_of_rho(rho_of(sums), epsilon)
    # Theorem 7 is exact, and sums over the whole range of the noise: not where sigma is very large.
    if len(sums) == 1 and sums[0].changed == 1 and sums[0].sigma_squared <= LARGEST_EXACT:
        return min(by_rho, one_entry_delta(isqrt(sums[0].sensitivity_squared), sums[0].sigma_squared, epsilon))
    parts = [(noisy_sum.sensitivity_squared, noisy_sum.sigma_squared) for noisy_sum in sums]
    entries = sum(noisy_sum.changed for noisy_sum in sums)
    # Each is a bound on the same delta, so the least of them is one.
    return min(by_rho, *(smoothed_delta(parts, entries, epsilon, r_squared) for r_squared in SMOOTHING))


def rho_of(sums: Sequence[GaussianSum]) -> NanoRho:
    """Return the nano-rho of all these sums together."""
    return NanoRho(sum(noisy_sum.rho for noisy_sum in sums))


def epsilon_of(sums: Sequence[GaussianSum], delta: Decimal) -> NanoEpsilon:
    """Return the smallest nano-epsilon at which `delta_of` is at most delta, which lies in [1e-30, 1)."""
    top = epsilon_of_rho(rho_of(sums), delta)
    return NanoEpsilon(smallest(lambda epsilon: delta_of(sums, epsilon) <= delta, top))


@lru_cache(maxsize=64)
def sigma_squared_for(
    sensitivity_squared: int, entries: int, epsilon: NanoEpsilon, delta: Decimal, rounds: int = 1
) -> Fraction:
    """Return the least sigma squared, in steps of 1/1024, that keeps so many rounds of one sum to (epsilon, delta).

    Raises `ValueError` unless epsilon and rounds are above 0 and delta lies in [1e-30, 1).

    >>> sigma_squared_for(1, 1, NanoEpsilon(NANO), Decimal("1e-6"))
    Fraction(9165, 512)
    """
    check_delta(delta)
    if epsilon <= 0 or rounds < 1:
        raise ValueError("noise is sought for an epsilon above 0 and at least one round")

    def keeps(steps: int) -> bool:
        noisy_sum = GaussianSum(sensitivity_squared, entries, (steps + 1) * STEP)
        return delta_of([noisy_sum] * rounds, epsilon) <= delta

    top = 1
    # Doubled first, so that the halving begins with noise that is enough.
    while not keeps(top):
        top *= 2
    return (smallest(keeps, top) + 1) * STEP


@lru_cache(maxsize=64)
def shared_sigmas_squared(
    sums: tuple[tuple[int, int, Fraction], ...], epsilon: NanoEpsilon, delta: Decimal, times: int = 1
) -> tuple[Fraction, ...]:
    """Return the sigma squared of each of several sums, that together keep to (epsilon, delta), each published so many
    `times`. A sum is its squared sensitivity, how many entries change, and its share of the cost in rho.

    Raises `ValueError` unless epsilon, times and shares are above 0 and delta lies in [1e-30, 1).

    >>> even = (2, 2, Fraction(1, 2))
    >>> len(set(shared_sigmas_squared((even, even), NanoEpsilon(NANO), Decimal("1e-6"))))
    1
    """
    check_delta(delta)
    if epsilon <= 0 or times < 1 or min(share for _, _, share in sums) <= 0:
        raise ValueError("noise is sought for an epsilon above 0, and shares above 0")

    def noises(steps: int) -> list[Fraction]:
        return [ceil((steps + 1) * squared / share) * STEP for squared, _, share in sums]

    def keeps(steps: int) -> bool:
        told = zip(sums, noises(steps), strict=True)
        found = [GaussianSum(squared, entries, noise) for (squared, entries, _), noise in told]
        return delta_of(found * times, epsilon) <= delta

    top = 1
    while not keeps(top):
        top *= 2
    return tuple(noises(smallest(keeps, top)))


def laplace_epsilon(sensitivity: int, scale: Fraction) -> NanoEpsilon:
    """Return the pure nano-epsilon of discrete Laplace noise on a sum of integer L1 sensitivity: their ratio.

    Attained in the tails. Raises `ValueError` unless the sensitivity is at least 1 and the scale above 0.

    >>> laplace_epsilon(3, Fraction(6))
    500000000
    """
    if sensitivity < 1 or scale <= 0:
        raise ValueError("a noisy sum needs a sensitivity of at least 1 and a scale above 0")
    return NanoEpsilon(ceil(Fraction(sensitivity * NANO) / scale))
