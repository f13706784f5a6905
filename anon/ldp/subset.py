"""Subset selection: the report is a set of w of the m categories, the true one among them with probability p.

Wang et al. 2016 (arXiv 1607.08025) and Ye & Barg 2018 (IEEE Trans. Inf. Theory 64, section III). Given whether the true
category is in it, the rest of the set is uniform. At w = 1 it is k-ary random response.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from functools import lru_cache
from math import comb
from typing import ClassVar, Self, final

from attrs import field

from anon.errors import Malformed, Refused
from anon.ldp.epsilon import PRECISION, NanoEpsilon, exponential, loss
from anon.ldp.mechanism import SCALE, Mechanism, PerturbedReport, RandomBytes, RawCategory, tally_bits
from anon.values import frozen

_HIT_BYTES = 8
_SPARE_BITS = 64  # how much finer the random number is than the number of sets that it chooses from


@frozen
class SetChoice:
    """Chooses one of the w-sets of others, as evenly as `size` random bytes allow: by floor(number * sets / 2**bits).

    Of the 2**bits numbers each set is meant by `fewest` or by `fewest` + 1, so that no set is likelier than another by
    a factor of more than 1 + 2**-64.
    """

    others: int
    w: int
    size: int

    @property
    def sets(self) -> int:
        """How many there are to choose from."""
        return comb(self.others, self.w)

    @property
    def fewest(self) -> int:
        """How many of the random numbers at least mean a given set."""
        return (1 << 8 * self.size) // self.sets

    @property
    def most(self) -> int:
        """How many at most."""
        return -(-(1 << 8 * self.size) // self.sets)

    def rank(self, drawn: bytes) -> int:
        """Which set these random bytes mean."""
        # Multiply and shift (Lemire 2019, arXiv 1805.10941), without rejection: every set costs the same bytes.
        return int.from_bytes(drawn, "big") * self.sets >> 8 * self.size

    def meant_by(self, rank: int) -> int:
        """How many random numbers mean the set of this rank."""
        bits = 8 * self.size
        return -(-((rank + 1) << bits) // self.sets) + (-(rank << bits) // self.sets)


@final
@frozen
class SubsetSelection(Mechanism):
    """Subset selection with p + (m - 1) q = w 2**64. A report is m bits, w of them set, position 0 the top bit first.

    p is exact: one 64-bit draw decides whether the true category is in the set. The choice of the others cannot be made
    evenly by a fixed number of random bits. So the loss is computed from the likeliest and the least likely sets. It is
    ln(p most(m-1, w-1) / ((1 - p) fewest(m-1, w))), see `SetChoice`. For the same reason q, which `unbias` and
    `variance` use, is the probability of another category to within a factor of 1 + 2**-63.
    """

    name: ClassVar[str] = "subset"

    w: int = field(init=False)
    """The size of the reported set, 1 to m - 1."""

    _with: SetChoice = field(init=False, repr=False, eq=False)
    _without: SetChoice = field(init=False, repr=False, eq=False)

    @classmethod
    def build(cls, m: int, epsilon: NanoEpsilon) -> Self:
        """Return the mechanism whose set size has the least squared error: m / (e**epsilon + 1), one way rounded."""
        middle = int(PRECISION.divide(Decimal(m), PRECISION.add(exponential(epsilon), Decimal(1))))
        sizes = sorted({min(max(w, 1), m - 1) for w in (middle, middle + 1)})
        return min((cls.of_size(m, w, epsilon) for w in sizes), key=lambda mechanism: mechanism.squared_error())

    @classmethod
    def of_size(cls, m: int, w: int, epsilon: NanoEpsilon) -> Self:
        """Return the mechanism with sets of w, its p as large as epsilon allows. Raises `Refused` for another w."""
        if not 1 <= w < m:
            raise Refused(f"subset selection reports 1 to {m - 1} of {m} categories, got {w}")
        inside, outside = _choices(m, w)
        # The first and worst ratio of `_ratios`, solved for p / (1 - p).
        odds = PRECISION.multiply(exponential(epsilon), PRECISION.divide(Decimal(outside.fewest), Decimal(inside.most)))
        chance = PRECISION.divide(PRECISION.multiply(Decimal(SCALE), odds), PRECISION.add(odds, Decimal(1)))
        # A larger q leaves less of w for p, so the rounding lowers the loss.
        share = PRECISION.divide(PRECISION.subtract(Decimal(w * SCALE), chance), Decimal(m - 1))
        q = int(share.to_integral_value(rounding=ROUND_CEILING))
        return cls(m, w * SCALE - (m - 1) * q, q)

    def perturb(self, category: RawCategory, random_bytes: RandomBytes) -> PerturbedReport:
        """See `Mechanism.perturb`. The others are numbered from the true category's next neighbour on, cyclically."""
        drawn = self._draw(category, random_bytes)
        hit = int.from_bytes(drawn[:_HIT_BYTES], "big") < self.p
        choice = self._with if hit else self._without
        others = _unrank(choice.rank(drawn[_HIT_BYTES:]), choice.others, choice.w)
        digits = ("1" if hit else "0") + others
        start = self.m - category.value
        # Rotated, not searched: the same steps whatever the category is.
        turned = digits[start:] + digits[:start]
        return self._report((int(turned, 2) << (-self.m % 8)).to_bytes(self.report_size, "big"))

    def parse(self, report_untrusted: bytes) -> PerturbedReport:
        """See `Mechanism.parse`: m bits of which w are set, then zeros up to a whole byte."""
        if len(report_untrusted) != self.report_size:
            raise Malformed(
                f"a subset report has {self.report_size} bytes, got {len(report_untrusted)}: send it unchanged"
            )
        if report_untrusted[-1] & ((1 << (-self.m % 8)) - 1):
            raise Malformed(f"the bits after the first {self.m} of a subset report must be zero")
        if int.from_bytes(report_untrusted, "big").bit_count() != self.w:
            raise Malformed(f"a subset report names {self.w} categories: answer the survey as published")
        return self._report(bytes(report_untrusted))

    def likelihood(self, category: RawCategory, report: PerturbedReport) -> Fraction:
        """See `Mechanism.likelihood`. Exact, down to which sets a random number more or less means."""
        digits = f"{int.from_bytes(self.parse(report.data).data, 'big') >> (-self.m % 8):0{self.m}b}"
        turned = digits[category.value :] + digits[: category.value]
        hit = turned[0] == "1"
        choice = self._with if hit else self._without
        meant = choice.meant_by(_rank(turned[1:], choice.w))
        return Fraction((self.p if hit else SCALE - self.p) * meant, SCALE << 8 * choice.size)

    def tally(self, reports: Sequence[PerturbedReport]) -> list[int]:
        """See `Mechanism.tally`. The counts sum to w times the number of reports."""
        return tally_bits([self.parse(report.data) for report in reports], self.m)

    def joint(self) -> tuple[Fraction, Fraction]:
        """See `Mechanism.joint`."""
        hit = Fraction(self.p, SCALE)
        with_true = hit * Fraction(self.w - 1, self.m - 1)
        # Two categories leave no pair of others, and m - 2 would divide by zero.
        if self.m == 2:
            return with_true, Fraction(0)
        pairs = Fraction(self.w - 1, self.m - 1) * (hit * (self.w - 2) + (1 - hit) * self.w) / (self.m - 2)
        return with_true, pairs

    def _check(self) -> None:
        w, rest = divmod(self.p + (self.m - 1) * self.q, SCALE)
        if rest or not 1 <= w < self.m:
            raise Refused("subset needs p + (m - 1) q = w 2**64: publish the study again with `study publish`")
        object.__setattr__(self, "w", w)
        inside, outside = _choices(self.m, w)
        object.__setattr__(self, "_with", inside)
        object.__setattr__(self, "_without", outside)

    def _loss(self) -> int:
        return loss(max(Fraction(1), *_ratios(self.p, self._with, self._without)))

    def _random_size(self) -> int:
        return _HIT_BYTES + self._with.size

    def _report_size(self) -> int:
        return (self.m + 7) // 8


