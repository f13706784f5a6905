"""The owner's limits: one lifetime and one amount for a single study, for each budget.

The defaults of the budgets beside the local one, and why, stand in `docs/decisions/0030-a-budget-for-each-measure.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import field

from anon.errors import Malformed
from anon.ldp.epsilon import nano
from anon.protocols.charge import LOCAL, USUAL_LIMITS, Budget, Measure, Unit
from anon.study.features import USUAL_COHORT
from anon.text.sentences import Sentence, say
from anon.values import frozen
from peer.rules.ledger import Ledger


def fewer_demanded(before: int, after: int) -> tuple[Sentence, ...]:
    """The sentence on a limit that is lowered below what a home begins with; none for other changes."""
    if after >= min(before, USUAL_COHORT):
        return ()
    return (say(
        "You lower your limit from {before} people to {after}. That holds for every study that you join from now on, "
        "until you raise it again. Among so few people it is easier to find out which answer is yours.",
        before=before,
        after=after,
    ),)


def _amount(_: object, attribute: object, value: int) -> None:
    if type(value) is not int or value < 0:
        raise Malformed(say("policy: expected amounts of 0 or more"))


@frozen
class BudgetLimit:
    """The most that all studies together, and one study alone, may hold of a budget. Amounts count 1e-9."""

    measure: Measure = field(converter=Measure)
    unit: Unit = field(converter=Unit)
    lifetime: int = field(validator=_amount)
    per_study: int = field(validator=_amount)

    @property
    def budget(self) -> Budget:
        """The budget that is limited."""
        return Budget(self.measure, self.unit)


SAFE: Final = tuple(
    BudgetLimit(budget.measure, budget.unit, *limits) for budget, limits in USUAL_LIMITS.items() if budget != LOCAL
)
"""Limits that a home begins with. A budget that is not here has limit 0: its owner decides first."""


def demand_limits(limits: tuple[BudgetLimit, ...]) -> None:
    """Raises `Malformed` for two limits of one budget, and for one of the local budget, which has its own keys."""
    budgets = [limit.budget for limit in limits]
    if len(set(budgets)) != len(budgets) or LOCAL in budgets:
        raise Malformed("policy.limits: expected one limit for each budget beside the local one")


def amount_of(text: str | float) -> int:
    """A limit written by a person: 0, or what `nano` reads. Raises `Refused`."""
    return 0 if str(text).strip() in ("0", "0.0") else nano(text)


def limits_shown(ledger: Ledger, limits: Sequence[BudgetLimit]) -> tuple[BudgetLimit, ...]:
    """The limits that matter beside the local budget's: where a study holds something, or the owner chose another."""
    held = {entry.budget for entry in ledger.entries} - {LOCAL}
    known = {limit.budget: limit for limit in limits}
    budgets = (budget for budget in ledger.budgets if budget in held - known.keys())
    unset = (BudgetLimit(budget.measure, budget.unit, 0, 0) for budget in budgets)
    chosen = (limit for limit in limits if limit.budget in held or limit not in SAFE)
    return (*chosen, *unset)


def with_limit(limits: tuple[BudgetLimit, ...], changed: BudgetLimit) -> tuple[BudgetLimit, ...]:
    """The limits with this one in place of its budget's, if it had any."""
    return (*(limit for limit in limits if limit.budget != changed.budget), changed)
