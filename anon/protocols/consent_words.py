"""The words of consent that follow from a study alone: a peer shows them to its owner, the desk to staff beforehand.

An owner's values, budgets, limits and tellers known from before are not here (`peer.rules.consent`).
"""

from __future__ import annotations

from anon.ldp import format_epsilon, odds_moved
from anon.protocols.charge import LOCAL, Charge, Measure, Unit
from anon.protocols.contract import DeclaredPart
from anon.protocols.cost_words import TENFOLD, epsilon_of
from anon.protocols.models.belief import starting
from anon.protocols.names import expectation
from anon.protocols.registry import charge_of, protocol_of
from anon.protocols.tellers import tellers_of
from anon.protocols.words import Picture, truest
from anon.study.features import USUAL_COHORT
from anon.study.manifest import Manifest
from anon.text.foreign import Quoted
from anon.text.sentences import Sentence, attributed, say, say_many
from anon.values import frozen

WHO_ASKS = say("Who asks")
SAY_YES_BEFORE = say("Say yes before")
LEAVES = say("What leaves your machine")
ADDED_UP = say("Who adds it up")
OWN_ANSWER = say("Your own answer")
COSTS = say("What it costs")
DECISION = say("Do you take part?")
ASKED = say("What is asked")
SOURCE = say("Where your file comes from")
"""The heads of the parts."""


@frozen
class ConsentWords:
    """The sentences of each part, in the order of the page.

    `leaves` has the odds behind it, or where answers are perturbed a `picture` of people who answer alike. `declared`
    says how much of a model staff declared. `missing` says what leaves without an owner's answers. `visible` stands out
    between `own` and `decide_by`. `asked` leads to the questions: name, sentence and expected direction. `warning`
    stands out below the cost.
    """

    leaves: Sentence
    picture: Picture | None
    odds: tuple[Sentence, ...]
    declared: tuple[Sentence, ...]
    missing: tuple[Sentence, ...]
    added_up: tuple[Sentence, ...]
    own: Sentence
    visible: Sentence
    decide_by: Sentence
    cost: tuple[Sentence, ...]
    warning: tuple[Sentence, ...]
    final: Sentence
    asked: Sentence
    questions: tuple[tuple[str, str, Sentence], ...]


def consent_words(study: Manifest) -> ConsentWords:
    """The words of a study's consent."""
    charge, protocol = charge_of(study), protocol_of(study)
    local, arrangement = charge.budget == LOCAL, tellers_of(study)
    written = any(survey.written for survey in study.surveys)
    drawn = truest(protocol.packet_kinds(study)) if local and not written else None
    own, decide_by = _own(local)
    return ConsentWords(
        leaves=_noisy(study.packets) if drawn is not None else protocol.summary(study),
        picture=drawn,
        odds=() if drawn is not None else protocol.odds(study),
        declared=declared(study),
        missing=where_missing(study),
        added_up=to_check(arrangement.has_spare) if arrangement is not None else (),
        own=own,
        visible=say("That you take part is visible to those who ask."),
        decide_by=decide_by,
        cost=cost_shown(study, charge),
        warning=little_protection(study),
        final=say("What was sent cannot be called back. You can leave until enrolment closes."),
        asked=say("One packet is about some of these, together with the last one:")
        if local
        else say("The numbers that leave are computed from these:"),
        questions=tuple(
            (feature.name, feature.description, expectation(feature, study.label.name)) for feature in study.features
        ),
    )


def _noisy(packets: int) -> Sentence:
    return say_many(
        "One noisy answer leaves, once. It is changed at random on your machine first. So it is a hint and no proof.",
        "{count} noisy answers leave, once. Each is changed at random on your machine first. So it is a hint and no "
        "proof.",
        packets,
    )


def declared(study: Manifest) -> tuple[Sentence, ...]:
    """How much of the model staff declared, and when answers show that it is wrong; nothing of any other model."""
    protocol = protocol_of(study)
    enough = protocol.enough(study) if isinstance(protocol, DeclaredPart) else None
    features = sum(bool(feature.expects) for feature in study.features)
    return () if enough is None else (starting(features, enough),)