def _ratios(p: int, inside: SetChoice, outside: SetChoice) -> tuple[Fraction, ...]:
    """The worst ratios of likelihoods of one set under two categories: in it and not, not and in it, both, neither."""
    return (
        Fraction(p * inside.most, (SCALE - p) * outside.fewest),
        Fraction((SCALE - p) * outside.most, p * inside.fewest),
        Fraction(inside.most, inside.fewest),
        Fraction(outside.most, outside.fewest),
    )


@lru_cache(maxsize=256)
def _choices(m: int, w: int) -> tuple[SetChoice, SetChoice]:
    """How the others are chosen beside the true category and without it, from equally many random bytes."""
    # The bytes are drawn before it is known which choice they serve, so both take equally many.
    most = max(comb(m - 1, w - 1), comb(m - 1, w))
    size = (most.bit_length() + _SPARE_BITS + 7) // 8
    return SetChoice(m - 1, w - 1, size), SetChoice(m - 1, w, size)


def _unrank(rank: int, others: int, w: int) -> str:
    """The set of this rank among the w-sets of `others` as characters 0 or 1; sets with the first other come first."""
    digits = []
    left, count = w, comb(others, w)
    for position in range(others):
        remaining = others - position
        # The division is exact: C(n, k) k / n = C(n - 1, k - 1).
        first = count * left // remaining  # sets of the rest that hold this one
        inside = rank < first
        digits.append("1" if inside else "0")
        rank, count = (rank, first) if inside else (rank - first, count - first)
        left -= inside
    return "".join(digits)


def _rank(digits: str, w: int) -> int:
    """Undo `_unrank`."""
    rank, left, count = 0, w, comb(len(digits), w)
    for position, digit in enumerate(digits):
        first = count * left // (len(digits) - position)
        if digit == "1":
            count, left = first, left - 1
        else:
            rank, count = rank + first, count - first
    return rank
