"""A study's promise in sentences, for each measure of privacy, and amounts with the names of their measures.

Beside it stands what joining may tell of the data, where a study is meant for members with many records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from anon.ldp import format_epsilon, odds_moved
from anon.protocols.charge import LOCAL, Budget, Charge, Measure, Unit
from anon.protocols.consent_words import little_protection, plain_cost, where_missing
from anon.protocols.cost_words import DELTA, epsilon_of, percent
from anon.study.manifest import Manifest
from anon.text.sentences import Figure, Sentence, Term, attributed, joined, say, say_many
from anon.transparency.buckets import DECOYS, MEAN, THRESHOLD

_NAMES: Final = {
    Budget(Measure.LOCAL, Unit.PERSON): say("perturbed packets"),
    Budget(Measure.LOCAL, Unit.RECORD): say("perturbed packets about single records"),
    Budget(Measure.CENTRAL, Unit.PERSON): say("noisy results about a person, in epsilon"),
    Budget(Measure.CENTRAL, Unit.RECORD): say("noisy results about a single record, in epsilon"),
    Budget(Measure.ZCDP, Unit.PERSON): say("noisy sums about a person"),
    Budget(Measure.ZCDP, Unit.RECORD): say("noisy sums about a single record"),
}


def budget_name(budget: Budget) -> Sentence:
    """A budget in a few words."""
    return _NAMES[budget]


def too_dear(budget: Budget, cost: int, most: int, lifetime: int) -> Sentence:
    """The objection to a study that costs more than one study may, of a budget of this lifetime."""
    if budget == LOCAL:
        return say(
            "it costs epsilon {cost}, more than the {most} allowed for one study; decline, or allow more",
            cost=format_epsilon(cost),
            most=format_epsilon(most),
        )
    if not lifetime or not most:
        return say(
            "no single study may take so much of your budget for {budget}; decline, or allow more",
            budget=budget_name(budget),
        )
    return say(
        "it takes {cost} of your budget for {budget}, more than the {most} allowed for one study; decline, or allow "
        "more",
        cost=percent(cost, lifetime),
        budget=budget_name(budget),
        most=percent(most, lifetime, left=True),
    )


def not_left(budget: Budget, cost: int, left: int, lifetime: int) -> Sentence:
    """The objection to a study that costs more than is left of a budget of this lifetime."""
    if budget == LOCAL:
        return say(
            "it costs epsilon {cost} and {left} is left; decline, or raise your lifetime budget",
            cost=format_epsilon(cost),
            left=format_epsilon(left),
        )
    if not lifetime:
        return say("you allow nothing for {budget}; decline, or set a budget for that", budget=budget_name(budget))
    return say(
        "it takes {cost} of your budget for {budget}, and {left} of it is left; decline, or raise that budget",
        cost=percent(cost, lifetime),
        budget=budget_name(budget),
        left=percent(left, lifetime, left=True),
    )


def approved_less(approved: int, declared: int) -> Sentence:
    """The objection to a yes for less than the study declares, both as epsilons."""
    amounts = {"approved": format_epsilon(approved), "declared": format_epsilon(declared)}
    return say("you approved epsilon {approved} and it declares {declared}; approve that much, or decline", **amounts)


def too_few_records(manifest: Manifest, found: int | None) -> tuple[Sentence, ...]:
    """The note where fewer records were found than a member should have. It refuses nothing: queries decide what is a
    record, so a refusal would tell the aggregator of the data, uncharged."""
    if manifest.records is None or found is None or found >= manifest.records.least:
        return ()
    return (
        say(
            "The study is meant for members with at least {least} records, and finds {found} of yours: with fewer they "
            "say less. Import more data, decline, or take part all the same.",
            least=manifest.records.least,
            found=found,
        ),
    )


def _told_by_joining(manifest: Manifest) -> tuple[Sentence, ...]:
    if manifest.records is None or manifest.records.least == 1:
        return ()
    return (
        say(
            "The study is meant for members with at least {least} records, and taking part may be read as having them. "
            "Only you see how many it finds. Your packets leave whatever the number.",
            least=manifest.records.least,
        ),
    )


def cost_statements(
    manifest: Manifest, charge: Charge, recomputed: Charge, dearest: Sequence[int], left: int
) -> tuple[Sentence, ...]:
    """The sentences of consent about the cost. `dearest`: the most of each packet; `left`: of the budget, before."""
    after = max(0, left - charge.amount)
    if charge.budget != LOCAL:
        return _central(manifest, charge, recomputed, left, after)
    return (
        say(
            "You send {packets}; at most epsilon {each} each.",
            packets=say_many("{count} perturbed packet", "{count} perturbed packets", manifest.packets),
            each=_in_a_row(dearest),
        ),
        *where_missing(manifest),
        say(
            "About your whole record: epsilon {total}; recomputed from the probabilities: {recomputed}.",
            total=format_epsilon(charge.amount),
            recomputed=format_epsilon(recomputed.amount),
        ),
        say(
            "Whatever anyone believed about you, and even if all packets are linked, the odds of it {moved}.",
            moved=odds_moved(charge.amount),
        ),
        *little_protection(manifest),
        per_attribute(manifest.epsilon_per_attribute),
        budget_change(left, after),
        say("That you take part is visible to the aggregator. Your true answer is not: it sees the changed one."),
        *_told_by_joining(manifest),
        *_narrowed(manifest),
    )


def per_attribute(epsilon: int) -> Sentence:
    """The figure of the dissertation's equation 6, which promises nothing."""
    return say("Per-attribute (AnonML eq. 6): {epsilon}. This is not the guarantee.", epsilon=format_epsilon(epsilon))