def where_missing(study: Manifest) -> tuple[Sentence, ...]:
    """The content of what leaves without an owner's answers: a late computer's, and that of a missing label."""
    late = say("If your computer is not ready in time, missing values leave in place of yours.")
    label = Quoted(study.label.name)
    if study.label.missing == "positive":
        return late, say("Where {label} is missing, it counts as a yes.", label=label)
    return late, say("Where {label} is missing, it counts as a no.", label=label)


def _own(local: bool) -> tuple[Sentence, Sentence]:
    if local:
        return (
            say(
                "Only you see this table. The study asks about some of its lines, together with the last. Your true "
                "answer stays here."
            ),
            say("So decide by the odds, not by your answer."),
        )
    return (
        say("Only you see this table. The numbers that leave are computed from these values exactly."),
        say("So decide by whom you trust, not by your answer."),
    )


def to_check(spare: bool) -> tuple[Sentence, ...]:
    """On what the promise of tellers rests, and what an owner can do about that."""
    rests = say(
        "The promise rests on one of these tellers: its operator keeps the shares to itself and works with none of the "
        "others."
    )
    if spare:
        rests = say(
            "The promise rests on two of these tellers: their operators keep the shares to themselves and do not work "
            "together."
        )
    return (
        rests,
        say(
            "The aggregator chose them. Nothing here can check who they are: one person, or the aggregator, could run "
            "all of them under these names."
        ),
        say(
            "You can check it. Each teller publishes its words itself, in a place that the aggregator does not "
            "control. Compare them. Different words, or none to be found: count that teller as the aggregator's."
        ),
    )


def cost_shown(study: Manifest, charge: Charge) -> tuple[Sentence, ...]:
    """The cost in plain words, and where it is of what is published, its condition."""
    if charge.budget == LOCAL:
        epsilon, moved = format_epsilon(charge.amount), odds_moved(charge.amount)
        return (say(
            "Epsilon {epsilon} of your lifetime budget. Whatever anyone believed about you, the odds of it {moved}.",
            epsilon=epsilon,
            moved=moved,
        ),)
    held = say("The promise holds if {condition}. Otherwise it does not hold.", condition=attributed(charge.condition))
    return (*plain_cost(study, charge), held)


def little_protection(study: Manifest) -> tuple[Sentence, ...]:
    """The warning of a study that lets odds move more than tenfold, so a half to 10 in 11 or more; none of others."""
    if epsilon_of(study) <= TENFOLD:
        return ()
    return (say(
        "Epsilon {epsilon} protects little: a guess about you that is right 5 times in 10 can become right more than 9 "
        "times in 10.",
        epsilon=format_epsilon(epsilon_of(study)),
    ),)


def plain_cost(study: Manifest, charge: Charge) -> tuple[Sentence, ...]:
    """The one epsilon of a study whose results are noisy, and what it allows; with a delta in exact words."""
    epsilon, moved = format_epsilon(epsilon_of(study)), odds_moved(epsilon_of(study))
    if charge.measure is not Measure.ZCDP and charge.unit is Unit.RECORD:
        return (say(
            "Epsilon {epsilon} about each record of yours, of what is published. Whatever anyone believed about one "
            "record, the odds of it {moved}.",
            epsilon=epsilon,
            moved=moved,
        ),)
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


def among(least: int, admission: str) -> tuple[Sentence, ...]:
    """The warning of consent about the others, where there is one: anybody can enrol, or a study goes on among few."""
    if admission == "open":
        return (say("Anyone can enrol here any number of times. Do not count on hiding among the others."),)
    return among_few(least, admission)


def among_few(least: int, admission: str) -> tuple[Sentence, ...]:
    """The sentence on a study that goes on for its owner among fewer than a home begins with; none for others.

    Where anybody can enrol nothing is said: there no number of people is one to hide among.
    """
    if least >= USUAL_COHORT or admission == "open":
        return ()
    return (say(
        "This study goes on for you among as few as {least} people. Among so few it is easier to find out which answer "
        "is yours.",
        least=least,
    ),)
