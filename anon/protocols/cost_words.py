"""A member's cost in words: an epsilon and its odds for its owner, and for staff by the measure of the study's charge.

A local epsilon holds by itself. Any other amount is of what is published, and stands with its condition. Budgets of
noisy sums add up rho, which stands in no text but the arithmetic. Epsilons of rho do not add up, so the rest of such a
budget is told as a part of it.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING, Final

from attrs import evolve, field

from anon.accounting.zcdp import epsilon_of_rho, rho_within
from anon.ldp import NanoEpsilon, format_epsilon, odds_moved
from anon.ldp.epsilon import loss
from anon.protocols.charge import LOCAL, Budget, Measure, Unit
from anon.protocols.contract import CentralPart
from anon.protocols.registry import charge_of, protocol_of
from anon.study.manifest import Manifest
from anon.text.sentences import Sentence, say
from anon.values import frozen

if TYPE_CHECKING:
    from anon.accounting.statement import Batch

DELTA: Final = Decimal("1e-6")
"""The delta at which rho is shown as an epsilon. Amounts are held as rho."""
HUNDREDTH: Final = 10**7
"""The step (1e-9) in which an epsilon of rho is shown."""
TENFOLD: Final = loss(Fraction(10))
"""The epsilon (1e-9) that multiplies odds by ten. Consent warns above it, and limits that rise by more are asked about
once more."""


def is_local(study: Manifest) -> bool:
    """True if every packet is perturbed before it leaves."""
    return charge_of(study).budget == LOCAL


def epsilon_of(study: Manifest) -> NanoEpsilon:
    """The one epsilon (1e-9) that every text names: that of the charge, or of what is published at `DELTA`, rounded up
    to hundredths."""
    charge, protocol = charge_of(study), protocol_of(study)
    if charge.measure is not Measure.ZCDP:
        return NanoEpsilon(charge.amount)
    if not isinstance(protocol, CentralPart):
        return NanoEpsilon(in_epsilon(charge.budget, charge.amount))
    return NanoEpsilon(-(-protocol.promised(study) // HUNDREDTH) * HUNDREDTH)


def in_epsilon(budget: Budget, amount: int) -> int:
    """An amount as an epsilon (1e-9), at `DELTA` and rounded up to hundredths where it is rho."""
    if budget.measure is not Measure.ZCDP or not amount:
        return amount
    return -(-epsilon_of_rho(amount, DELTA) // HUNDREDTH) * HUNDREDTH


def in_budget(budget: Budget, known: int, epsilon: int) -> int:
    """The amount for an epsilon that an owner wrote: `known` where that is shown as the same, so that nothing rises
    unasked."""
    if budget.measure is not Measure.ZCDP or not epsilon:
        return epsilon
    return known if in_epsilon(budget, known) == epsilon else rho_within(epsilon, DELTA)


def enough(budget: Budget, known: int, amount: int) -> int:
    """The least epsilon in hundredths by which an owner allows this amount in place of `known`."""
    epsilon = in_epsilon(budget, amount)
    return epsilon if in_budget(budget, known, epsilon) >= amount else epsilon + HUNDREDTH


def percent(part: float, whole: float, left: bool = False) -> Sentence:
    """A part of a budget. A part above nothing is never shown as nothing; what is `left` is never shown as more."""
    found = (floor if left else ceil)(100 * part / whole) if whole else 0
    return say("{count} %", count=found)


@frozen
class Amount:
    """An amount of a budget (1e-9), as its owner reads it. The one epsilon of the `study` that holds it bounds it."""

    budget: Budget
    amount: int
    study: Manifest | None = field(default=None, repr=False)

    @property
    def epsilon(self) -> int:
        """The epsilon of it (1e-9)."""
        found = in_epsilon(self.budget, self.amount)
        return found if self.study is None else min(found, epsilon_of(self.study))

    @property
    def odds(self) -> Sentence:
        """The odds that it allows to move, in a sentence's words."""
        moved = odds_moved(self.epsilon)
        if self.budget.measure is Measure.ZCDP:
            return say("the chances of whatever is published {moved}, and by one in a million more", moved=moved)
        if self.budget.unit is Unit.RECORD:
            return say("the odds of anything about one record of yours {moved}", moved=moved)
        return say("the odds of anything about you {moved}", moved=moved)


def both(first: Amount, *more: Amount) -> Amount:
    """Several amounts of one study together."""
    return evolve(first, amount=first.amount + sum(held.amount for held in more))


def with_odds(held: Amount) -> Sentence:
    """The epsilon, and what it allows."""
    return say("epsilon {epsilon}: {odds}", epsilon=format_epsilon(held.epsilon), odds=held.odds)


def cost_in_words(study: Manifest) -> str:
    """The study's one epsilon, for a first screen: its odds and condition are in `promise_in_words`."""
    kind = "record-level epsilon" if is_local(study) else "epsilon"
    return f"{kind} {format_epsilon(epsilon_of(study))}"


def exact_cost(study: Manifest) -> str:
    """The same with its kind and its delta, for experts."""
    charge, epsilon = charge_of(study), format_epsilon(epsilon_of(study))
    if charge.measure is Measure.ZCDP:
        return f"central epsilon {epsilon} at delta {DELTA}"
    return f"record-level epsilon {epsilon}" if charge.budget == LOCAL else f"central epsilon {epsilon}"


def promise_in_words(study: Manifest) -> str:
    """The meaning of the amount, as the rest of a sentence."""
    charge = charge_of(study)
    if charge.budget == LOCAL:
        return f"for somebody who sees all that one member sent, the odds about that member {odds_moved(charge.amount)}"
    other = "one record been another" if charge.unit is Unit.RECORD else "one member's answers been others"
    more = ", and by one in a million more" if charge.measure is Measure.ZCDP else ""
    moved = f"{odds_moved(epsilon_of(study))}{more}"
    return f"had {other}, the chances of whatever is published {moved}. This holds if {charge.condition}"


def statement(study: Manifest, batch: Batch) -> tuple[str, ...]:
    """The privacy statement, where so many packets hide one another."""
    from anon.accounting.statement import account, in_words  # late: consent and budgets do without

    charge = charge_of(study)
    if charge.budget == LOCAL:
        return in_words(account(study, batch))
    counted = f"Budgets count it as rho {format_epsilon(charge.amount)} of zero-concentrated differential privacy."
    return (
        f"Cost of each {charge.unit}, {charge.neighbours}: {exact_cost(study)}, over all that is published.",
        *((counted,) if charge.measure is Measure.ZCDP else ()),
        f"It holds if {charge.condition}. Otherwise it does not hold.",
        _WRITTEN if any(survey.written for survey in study.surveys) else _SHARED,
    )


_SHARED = "Packets hold exact answers in sealed shares: only sums with noise are published."
_WRITTEN = "Packets hold open texts, and letters sealed to their readers: all of them are published."