def budget_change(before: int, after: int) -> Sentence:
    """The budget without a study, and with it."""
    return say(
        "Your budget: {now} now, {left} with this study. What is unused returns.",
        now=format_epsilon(before),
        left=format_epsilon(after),
    )


def _central(
    manifest: Manifest, charge: Charge, recomputed: Charge, left: int, after: int
) -> tuple[Sentence, ...]:
    budget, again = charge.budget, format_epsilon(recomputed.replacing().amount)
    records = say(
        "A record is all your rows with one key. It protects each record by itself. "
        "All your records together can show more about you."
    )
    counted: dict[str, Figure | Term] = {
        "symbol": budget.symbol,
        "amount": format_epsilon(charge.amount),
        "recomputed": again,
        "before": format_epsilon(left),
        "after": format_epsilon(after),
    }
    exact = say(
        "In technical terms: central epsilon {epsilon} at delta {delta}.",
        epsilon=format_epsilon(epsilon_of(manifest)),
        delta=Figure(f"{DELTA:f}"),
    )
    return (
        say("You send {packets}.", packets=say_many("{count} packet", "{count} packets", manifest.packets)),
        *where_missing(manifest),
        *plain_cost(manifest, charge),
        *little_protection(manifest),
        *(() if charge.unit is Unit.PERSON else (records,)),
        say("The promise holds if {condition}. Otherwise it does not hold.", condition=attributed(charge.condition)),
        say(
            "It takes {part} of what is left of your budget for {budget}. What is unused returns.",
            part=percent(charge.amount, left) if left else say("more than all"),
            budget=budget_name(budget),
        ),
        say("It is a promise of its own kind, and is added to no other."),
        say("That you take part is visible to the aggregator."),
        *_told_by_joining(manifest),
        *_narrowed(manifest),
        *((exact,) if charge.measure is Measure.ZCDP else ()),
        say(
            "The arithmetic: {symbol} {amount}, recomputed {recomputed}. Your budget of it goes from {before} to "
            "{after}.",
            **counted,
        ),
    )


def _narrowed(manifest: Manifest) -> tuple[Sentence, ...]:
    """An aggregator that delays several buckets learns which few a peer fetches; `docs/threats.md` has how."""
    if manifest.cohort.maximum < THRESHOLD:
        return ()
    return (
        say(
            "If {many} people or more take part, an aggregator that holds back its answers can narrow a packet "
            "down to some {few} of them.",
            many=Figure(f"{THRESHOLD:,}"),
            few=Figure(str((1 + DECOYS) * MEAN)),
        ),
    )


def _in_a_row(amounts: Sequence[int]) -> Sentence:
    return joined(map(format_epsilon, amounts), ", ")
