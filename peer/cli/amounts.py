"""Budgets and what studies hold of them, as `anonml peer` shows them: an epsilon and its odds; amounts as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anon.kit.terminal.foreign import inline, short
from anon.kit.terminal.printing import Terminal, styled
from anon.ldp import format_epsilon
from anon.protocols.charge import LOCAL, Budget
from anon.protocols.cost_words import Amount, in_epsilon, percent
from peer.rules.consent import Policy
from peer.rules.durations import text_of
from peer.rules.ledger import Ledger
from peer.rules.limits import limits_shown
from peer.rules.promise import budget_name
from peer.store.summaries import Part


def budget_json(ledger: Ledger, policy: Policy, held: Sequence[Part]) -> dict[str, Any]:
    """The ledger and the owner's limits."""
    return {
        "lifetime": ledger.lifetime / 1e9,
        "available": ledger.available / 1e9,
        "entries": [
            {
                "study": part.entry.study.hex(),
                "title": part.entry.title,
                "epsilon_reserved": part.reserved.epsilon / 1e9,
                "epsilon_spent": part.spent.epsilon / 1e9,
                "kind": part.entry.measure,
                "unit": part.entry.unit,
                "condition": part.entry.condition,
                "reserved": part.entry.reserved / 1e9,
                "spent": part.entry.spent / 1e9,
            }
            for part in held
        ],
        "other_budgets": [
            {
                "measure": limit.measure,
                "unit": limit.unit,
                "epsilon_lifetime": in_epsilon(limit.budget, limit.lifetime) / 1e9,
                "epsilon_per_study": in_epsilon(limit.budget, limit.per_study) / 1e9,
                "lifetime": limit.lifetime / 1e9,
                "available": ledger.available_of(limit.budget) / 1e9,
                "per_study": limit.per_study / 1e9,
            }
            for limit in policy.limits
        ],
        "per_study": policy.max_epsilon / 1e9,
        "minimum_cohort": policy.minimum_cohort,
        "minimum_window": policy.minimum_window,
    }


def show_budget(ledger: Ledger, policy: Policy, held: Sequence[Part]) -> None:
    """The rest of each budget, the owner's limits, and each study's part."""
    console, others = Terminal(), limits_shown(ledger, policy.limits)
    available, lifetime = format_epsilon(ledger.available), format_epsilon(ledger.lifetime)
    told = f"of epsilon {lifetime} left" + f" for {budget_name(LOCAL)}" * bool(others)
    console.print(styled("[bold]{rest}[/] {told}", rest=available, told=told))
    console.print(
        f"a single study may cost {format_epsilon(policy.max_epsilon)} (--per-study), must have at least "
        f"{policy.minimum_cohort} people (--minimum-cohort), and beyond this machine windows of at least "
        f"{text_of(policy.minimum_window)} (--minimum-window)",
    )
    _show_parts(console, held, LOCAL)
    for limit in others:
        budget = limit.budget
        rest = percent(ledger.available_of(budget), limit.lifetime, left=True)
        whole, most = (format_epsilon(in_epsilon(budget, amount)) for amount in (limit.lifetime, limit.per_study))
        told = f"of epsilon {whole} left for {budget_name(budget)}, never added to another budget"
        options = f"a single study may cost epsilon {most} (--measure {budget.measure} --unit {budget.unit})"
        console.print(styled("[bold]{rest}[/] {told}; {options}", rest=rest, told=told, options=options))
        _show_parts(console, held, budget)


def _show_parts(console: Terminal, held: Sequence[Part], budget: Budget) -> None:
    for part in held:
        if part.entry.budget == budget:
            condition = f"; the promise holds if {inline(part.entry.condition)}" if part.entry.condition else ""
            console.print(f"  {short(part.entry.title)}: {parts(part.spent, part.reserved, part.whole)}{condition}")


def parts(spent: Amount, reserved: Amount, whole: Amount) -> str:
    """The two amounts of a study, and the odds of both together."""
    told = f"epsilon {figure(spent)} spent, {figure(reserved)} reserved"
    return f"{told}; {whole.odds}" if whole.amount else told


def figure(held: Amount) -> str:
    """The epsilon of it, without a name."""
    return format_epsilon(held.epsilon)
