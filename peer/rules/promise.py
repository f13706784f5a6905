"""A study's promise in sentences, for each measure of privacy, and amounts with the names of their measures.

Beside it stands what joining may tell of the data, where a study is meant for members with many records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from anon.ldp import format_epsilon, odds_moved
from anon.protocols.charge import LOCAL, Budget, Charge, Measure, Unit
from anon.protocols.cost_words import epsilon_of
from anon.protocols.registry import charge_of
from anon.study.manifest import Manifest
from anon.text.sentences import Figure, Sentence, attributed, joined, say, say_many
from anon.transparency.buckets import DECOYS, MEAN, THRESHOLD
from peer.rules.limits import in_epsilon

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


def amount_text(budget: Budget, amount: int) -> Sentence:
    """An amount (1e-9) with its symbol; rho also as an epsilon, rounded up."""
    text = joined((budget.symbol, format_epsilon(amount)), " ")
    if budget.measure is not Measure.ZCDP or not amount:
        return text
    return say("epsilon {epsilon} ({amount})", epsilon=format_epsilon(in_epsilon(budget, amount)), amount=text)


def held_text(budget: Budget, amount: int) -> Sentence | Figure:
    """An amount in a list: the bare number where it is of the local budget, which such lists are about."""
    return format_epsilon(amount) if budget == LOCAL else joined((budget.symbol, format_epsilon(amount)), " ")


def too_dear(budget: Budget, cost: int, most: int) -> Sentence:
    """The objection to a study that costs more than one study may."""
    amounts = {"cost": format_epsilon(cost), "most": format_epsilon(most)}
    if budget == LOCAL:
        return say(
            "it costs epsilon {cost}, more than the {most} allowed for one study; decline, or allow more", **amounts
        )
    return say(
        "it costs {amount} of the budget for {budget}, more than the {most} allowed for one study; decline, or allow "
        "more",
        amount=amount_text(budget, cost),
        budget=budget_name(budget),
        most=amount_text(budget, most),
    )


def not_left(budget: Budget, cost: int, left: int) -> Sentence:
    """The objection to a study that costs more than is left."""
    if budget == LOCAL:
        return say(
            "it costs epsilon {cost} and {left} is left; decline, or raise your lifetime budget",
            cost=format_epsilon(cost),
            left=format_epsilon(left),
        )
    return say(
        "it costs {amount} of the budget for {budget}, and {left} of it is left; decline, or raise that budget",
        amount=amount_text(budget, cost),
        budget=budget_name(budget),
        left=amount_text(budget, left),
    )


def approved_less(budget: Budget, approved: int, declared: int) -> Sentence:
    """The objection to a yes for less than the study declares."""
    amounts = {"approved": format_epsilon(approved), "declared": format_epsilon(declared)}
    if budget.measure is not Measure.ZCDP:
        return say(
            "you approved epsilon {approved} and it declares {declared}; approve that much, or decline", **amounts
        )
    return say("you approved rho {approved} and it declares {declared}; approve that much, or decline", **amounts)


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
    now, after = format_epsilon(left), format_epsilon(max(0, left - charge.amount))
    if charge.budget != LOCAL:
        return _central(manifest, charge, recomputed, now, after)
    return (
        say(
            "You send {packets}; at most epsilon {each} each.",
            packets=say_many("{count} perturbed packet", "{count} perturbed packets", manifest.packets),
            each=_in_a_row(dearest),
        ),
        say(
            "About your whole record: epsilon {total}; recomputed from the probabilities: {recomputed}.",
            total=format_epsilon(charge.amount),
            recomputed=format_epsilon(recomputed.amount),
        ),
        say(
            "Whatever anyone believed about you, and even if all packets are linked, the odds of it {moved}.",
            moved=odds_moved(charge.amount),
        ),
        per_attribute(manifest.epsilon_per_attribute),
        budget_change(left, max(0, left - charge.amount)),
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
    manifest: Manifest, charge: Charge, recomputed: Charge, now: Figure, after: Figure
) -> tuple[Sentence, ...]:
    budget, again = charge.budget, format_epsilon(recomputed.replacing().amount)
    amount = amount_text(budget, charge.amount)
    whole = say("About everything of yours: {amount}; recomputed: {recomputed}.", amount=amount, recomputed=again)
    about_one = say("About one record of yours: {amount}; recomputed: {recomputed}.", amount=amount, recomputed=again)
    plain, counted = plain_cost(manifest, charge), tuple[Sentence, ...]()
    if charge.measure is Measure.ZCDP:
        named = {"amount": format_epsilon(charge.amount), "recomputed": again}
        counted = (say("Your budget counts that as rho {amount}; recomputed: {recomputed}.", **named),)
    records = say(
        "A record is all your rows with one key. It protects each record by itself. "
        "All your records together can show more about you."
    )
    moved = say("Then, whatever anyone believed about that, the odds of it {moved}.", moved=odds_moved(charge.amount))
    return (
        say("You send {packets}.", packets=say_many("{count} packet", "{count} packets", manifest.packets)),
        *(plain if counted else (whole,) if charge.unit is Unit.PERSON else (about_one,)),
        *counted,
        *(() if charge.unit is Unit.PERSON else (records,)),
        say("The promise holds if {condition}. Otherwise it does not hold.", condition=attributed(charge.condition)),
        *((moved,) if charge.measure is Measure.CENTRAL else ()),
        say(
            "Your budget for {budget}: {now} now, {left} with this study. What is unused returns.",
            budget=budget_name(budget),
            now=now,
            left=after,
        ),
        say("It is a promise of its own kind, and is added to no other."),
        say("That you take part is visible to the aggregator."),
        *_told_by_joining(manifest),
        *_narrowed(manifest),
    )


def epsilon_held(manifest: Manifest, amount: int) -> int:
    """An amount of the study's charge as an epsilon (1e-9): all of it is the study's one epsilon."""
    return min(in_epsilon(charge_of(manifest).budget, amount), epsilon_of(manifest))


def plain_cost(manifest: Manifest, charge: Charge) -> tuple[Sentence, ...]:
    """The one epsilon of a study whose results are noisy, and what it allows; with a delta in exact words."""
    epsilon, moved = format_epsilon(epsilon_of(manifest)), odds_moved(epsilon_of(manifest))
    if charge.measure is not Measure.ZCDP:
        return (
            say("Epsilon {epsilon}, of what is published.", epsilon=epsilon),
            say("Whatever anyone believed about you, the odds of it {moved}.", moved=moved),
        )
    if charge.unit is Unit.RECORD:
        return (say(
            "Epsilon {epsilon} about each record of yours, of what is published. Had one record been another, the "
            "chances of whatever is published {moved}, and by one in a million more.",
            epsilon=epsilon,
            moved=moved,
        ),)
    return (say(
        "Epsilon {epsilon} about you, of what is published. Had your answers been others, the chances of whatever is "
        "published {moved}, and by one in a million more.",
        epsilon=epsilon,
        moved=moved,
    ),)


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
