"""The promise of every mechanism, and the two types that keep raw and perturbed values apart.

Probabilities are integer numerators over 2**64. Privacy loss, perturbation, debiasing and variance all come from the
same two integers p and q, so that client, server and simulation cannot disagree about them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import ClassVar, final

from attrs import field

from anon.errors import Refused
from anon.ldp.epsilon import MAX_EPSILON, NanoEpsilon
from anon.values import frozen

RandomBytes = Callable[[int], bytes]
"""Returns exactly so many uniform, independent bytes. A peer passes `peer.release.SlotRandomness`, a simulation
`os.urandom`; there is no default."""

SCALE = 2**64
"""The denominator of every probability."""

MIN_CATEGORIES, MAX_CATEGORIES = 2, 4096

_MINT = object()


@final
@frozen
class RawCategory:
    """One peer's true category, `0 <= value < m`. Never leaves the machine; its repr does not show the value."""

    value: int = field(repr=False)
    m: int = field()

    def __attrs_post_init__(self) -> None:
        if not 0 <= self.value < self.m:
            raise ValueError(f"a category of a survey with {self.m} categories lies in 0..{self.m - 1}")


@final
@frozen(init=False)
class PerturbedReport:
    """Bytes that went through a mechanism, or were parsed as the report of one. Only a mechanism makes them.

    Of answers that are categories, this is the only kind of value that may be sealed into a packet.

    >>> PerturbedReport(b"my true answer", mint=None)
    Traceback (most recent call last):
    TypeError: only a mechanism makes a report: call its perturb or parse
    """

    data: bytes

    def __init__(self, data: bytes, mint: object) -> None:
        if mint is not _MINT:
            raise TypeError("only a mechanism makes a report: call its perturb or parse")
        self.__attrs_init__(data)

    def __bytes__(self) -> bytes:
        """Return the bytes as they go on the wire."""
        return self.data


def check_probabilities(m: int, p: int, q: int) -> None:
    """Raise `Refused` unless these are integers with 2 <= m <= 4096 and 0 < q < p < 2**64."""
    # Not isinstance: True is an instance of int.
    if any(type(number) is not int for number in (m, p, q)):
        raise Refused("m, p and q of a mechanism must be integers: publish the study again with `study publish`")
    if not MIN_CATEGORIES <= m <= MAX_CATEGORIES:
        raise Refused(
            f"a survey has {MIN_CATEGORIES} to {MAX_CATEGORIES} categories, got {m}: use fewer features or coarser bins"
        )
    if not 0 < q < p < SCALE:
        raise Refused("probabilities must satisfy 0 < q < p < 2**64: publish the study again with `study publish`")


