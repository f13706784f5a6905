"""A member's cost in words, for staff and for reports: by the measure of the study's charge.

A local epsilon holds by itself. Any other amount is of what is published, and stands with its condition.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from anon.accounting.statement import Batch, account, in_words
from anon.accounting.zcdp import epsilon_of_rho
from anon.ldp import format_epsilon, odds_moved
from anon.protocols.charge import LOCAL, Charge, Measure
from anon.protocols.registry import charge_of
from anon.study.manifest import Manifest

DELTA: Final = Decimal("1e-6")
"""The delta at which rho is shown as an epsilon."""


def is_local(study: Manifest) -> bool:
    """True if every packet is perturbed before it leaves."""
    return charge_of(study).budget == LOCAL


def cost_in_words(study: Manifest) -> str:
    """The amount, with the name of its measure."""
    return amount_in_words(charge_of(study))


def amount_in_words(charge: Charge) -> str:
    """The amount of a charge, with the name of its measure; rho also as an epsilon, rounded up."""
    amount = format_epsilon(charge.amount)
    if charge.measure is Measure.ZCDP:
        epsilon = -(-epsilon_of_rho(charge.amount, DELTA) // 10**7) / 100 if charge.amount else 0.0
        return f"rho {amount} (central epsilon {epsilon:.2f} at delta {DELTA})"
    return f"record-level epsilon {amount}" if charge.budget == LOCAL else f"central epsilon {amount}"


def promise_in_words(study: Manifest) -> str:
    """The meaning of the amount, as the rest of a sentence."""
    charge = charge_of(study)
    if charge.budget == LOCAL:
        return f"for somebody who sees all that one member sent, the odds about that member {odds_moved(charge.amount)}"
    return f"it is of what is published, and holds if {charge.condition}"


def statement(study: Manifest, batch: Batch) -> tuple[str, ...]:
    """The privacy statement, where so many packets hide one another."""
    charge = charge_of(study)
    if charge.budget == LOCAL:
        return in_words(account(study, batch))
    return (
        f"Cost of each {charge.unit}, {charge.neighbours}: {amount_in_words(charge)}, over all that is published.",
        f"It holds if {charge.condition}. Otherwise it does not hold.",
        _WRITTEN if any(survey.written for survey in study.surveys) else _SHARED,
    )


_SHARED = "Packets hold exact answers in sealed shares: only sums with noise are published."
_WRITTEN = "Packets hold open texts, and letters sealed to their readers: all of them are published."
