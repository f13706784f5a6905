"""k-ary random response: the report is one category, the true one with probability p, any other with q each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from typing import ClassVar, Self, final

from anon.errors import Malformed, Refused
from anon.ldp.epsilon import PRECISION, NanoEpsilon, exponential, loss
from anon.ldp.mechanism import SCALE, Mechanism, PerturbedReport, RandomBytes, RawCategory
from anon.values import frozen

REPORT_SIZE = 2


@final
@frozen
class RandomResponse(Mechanism):
    """k-ary random response with p + (m - 1) q = 2**64, so that one 64-bit draw decides a report exactly.

    epsilon = ln(p / q) = ln((m - 1) p / (1 - p)) with p as a probability. Section VII-C prints ln(m p / (1 - p)),
    which counts the true category among the others and is off by ln(m / (m - 1)) (erratum 1).
    """

    name: ClassVar[str] = "krr"

    @classmethod
    def build(cls, m: int, epsilon: NanoEpsilon) -> Self:
        """Return the mechanism with q = 1 / (e**epsilon + m - 1) rounded up, so that its loss is at most epsilon."""
        share = PRECISION.divide(Decimal(SCALE), PRECISION.add(exponential(epsilon), Decimal(m - 1)))
        q = int(share.to_integral_value(rounding=ROUND_CEILING))
        # A larger q leaves less for p, so the rounding lowers p / q: the loss stays within epsilon.
        return cls(m, SCALE - (m - 1) * q, q)

    def perturb(self, category: RawCategory, random_bytes: RandomBytes) -> PerturbedReport:
        """See `Mechanism.perturb`. The 2**64 draws are cut into p for the true category, then q for each next one."""
        draw = int.from_bytes(self._draw(category, random_bytes), "big")
        # Python's division rounds down: a draw below p takes at most 0 steps, and leaves the true category.
        steps = max((draw - self.p) // self.q + 1, 0)
        return self._report(((category.value + steps) % self.m).to_bytes(REPORT_SIZE, "big"))

    def parse(self, report_untrusted: bytes) -> PerturbedReport:
        """See `Mechanism.parse`: two bytes, big-endian, below m."""
        if len(report_untrusted) != REPORT_SIZE:
            raise Malformed(f"a krr report has {REPORT_SIZE} bytes, got {len(report_untrusted)}: send it unchanged")
        if int.from_bytes(report_untrusted, "big") >= self.m:
            raise Malformed(f"a krr report names a category below {self.m}: answer the survey as published")
        return self._report(bytes(report_untrusted))

    def likelihood(self, category: RawCategory, report: PerturbedReport) -> Fraction:
        """See `Mechanism.likelihood`."""
        return Fraction(self.p if int.from_bytes(report.data, "big") == category.value else self.q, SCALE)

    def tally(self, reports: Sequence[PerturbedReport]) -> list[int]:
        """See `Mechanism.tally`. The counts sum to the number of reports."""
        counts = Counter(int.from_bytes(self.parse(report.data).data, "big") for report in reports)
        return [counts[category] for category in range(self.m)]

    def joint(self) -> tuple[Fraction, Fraction]:
        """See `Mechanism.joint`. A report supports one category."""
        return Fraction(0), Fraction(0)

    def _check(self) -> None:
        if self.p + (self.m - 1) * self.q != SCALE:
            raise Refused("krr needs p + (m - 1) q = 2**64: publish the study again with `study publish`")

    def _loss(self) -> int:
        return loss(Fraction(self.p, self.q))

    def _random_size(self) -> int:
        return 8

    def _report_size(self) -> int:
        return REPORT_SIZE