@frozen
class Mechanism(ABC):
    """A perturbation of one category out of m, with its own privacy loss. Frozen and valid once built.

    p is the probability that a report supports the true category, q that it supports any given other one, both over
    2**64. Building one from other numbers than a mechanism can have raises `Refused`.

    Promise: for any two categories and any report, the ratio of likelihoods is at most exp(epsilon * 1e-9), given
    that `random_bytes` is uniform. It protects one report; for several reports of one peer see `anon.ldp.composition`.

    No report says more about one category than epsilon allows, here a factor of e:

    >>> from anon.ldp import build, nano
    >>> mechanism = build("krr", 4, nano(1))
    >>> report = mechanism.parse(bytes([0, 2]))
    >>> [round(float(mechanism.likelihood(RawCategory(value, 4), report)), 3) for value in range(4)]
    [0.175, 0.175, 0.475, 0.175]
    """

    name: ClassVar[str]
    """How documents name the mechanism: "krr", "subset", "rappor" or "pq"."""

    m: int
    p: int
    q: int
    epsilon: NanoEpsilon = field(init=False)
    """Recomputed from p and q, rounded up; never taken from a document."""

    random_size: int = field(init=False)
    """Random bytes that one report costs, for every category alike."""

    report_size: int = field(init=False)
    """Bytes of one report, for every category alike."""

    def __attrs_post_init__(self) -> None:
        check_probabilities(self.m, self.p, self.q)
        self._check()
        epsilon = NanoEpsilon(self._loss())
        if not 0 < epsilon <= MAX_EPSILON:
            raise Refused("the epsilon of one mechanism lies above 0 and is at most 20: choose a smaller epsilon")
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "random_size", self._random_size())
        object.__setattr__(self, "report_size", self._report_size())

    @abstractmethod
    def perturb(self, category: RawCategory, random_bytes: RandomBytes) -> PerturbedReport:
        """Return a report drawn exactly from the stated probabilities, from one call of `random_bytes`.

        Every category costs the same random bytes and the same sequence of calls. No claim is made about timing
        below that: Python's integers are not constant-time.
        """

    @abstractmethod
    def parse(self, report_untrusted: bytes) -> PerturbedReport:
        """Return the report spelled by these bytes, or raise `Malformed` if `perturb` could never have written them."""

    @abstractmethod
    def likelihood(self, category: RawCategory, report: PerturbedReport) -> Fraction:
        """Return the exact probability that `perturb` turns this category into this report."""

    @abstractmethod
    def tally(self, reports: Sequence[PerturbedReport]) -> list[int]:
        """Return, for each of the m categories, how many reports support it."""

    @abstractmethod
    def joint(self) -> tuple[Fraction, Fraction]:
        """Return the probabilities that a report supports the true category and a given other; two given others.

        With p and q they say how the cells of an estimate vary together: E[i and j supported] = second + (share_i +
        share_j) (first - second).
        """

    def unbias(self, counts: Sequence[int], n: int) -> list[float]:
        """Return estimates (count - q n)/(p - q) of the true counts, given the tally of n reports.

        Section VII-D of the paper calls this the maximum-likelihood estimate. It is the moment estimator: unbiased,
        and the maximum-likelihood one only where it falls inside the simplex (erratum 10). Cells may be negative;
        nothing is clipped here, because clipping is biased and makes the sum exceed n. The divisor is n, as the
        variance assumes, not the random sum of a histogram (erratum 9); the two agree for k-ary random response only.

        >>> from anon.ldp import build, nano
        >>> counts = build("krr", 4, nano(1)).unbias([400, 250, 200, 150], 1000)
        >>> [round(count) for count in counts], round(sum(counts))
        ([749, 250, 84, -83], 1000)
        """
        if len(counts) != self.m:
            raise ValueError(f"expected {self.m} counts, got {len(counts)}")
        # Integers up to the one division: no digits are lost in a difference of large doubles.
        return [(count * SCALE - self.q * n) / (self.p - self.q) for count in counts]

    def variance(self, true_count: float, n: int) -> float:
        """Return the variance of one cell of `unbias` when `true_count` of the n peers are in it.

        A tallied cell is Binomial(n_i, p) + Binomial(n - n_i, q). The proof of theorem 2 prints the second as
        B(n - n_i, 1 - q): the same variance, another mean (erratum 8).
        """
        true_part, other_part = self.p * (SCALE - self.p), self.q * (SCALE - self.q)
        return (true_count * true_part + (n - true_count) * other_part) / (self.p - self.q) ** 2

    def squared_error(self) -> Fraction:
        """Return n times the expected squared l2 error of the estimated frequencies, exactly (eq. 4 squared)."""
        noise = (self.m - 1) * self.q * (SCALE - self.q) + self.p * (SCALE - self.p)
        return Fraction(noise, (self.p - self.q) ** 2)

    def rmse(self, n: int) -> float:
        """Return eq. 4: the root-mean-square l2 error of the m estimated frequencies from n reports.

        The paper prints it as the expected error; by Jensen's inequality it is an upper bound on that (erratum 7).
        It is the exact root-mean-square error of `unbias` divided by n.
        """
        if n < 1:
            raise ValueError("the error of an estimate needs at least one report")
        return math.sqrt(self.squared_error() / n)

    def spec(self) -> dict[str, str | int]:
        """Return what a document says about the mechanism: name, m, p, q and epsilon. `from_spec` reads it back."""
        return {"name": self.name, "m": self.m, "p": self.p, "q": self.q, "epsilon": self.epsilon}

    def _draw(self, category: RawCategory, random_bytes: RandomBytes) -> bytes:
        if category.m != self.m:
            raise ValueError(f"a category among {category.m} cannot be perturbed by a mechanism for {self.m}")
        drawn = random_bytes(self.random_size)
        # Fewer bytes would make a smaller number: no uniform draw, and a loss that nobody computed.
        if len(drawn) != self.random_size:
            raise ValueError(f"the source of randomness owed {self.random_size} bytes and gave {len(drawn)}")
        return drawn

    def _report(self, data: bytes) -> PerturbedReport:
        return PerturbedReport(data, _MINT)

    @abstractmethod
    def _check(self) -> None: ...

    @abstractmethod
    def _loss(self) -> int: ...

    @abstractmethod
    def _random_size(self) -> int: ...

    @abstractmethod
    def _report_size(self) -> int: ...


def tally_bits(reports: Sequence[PerturbedReport], m: int) -> list[int]:
    """Count, for each of m positions, the reports of m bits that set it; the first is the top bit of the first byte."""
    counts = [0] * m
    for report in reports:
        bits = int.from_bytes(report.data, "big") >> (-m % 8)
        for position, digit in enumerate(f"{bits:0{m}b}"):
            counts[position] += digit == "1"
    return counts
