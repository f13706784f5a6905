"""The words of a study of exact sums: what leaves, who the tellers are, what is promised, and when it does not hold."""

from __future__ import annotations

from functools import lru_cache

from anon.accounting.noisy_sums import GaussianSum, epsilon_of
from anon.ldp import NanoEpsilon
from anon.protocols.sum.arranged import DELTA
from anon.protocols.sum.design import CHECK, GRADIENT, MARGINALS, TABLES, one_in, roles, shape_of
from anon.protocols.sum.parties import VOTES, WEIGHTS
from anon.protocols.sum.rule import RESIDUALS, SCORES
from anon.protocols.sum.standing import arrangement_of
from anon.protocols.vectors.checks import CheckSums
from anon.protocols.vectors.residuals import ResidualSums, ScoreSums
from anon.protocols.vectors.tables import TableSums
from anon.protocols.words import ChanceLine, PacketKind
from anon.sharing.arrangement import Arrangement
from anon.study.manifest import Manifest, Survey
from anon.study.records import RECORD, Records
from anon.text.foreign import Quoted
from anon.text.sentences import Figure, Sentence, joined, say, say_many
from anon.wire.addresses import is_loopback


def condition(arrangement: Arrangement) -> Sentence:
    """When the promise holds, in words that follow "if"."""
    if arrangement.has_spare:
        return say(
            "at least two of the three tellers {tellers} keep their shares to themselves, add their noise and sign one "
            "list only",
            tellers=_names(arrangement),
        )
    return say(
        "at least one of the tellers {tellers} keeps its shares to itself, adds its noise and signs one list only",
        tellers=_names(arrangement),
    )


def _names(arrangement: Arrangement) -> Sentence:
    *others, last = [Quoted(teller.name) for teller in arrangement.tellers]
    return say("{tellers} and {last}", tellers=joined(others, ", "), last=last)


def summary(study: Manifest) -> Sentence:
    """How the study asks, in one sentence."""
    tellers = _adding(arrangement_of(study))
    if study.surveys[0].kind in (GRADIENT, SCORES):
        return say_many(
            "Each member sends exact numbers in one round, in shares; {tellers} add them up over all members, and "
            "only sums with noise are published.",
            "Each member sends exact numbers in each of {count} rounds, in shares; {tellers} add them up over all "
            "members, and only sums with noise are published.",
            len(study.surveys),
            tellers=tellers,
        )
    return say(
        "Each member sends exact numbers once, in shares; {tellers} add them up over all members, and only the sum "
        "with noise is published.",
        tellers=tellers,
    )


def _adding(arrangement: Arrangement) -> Sentence:
    if arrangement.has_spare:
        return say("two of the tellers {tellers}", tellers=_names(arrangement))
    return _names(arrangement)


def title(study: Manifest, survey: Survey) -> Sentence:
    """The question of a survey, in a few words."""
    if survey.kind in (TABLES, MARGINALS):
        return say_many(
            "counts in {count} table",
            "counts in {count} tables",
            len(_tables(survey).blocks),
        )
    if survey.kind == GRADIENT:
        return say("gradient of {label}, round {round}", label=Quoted(study.label.name), round=survey.round + 1)
    if survey.kind == CHECK:
        return say("check of a model of {label}", label=Quoted(study.label.name))
    if survey.kind == SCORES:
        return say("counts of a score by {label}", label=Quoted(study.label.name))
    if survey.kind == RESIDUALS:
        return say("corrections about {label}, round {round}", label=Quoted(study.label.name), round=survey.round)
    if survey.kind == WEIGHTS:
        return say("weights of a model of {label}", label=Quoted(study.label.name))
    if survey.kind == VOTES:
        return say("votes on public rows about {label}", label=Quoted(study.label.name))
    return say("products of every two of {count} columns", count=_columns(survey))


