"""Unary encodings: one bit for each category, each perturbed on its own.

The bit of the true category is 1 with probability p, every other with probability q. Two reports differ in two
positions at most, hence epsilon = ln(p (1 - q) / ((1 - p) q)) (theorem 1), attained where one is set and one clear.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import ClassVar, Self, final

from attrs import field

from anon.errors import Malformed, Refused
from anon.ldp.epsilon import PRECISION, NanoEpsilon, exponential, loss
from anon.ldp.mechanism import SCALE, Mechanism, PerturbedReport, RandomBytes, RawCategory, tally_bits
from anon.values import frozen

LANE = 64
_TOP = 1 << (LANE - 1)
# The top bit of a lane says that its word reached the threshold: a 0 in the report.
_BELOW_DIGIT = bytes(ord("0") if byte & 0x80 else ord("1") for byte in range(256))


@frozen
class BitSampler:
    """Draws m bits at once: lane i of a long integer holds 64 random bits, and bit i is 1 if they are below p or q.

    The lanes are compared by ordinary integer arithmetic, as a processor would compare one word. So all categories take
    the same steps, no bit is rounded, and a report of 128 bits costs a few microseconds.
    """

    m: int
    p: int
    q: int
    _tops: int = field(init=False, repr=False)
    _complements: int = field(init=False, repr=False)
    _remainders: int = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        ones = sum(1 << (LANE * lane) for lane in range(self.m))
        object.__setattr__(self, "_tops", ones * _TOP)
        object.__setattr__(self, "_complements", ones * (self.q ^ (SCALE - 1)))
        object.__setattr__(self, "_remainders", ones * (self.q & ~_TOP))

    def sample(self, true_position: int, drawn: bytes) -> str:
        """Return m characters 0 or 1 from 8 m random bytes; position 0 is decided by the first eight."""
        words = int.from_bytes(drawn, "big")
        shift = LANE * (self.m - 1 - true_position)
        complements = self._complements ^ ((self.p ^ self.q) << shift)
        remainders = self._remainders ^ (((self.p ^ self.q) & ~_TOP) << shift)
        # A word reaches its threshold if subtracting carries out of the top bit: the majority of the word's top bit,
        # the complement's top bit, and the carry from the 63 bits below, which the set top bit keeps inside its lane.
        carries = (words | self._tops) - remainders
        reached = (words & complements) | (carries & (words | complements))
        return reached.to_bytes(8 * self.m, "big")[::8].translate(_BELOW_DIGIT).decode("ascii")


@frozen
class UnaryEncoding(Mechanism):
    """The common part of RAPPOR and (p, q)-perturbation. Position 0 is the most significant bit of the first byte."""

    _sampler: BitSampler = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        object.__setattr__(self, "_sampler", BitSampler(self.m, self.p, self.q))

    def perturb(self, category: RawCategory, random_bytes: RandomBytes) -> PerturbedReport:
        """See `Mechanism.perturb`."""
        digits = self._sampler.sample(category.value, self._draw(category, random_bytes))
        return self._report((int(digits, 2) << (-self.m % 8)).to_bytes(self.report_size, "big"))

    def parse(self, report_untrusted: bytes) -> PerturbedReport:
        """See `Mechanism.parse`: m bits, then zeros up to a whole byte."""
        if len(report_untrusted) != self.report_size:
            raise Malformed(
                f"a {self.name} report has {self.report_size} bytes, got {len(report_untrusted)}: send it unchanged"
            )
        if report_untrusted[-1] & ((1 << (-self.m % 8)) - 1):
            raise Malformed(f"the bits after the first {self.m} of a {self.name} report must be zero")
        return self._report(bytes(report_untrusted))

    def likelihood(self, category: RawCategory, report: PerturbedReport) -> Fraction:
        """See `Mechanism.likelihood`."""
        bits = int.from_bytes(report.data, "big") >> (-self.m % 8)
        support = bits >> (self.m - 1 - category.value) & 1
        others = bits.bit_count() - support
        chance = self.p if support else SCALE - self.p
        chance *= self.q**others * (SCALE - self.q) ** (self.m - 1 - others)
        return Fraction(chance, SCALE**self.m)

    def tally(self, reports: Sequence[PerturbedReport]) -> list[int]:
        """See `Mechanism.tally`. A report may support any number of categories."""
        return tally_bits([self.parse(report.data) for report in reports], self.m)

    def joint(self) -> tuple[Fraction, Fraction]:
        """See `Mechanism.joint`. The bits are independent."""
        return Fraction(self.p * self.q, SCALE**2), Fraction(self.q, SCALE) ** 2

    def _loss(self) -> int:
        return loss(Fraction(self.p * (SCALE - self.q), (SCALE - self.p) * self.q))

    def _random_size(self) -> int:
        return 8 * self.m

    def _report_size(self) -> int:
        return (self.m + 7) // 8


@final
@frozen
class Rappor(UnaryEncoding):
    """Basic one-time RAPPOR: p + q = 2**64, epsilon = 2 ln(p / (1 - p)).

    (p, q)-perturbation is no strict improvement on it, though section VII-D3 says so (erratum 12). The two are equal at
    m = 2. At m = 16 up to epsilon 1 they differ by less than 3 % of the error.
    """

    name: ClassVar[str] = "rappor"

    @classmethod
    def build(cls, m: int, epsilon: NanoEpsilon) -> Self:
        """Return the mechanism with p = 1 / (1 + e**(-epsilon / 2)) rounded down, so its loss is at most epsilon."""
        root = PRECISION.sqrt(exponential(epsilon))
        p = _floor(PRECISION.divide(root, PRECISION.add(root, Decimal(1))))
        return cls(m, p, SCALE - p)

    def _check(self) -> None:
        if self.p + self.q != SCALE:
            raise Refused("rappor needs p + q = 2**64: publish the study again with `study publish`")


@final
@frozen
class Perturbation(UnaryEncoding):
    """(p, q)-perturbation, at its least expected error unless a study names other probabilities."""

    name: ClassVar[str] = "pq"

    @classmethod
    def build(cls, m: int, epsilon: NanoEpsilon) -> Self:
        """Return the mechanism of least error: p by eq. 5 rounded down, q rounded up so that its loss is <= epsilon."""
        growth = exponential(epsilon)
        p = _floor(optimum(m, growth))
        chance = Decimal(p)
        # Theorem 1 solved for q: q = p / (p + e^epsilon (1 - p)).
        odds = PRECISION.add(chance, PRECISION.multiply(growth, Decimal(SCALE - p)))
        q = PRECISION.divide(PRECISION.multiply(Decimal(SCALE), chance), odds)
        return cls(m, p, int(q.to_integral_value(rounding=ROUND_CEILING)))

    def _check(self) -> None:
        """Any 0 < q < p < 2**64 is a (p, q)-perturbation."""


def optimum(m: int, growth: Decimal) -> Decimal:
    """Return eq. 5: the p in (0, 1) that minimises eq. 4 for m categories at e**epsilon = growth > 1.

    It is the minimum although eq. 4 is only unimodal in p and, from epsilon about 6.5 on, not convex as section VII-D2
    says (erratum 11). It tends to 1/2 (optimised unary encoding) as m grows; at m = 2 it is RAPPOR's.
    """
    # Decimal's operators would round to the context of the thread, which has 28 digits.
    multiply, power = PRECISION.multiply, PRECISION.power
    square = power(growth, 2)
    linear = PRECISION.add(square, multiply(Decimal(m - 1), growth))
    cubic = multiply(Decimal(m - 1), PRECISION.add(power(growth, 3), growth))
    root = PRECISION.sqrt(PRECISION.add(cubic, multiply(Decimal((m - 1) ** 2 + 1), square)))
    return PRECISION.divide(PRECISION.subtract(linear, root), PRECISION.subtract(square, Decimal(1)))


def _floor(probability: Decimal) -> int:
    return int(PRECISION.multiply(probability, Decimal(SCALE)).to_integral_value(rounding=ROUND_FLOOR))
