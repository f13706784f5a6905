"""The odds of a packet in words: what consent shows of any protocol, from a mechanism's own integers.

Every probability here is a numerator over 2**64 (`Probability`), taken or added up from the survey's p and q. Its words
are rounded to the nearest case and never to "always" or "never".
"""

from __future__ import annotations

from collections.abc import Sequence

from anon.ldp import SCALE, Mechanism, format_epsilon
from anon.ldp.subset import SubsetSelection
from anon.study.manifest import Survey
from anon.text.sentences import Sayable, Sentence, say
from anon.values import frozen

FEWEST_CASES = 5


@frozen
class Probability:
    """A probability: `numerator` over 2**64."""

    numerator: int

    @property
    def cases(self) -> tuple[int, int]:
        """(73, 100): the nearest count of cases out of the least power of ten that leaves some on both sides."""
        per = 100
        while True:
            count = (2 * self.numerator * per + SCALE) // (2 * SCALE)
            if (count >= FEWEST_CASES and count < per) or per >= 10**12:
                return count, per
            per *= 10

    @property
    def in_ten(self) -> Sentence:
        """Out of ten people, rounded to the nearest, and never to all of them or none."""
        count = (20 * self.numerator + SCALE) // (2 * SCALE)
        if count < 1:
            return say("fewer than 1 in 10")
        return say("more than 9 in 10") if count > 9 else say("about {number} in 10", number=count)

    @property
    def in_words(self) -> Sentence:
        """The nearest count of cases, such as "73 of 100"."""
        count, per = self.cases
        return say("{cases:,} of {all:,}", cases=count, all=per)

    def __str__(self) -> str:
        return self.in_words


@frozen
class ChanceLine:
    """One sentence with the chances that it states, in order."""

    text: Sentence
    chances: tuple[Probability, ...]


@frozen
class Picture:
    """Ten people who answer alike, drawn to the exact chance that what is sent is true, and one sentence about them."""

    text: Sentence
    chance: Probability


@frozen
class PacketKind:
    """The surveys of one kind and mechanism: how often they are drawn, what is sent, how often it is true. `survey` is
    one of them, `questions` says what each is about. A packet that is always true has no picture."""

    survey: Survey
    questions: tuple[Sentence, ...]
    drawn: Sentence
    asks: Sentence
    lines: tuple[ChanceLine, ...]
    picture: Picture | None

    @property
    def surveys(self) -> int:
        """How many questions there are of this kind."""
        return len(self.questions)


def truest(kinds: Sequence[PacketKind]) -> Picture | None:
    """The picture of the kind whose packets are true most often: the one that protects least."""
    return max((kind.picture for kind in kinds if kind.picture), key=lambda drawn: drawn.chance.numerator, default=None)


def mechanism_line(built: Mechanism) -> ChanceLine:
    """The content of a mechanism's report and how often it is true, as the consent screen says it."""
    true, other = Probability(built.p), Probability(built.q)
    odds = {"true": true.in_words, "other": other.in_words}
    if built.name == "krr":
        if built.m > 2:
            return ChanceLine(
                say(
                    "Your true answer is sent in {true} cases, each of the {others} others in {other}.",
                    **odds,
                    others=built.m - 1,
                ),
                (true, other),
            )
        said = say("Your true answer is sent in {true} cases, the other one in {other}.", **odds)
        return ChanceLine(said, (true, other))
    if isinstance(built, SubsetSelection):
        return ChanceLine(
            say(
                "{sent} of the {possible} possible answers are sent. Your true one is among them in {true} cases, any "
                "other in {other}.",
                **odds,
                sent=built.w,
                possible=built.m,
            ),
            (true, other),
        )
    return ChanceLine(
        say(
            "{cells} cells are sent, each marked or not. Your cell is marked in {true} cases, any other in {other}.",
            **odds,
            cells=built.m,
        ),
        (true, other),
    )


def mechanism_picture(built: Mechanism) -> Picture:
    """How often a mechanism's report is true, as ten people who answer alike."""
    true, other = Probability(built.p), Probability(built.q)
    if built.name == "krr" and built.m > 2:
        text = say(
            "Of people with your answer, {share} send it. The rest send another answer, drawn at random.",
            share=true.in_ten,
        )
    elif built.name == "krr":
        text = say("Of people with your answer, {share} send it. The rest send the opposite.", share=true.in_ten)
    elif isinstance(built, SubsetSelection):
        text = say(
            "{sent} of {possible} possible answers are sent. Of people with your answer, {share} send it among them.",
            sent=built.w,
            possible=built.m,
            share=true.in_ten,
        )
    else:
        text = say(
            "A mark is sent for each of {possible} possible answers. Of people with your answer, {share} mark it. "
            "Of people with another one, {others} mark yours as well.",
            possible=built.m,
            share=true.in_ten,
            others=other.in_ten,
        )
    return Picture(text, true)


def mechanism_odds(mechanism: Mechanism) -> Sentence:
    """The same in one line with its cost, as the terminal says it."""
    values: dict[str, Sayable] = {
        "all": mechanism.m,
        "true": mechanism.p / SCALE,
        "other": mechanism.q / SCALE,
        "epsilon": format_epsilon(mechanism.epsilon),
    }
    if mechanism.name == "krr":
        return say(
            "One answer out of {all}: your true one with {true:.1%}, each of the others with {other:.2%}; "
            "epsilon {epsilon}.",
            **values,
        )
    if isinstance(mechanism, SubsetSelection):
        return say(
            "{sent} answers out of {all}: your true one among them with {true:.1%}, each of the others with "
            "{other:.1%}; epsilon {epsilon}.",
            **values,
            sent=mechanism.w,
        )
    return say(
        "{all} yes-or-no marks, one per possible answer: at your true answer a yes with {true:.1%}, at any other a yes "
        "with {other:.1%}; epsilon {epsilon}.",
        **values,
    )