def odds(study: Manifest) -> tuple[Sentence, ...]:
    """The content of a packet, its recipients, the promise, and the view of all tellers together."""
    arrangement, records = arrangement_of(study), study.records
    return (
        leaves(study, study.surveys[0]),
        *((taken(study.surveys[0], records),) if records else ()),
        *((_checked(share),) if (share := one_in(study.surveys)) else ()),
        _cut(arrangement),
        _promise(study, records),
        _fewest(arrangement),
        *((_spare(),) if arrangement.has_spare else ()),
        *((_drawn(study.surveys[0]),) if study.surveys[0].kind == MARGINALS else ()),
        _all_together(arrangement),
        *((_one_computer(),) if _on_one_computer(arrangement) else ()),
    )


def _checked(share: int) -> Sentence:
    """The other role, and all that leaves in it."""
    return say(
        "One member in {share}, drawn beforehand, sends no such numbers. It checks the model at the end: its exact "
        "label leaves, and if the model leans to a yes.",
        share=share,
    )


def _on_one_computer(arrangement: Arrangement) -> bool:
    """Loopback addresses: an aggregator reaches such tellers on its own machine alone."""
    return all(is_loopback(teller.address) for teller in arrangement.tellers)


def _one_computer() -> Sentence:
    return say(
        "All these tellers run on the aggregator's own computer, as in a trial. Its owner can see your exact answers."
    )


def _cut(arrangement: Arrangement) -> Sentence:
    if arrangement.has_spare:
        return say(
            "It is cut into two shares for each pair of the three tellers {tellers}, each time anew. The shares of one "
            "teller alone show nothing.",
            tellers=_names(arrangement),
        )
    return say(
        "It is cut into {count} shares, one for each teller: {tellers}. One share alone shows nothing.",
        count=len(arrangement.tellers),
        tellers=_names(arrangement),
    )


def _fewest(arrangement: Arrangement) -> Sentence:
    """The least packets of a sum, which are fewer than the members that a study begins with."""
    return say(
        "A sum is published of {least} members or more: some may miss their time to send.", least=arrangement.minimum
    )


def _spare() -> Sentence:
    """The price of a spare."""
    return say(
        "Two of the three make the sum, so the study goes on if one of them is lost. A dishonest teller could have it "
        "made twice: the promise counts both sums."
    )


def _all_together(arrangement: Arrangement) -> Sentence:
    if arrangement.has_spare:
        return say(
            "If any two of them work together, they see your exact answers: without your name, but so exact that they "
            "may tell who you are."
        )
    return say(
        "If all of them work together, they see your exact answers: without your name, but so exact that they may "
        "tell who you are."
    )


def _drawn(survey: Survey) -> Sentence:
    """The rows, which cost nothing more."""
    return say(
        "From these sums the aggregator makes up {rows} rows, and publishes them too. They stand for nobody, and tell "
        "nothing about you that the sums do not.",
        rows=survey.parameters[0],
    )


def taken(survey: Survey, records: Records) -> Sentence:
    """How the many records of a member become one vector."""
    if survey.kind in (WEIGHTS, VOTES):
        return say(
            "It learns from {most} of your records at most. If you have more, a random draw on your machine decides "
            "which ones count.",
            most=records.most,
        )
    if records.unit == RECORD:
        return say(
            "These numbers are summed over your records, {most} at most. If you have more, a random draw on your "
            "machine decides which ones count.",
            most=records.most,
        )
    return say(
        "These numbers are averages over your records, {most} at most. If you have more, a random draw on your "
        "machine decides which ones count.",
        most=records.most,
    )


def _promise(study: Manifest, records: Records | None) -> Sentence:
    by_record = records is not None and records.unit == RECORD
    if arrangement_of(study).has_spare:
        return _promise_of_pairs(study, by_record)
    if by_record:
        return say(
            "The tellers add up the shares of all members and add noise. What is published keeps to epsilon {epsilon} "
            "for each of your records by itself, plus a chance of one in a million, if at least one teller is honest.",
            epsilon=promised(study),
        )
    return say(
        "The tellers add up the shares of all members and add noise. What is published keeps to epsilon {epsilon}, "
        "plus a chance of one in a million, if at least one of them is honest.",
        epsilon=promised(study),
    )


