"""The questions of a histogram study and how often they are answered truly, in words."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from anon.ldp import SCALE, Mechanism, format_epsilon
from anon.protocols.histogram.asked import MIDDLE, SCORE, SIDE
from anon.protocols.histogram.one_bit import ROUNDED, centre_of, plus_share, signs_of
from anon.protocols.names import category_text
from anon.protocols.words import (
    ChanceLine,
    PacketKind,
    Picture,
    Probability,
    mechanism_line,
    mechanism_odds,
    mechanism_picture,
)
from anon.study.manifest import Manifest, Survey
from anon.text.foreign import Quoted
from anon.text.sentences import Figure, Sentence, listed, say, say_many


def summary(manifest: Manifest) -> Sentence:
    """How a study of this protocol asks, in one sentence."""
    return say_many(
        "Each member answers one question, drawn at random; the answer is changed at random before it leaves.",
        "Each member answers {count} questions, drawn at random; each answer is changed at random before it leaves.",
        manifest.packets,
    )


def packet_kinds(manifest: Manifest) -> tuple[PacketKind, ...]:
    """Every kind of packet that a study can ask for, the likeliest first."""
    grouped: dict[tuple[object, ...], list[Survey]] = {}
    for survey in manifest.surveys:
        like = survey.kind, survey.mechanism, survey.m, survey.p, survey.q, centre_of(survey)
        grouped.setdefault(like, []).append(survey)
    weight = {
        row.survey: Fraction(row.weight, slot.total) for slot in manifest.slots for row in slot.rows
    }
    expected = {key: sum((weight[survey.survey] for survey in found), Fraction()) for key, found in grouped.items()}
    return tuple(
        _kind(manifest, grouped[key], expected[key])
        for key in sorted(grouped, key=lambda key: -expected[key])
    )


def _kind(manifest: Manifest, surveys: Sequence[Survey], expected: Fraction) -> PacketKind:
    # A bit about the label alone says less.
    first = next((survey for survey in surveys if -1 in signs_of(survey)), surveys[0])
    return PacketKind(
        first,
        tuple(_question(manifest, survey) for survey in surveys),
        _drawn(manifest, expected),
        _asks(first),
        lines(first),
        _picture(first),
    )


def _drawn(manifest: Manifest, expected: Fraction) -> Sentence:
    if manifest.packets > 1:
        return say(
            "on average {some:.2g} of your {packets} packets", some=float(expected), packets=manifest.packets
        )
    if expected == 1:
        return say("your one packet")
    return say("your one packet in {some} cases", some=Probability(int(expected * SCALE)).in_words)


def _asks(survey: Survey) -> Sentence:
    if survey.kind == "histogram":
        return say("one answer that stands for some of the features together with the label")
    if survey.kind == MIDDLE:
        return say("one plus or minus about how far your features point to a yes, as staff expect")
    if survey.kind == SIDE:
        return say("whether your features point to a yes, as staff expect, more than those of most")
    if survey.kind == SCORE:
        return say("one plus or minus about the label and whether your features point to a yes, as staff expect")
    if survey.kind == "bit":
        return say("one plus or minus about one feature and the label")
    if survey.kind == "quantile":
        return say("in which of several ranges one number of yours lies")
    return say("whether one number of yours lies above a threshold")


def _question(manifest: Manifest, survey: Survey) -> Sentence:
    """The subject of a survey."""
    about, label = listed(survey.features), Quoted(manifest.label.name)
    if survey.kind == SCORE:
        return say("{features}: do they point to a yes; with {label}", features=about, label=label)
    if survey.kind == "bit":
        feature = manifest.feature(survey.features[0])
        positive = [category_text(feature, place) for place, sign in enumerate(signs_of(survey)) if sign > 0]
        if len(positive) == len(signs_of(survey)):
            return say("{label} alone", label=label)
        return say("{categories}; with {label}", categories=_either(positive), label=label)
    if survey.kind == "histogram":
        return say("{features} with {label}", features=about, label=label)
    return about


def _either(choices: Sequence[Sentence]) -> Sentence:
    """The choices with "or" between them."""
    found = choices[0]
    for choice in choices[1:]:
        found = say("{before} or {choice}", before=found, choice=choice)
    return found


def odds(manifest: Manifest) -> tuple[Sentence, ...]:
    """In words, from the integer probabilities: how often each kind of packet tells the truth. One line per kind."""
    kinds = {
        (_rounding(survey), survey.mechanism, survey.m, survey.p, survey.q): survey for survey in manifest.surveys
    }
    return tuple(
        _odds_of_bit(survey) if rounded else mechanism_odds(survey.build()) for (rounded, *_), survey in kinds.items()
    )


def _rounding(survey: Survey) -> str:
    """Which sentence says how a plus or minus of a survey comes about; none where it is not rounded."""
    return "" if survey.kind not in ROUNDED else MIDDLE if survey.kind == MIDDLE else "bit"


def _odds_of_bit(survey: Survey) -> Sentence:
    built = survey.build()
    kept: dict[str, float | Figure] = {
        "true": built.p / SCALE, "other": built.q / SCALE, "epsilon": format_epsilon(built.epsilon)
    }  # fmt: skip
    if survey.kind == MIDDLE:
        return say(
            "One plus or minus about how far your features point to a yes: rounded at random first, then kept with "
            "{true:.1%} and turned around with {other:.2%}; epsilon {epsilon}.", **kept
        )
    return say(
        "One plus or minus about one of your categories and the label: rounded at random first, then kept with "
        "{true:.1%} and turned around with {other:.2%}; epsilon {epsilon}.", **kept
    )


def lines(survey: Survey) -> tuple[ChanceLine, ...]:
    """The packet's content and how often it is true, in words."""
    built = survey.build()
    return _bit_lines(survey, built) if survey.kind in ROUNDED else (mechanism_line(built),)


