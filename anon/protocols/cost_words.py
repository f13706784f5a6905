"""A member's cost in words, for staff and for reports: by the measure of the study's charge.

A local epsilon holds by itself. Any other amount is of what is published, and stands with its condition.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from anon.accounting.statement import Batch, account, in_words
from anon.accounting.zcdp import epsilon_of_rho
from anon.ldp import NanoEpsilon, format_epsilon, odds_moved
from anon.protocols.charge import LOCAL, Measure
from anon.protocols.contract import CentralPart
from anon.protocols.registry import charge_of, protocol_of
from anon.study.manifest import Manifest

DELTA: Final = Decimal("1e-6")
"""The delta at which rho is shown as an epsilon."""
_HUNDREDTH: Final = 10**7


def is_local(study: Manifest) -> bool:
    """True if every packet is perturbed before it leaves."""
    return charge_of(study).budget == LOCAL


def epsilon_of(study: Manifest) -> NanoEpsilon:
    """The one epsilon (1e-9) that every text names: that of the charge, or of what is published at `DELTA`, rounded up
    to hundredths."""
    charge, protocol = charge_of(study), protocol_of(study)
    if charge.measure is not Measure.ZCDP:
        return NanoEpsilon(charge.amount)
    found = protocol.promised(study) if isinstance(protocol, CentralPart) else epsilon_of_rho(charge.amount, DELTA)
    return NanoEpsilon(-(-found // _HUNDREDTH) * _HUNDREDTH)


def cost_in_words(study: Manifest) -> str:
    """The study's one epsilon, with its kind."""
    charge, epsilon = charge_of(study), format_epsilon(epsilon_of(study))
    if charge.measure is Measure.ZCDP:
        return f"central epsilon {epsilon} at delta {DELTA}"
    return f"record-level epsilon {epsilon}" if charge.budget == LOCAL else f"central epsilon {epsilon}"


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
    counted = f"Budgets count it as rho {format_epsilon(charge.amount)} of zero-concentrated differential privacy."
    return (
        f"Cost of each {charge.unit}, {charge.neighbours}: {cost_in_words(study)}, over all that is published.",
        *((counted,) if charge.measure is Measure.ZCDP else ()),
        f"It holds if {charge.condition}. Otherwise it does not hold.",
        _WRITTEN if any(survey.written for survey in study.surveys) else _SHARED,
    )


_SHARED = "Packets hold exact answers in sealed shares: only sums with noise are published."
_WRITTEN = "Packets hold open texts, and letters sealed to their readers: all of them are published."