def _promise_of_pairs(study: Manifest, by_record: bool) -> Sentence:
    if by_record:
        return say(
            "Two tellers add up the shares of all members and add noise. What is published keeps to epsilon {epsilon} "
            "for each of your records by itself, plus a chance of one in a million, if at least two of the three are "
            "honest.",
            epsilon=promised(study),
        )
    return say(
        "Two tellers add up the shares of all members and add noise. What is published keeps to epsilon {epsilon}, "
        "plus a chance of one in a million, if at least two of the three are honest.",
        epsilon=promised(study),
    )


def leaves(study: Manifest, survey: Survey) -> Sentence:
    """The content of a packet."""
    if survey.kind in (TABLES, MARGINALS):
        return say_many(
            "Your exact answer leaves, as a mark in one cell of {count} table.",
            "Your exact answers leave, as a mark in one cell of each of {count} tables.",
            len(_tables(survey).blocks),
        )
    if survey.kind == GRADIENT:
        return say_many(
            "Numbers computed from your exact answers leave once: how far a common model is off for you, column by "
            "column.",
            "Numbers computed from your exact answers leave {count} times: how far a common model is off for you, "
            "column by column.",
            len(roles(study.surveys)[0]),
        )
    if survey.kind == SCORES:
        return say_many(
            "Numbers computed from your exact answers leave {count} time: a mark for your score and your answer.",
            "Numbers computed from your exact answers leave {count} times: first a mark for your score and your "
            "answer, then how far a common model is off for you, category by category.",
            len(study.surveys),
        )
    if survey.kind == WEIGHTS:
        return say(
            "Your machine fits a model to your records. Its {count} exact weights leave once; the records do not.",
            count=shape_of(survey).length,
        )
    if survey.kind == VOTES:
        return say(
            "Your machine learns from your records, and votes on {rows} public rows. What these votes add up to leaves "
            "once, as {count} exact numbers; the records do not.",
            rows=survey.parameters[1],
            count=shape_of(survey).length,
        )
    return say(
        "Your exact answers leave, as {count} numbers: the product of every two of your values.",
        count=shape_of(survey).length,
    )


def packet_kinds(study: Manifest) -> tuple[PacketKind, ...]:
    """The one kind of packet. It is true always, so it has no odds and no picture."""
    survey = study.surveys[0]
    many = study.packets > 1
    drawn = say("each of your {count} packets", count=study.packets) if many else say("your one packet")
    asks = say("exact numbers in sealed shares")
    lines = tuple(ChanceLine(line, ()) for line in odds(study))
    return (PacketKind(survey, (title(study, survey),), drawn, asks, lines, None),)


def promised(study: Manifest) -> Figure:
    """The central epsilon of all that is published, at `DELTA`, rounded up to hundredths."""
    return Figure(f"{-(-exact_epsilon(study) // 10**7) / 100:g}")


@lru_cache(maxsize=64)
def exact_epsilon(study: Manifest) -> NanoEpsilon:
    """The same in 1e-9."""
    arrangement, sums = arrangement_of(study), list[GaussianSum]()
    for survey, planned in zip(study.surveys, arrangement.sums, strict=True):
        shape = shape_of(survey)
        changed = shape.changed("replace-one")
        sums.append(GaussianSum(shape.sensitivity_squared("replace-one"), changed, planned.sigma_squared))
    answered = ([sums[at] for at in places] * arrangement.most_sums for places in roles(study.surveys))
    return max(epsilon_of(together, DELTA) for together in answered)


def _tables(survey: Survey) -> TableSums:
    shape = shape_of(survey)
    if not isinstance(shape, TableSums):
        raise TypeError(f"no tables: {survey.kind}")
    return shape


def _columns(survey: Survey) -> int:
    shape = shape_of(survey)
    return 0 if isinstance(shape, TableSums | ScoreSums | ResidualSums | CheckSums) else len(shape.columns)