def bit_chance(survey: Survey, sign: int, label: int) -> Probability:
    """The probability of a plus for a record whose category has this sign and whose label is 0 or 1. Rounding comes
    first, then random response, so it is (plus p + (1 - plus) q) in 2**64ths."""
    plus = plus_share(survey, sign, label)
    return Probability((plus * survey.p + (SCALE - plus) * survey.q) // SCALE)


def _bit_lines(survey: Survey, built: Mechanism) -> tuple[ChanceLine, ...]:
    true, other = Probability(built.p), Probability(built.q)
    opening = ChanceLine(
        say(
            "A plus or a minus is sent. Yours is drawn from your answer first, then sent as it is in {true} cases and "
            "turned around in {other}.",
            true=true.in_words,
            other=other.in_words,
        ),
        (true, other),
    )
    if survey.kind == MIDDLE:
        return (opening,)
    positive, negative = bit_chance(survey, 1, 1), bit_chance(survey, 1, 0)
    with_sign = ChanceLine(
        say(
            "So somebody for whom the question is a yes sends a plus in {positive} cases if the label is yes too, and "
            "in {negative} if it is no.",
            positive=positive.in_words,
            negative=negative.in_words,
        ),
        (positive, negative),
    )
    away, both = bit_chance(survey, -1, 1), bit_chance(survey, -1, 0)
    without = ChanceLine(
        say(
            "Somebody for whom it is a no sends a plus in {away} cases if the label is yes, and in {both} if it is no.",
            away=away.in_words,
            both=both.in_words,
        ),
        (away, both),
    )
    both_signs = survey.kind == SCORE or -1 in signs_of(survey)
    return (opening, with_sign, without) if both_signs else (opening, with_sign)


def _picture(survey: Survey) -> Picture:
    if survey.kind not in ROUNDED:
        return mechanism_picture(survey.build())
    kept = Probability(survey.build().p)
    text = say(
        "A plus or a minus is drawn from your answer. With {share} people it is sent so, else turned around.",
        share=kept.in_ten,
    )
    return Picture(text, kept)


def survey_title(manifest: Manifest, survey: Survey) -> str:
    """The question of a survey."""
    asked = " × ".join(survey.features)
    if survey.kind == SCORE:
        return f"the declared score of {asked}, and {manifest.label.name}"
    kinds = {"histogram": f"{asked} × {manifest.label.name}", "bit": f"one bit about {asked} and {manifest.label.name}"}
    kinds |= {MIDDLE: f"the middle of the declared score of {asked}", SIDE: f"a side of the declared score of {asked}"}
    return kinds.get(survey.kind, f"cuts of {asked}")
