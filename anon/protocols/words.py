"""The odds of a packet in words: what consent shows of any protocol, from a mechanism's own integers.

Every probability here is a numerator over 2**64 (`Probability`), taken or added up from the survey's p and q. Its words
are rounded to the nearest case and never to "always" or "never".
"""

from __future__ import annotations

from attrs import frozen

from anon.ldp import SCALE, Mechanism, format_epsilon
from anon.ldp.subset import SubsetSelection
from anon.study.manifest import Survey

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
    def in_ten(self) -> str:
        """Out of ten people, rounded to the nearest, and never to all of them or none."""
        count = (20 * self.numerator + SCALE) // (2 * SCALE)
        return "fewer than 1 in 10" if count < 1 else "more than 9 in 10" if count > 9 else f"about {count} in 10"

    def __str__(self) -> str:
        count, per = self.cases
        return f"{count:,} of {per:,}"


@frozen
class Line:
    """One sentence with the chances that it states, in order."""

    text: str
    chances: tuple[Probability, ...]


@frozen
class Picture:
    """Ten people who answer alike, drawn to the exact chance that what is sent is true, and one sentence about them."""

    text: str
    chance: Probability


@frozen
class PacketKind:
    """The surveys of one kind and mechanism: how often they are drawn, what is sent, how often it is true. `survey` is
    one of them, `questions` says what each is about."""

    survey: Survey
    questions: tuple[str, ...]
    drawn: str
    asks: str
    lines: tuple[Line, ...]
    picture: Picture

    @property
    def surveys(self) -> int:
        """How many questions there are of this kind."""
        return len(self.questions)


def mechanism_line(built: Mechanism) -> Line:
    """The content of a mechanism's report and how often it is true, as the consent screen says it."""
    true, other = Probability(built.p), Probability(built.q)
    if built.name == "krr":
        others = f"each of the {built.m - 1} others" if built.m > 2 else "the other one"
        return Line(f"Your true answer is sent in {true} cases, {others} in {other}.", (true, other))
    if isinstance(built, SubsetSelection):
        some = f"{built.w} of the {built.m} possible answers are sent"
        return Line(f"{some}. Your true one is among them in {true} cases, any other in {other}.", (true, other))
    text = f"{built.m} cells are sent, each marked or not. Your cell is marked in {true} cases, any other in {other}."
    return Line(text, (true, other))


def mechanism_picture(built: Mechanism) -> Picture:
    """How often a mechanism's report is true, as ten people who answer alike."""
    true, other = Probability(built.p), Probability(built.q)
    if built.name == "krr":
        rest = "another answer, drawn at random" if built.m > 2 else "the opposite"
        return Picture(f"Of people with your answer, {true.in_ten} send it. The rest send {rest}.", true)
    if isinstance(built, SubsetSelection):
        sent = f"{built.w} of {built.m} possible answers are sent."
        return Picture(f"{sent} Of people with your answer, {true.in_ten} send it among them.", true)
    return Picture(
        f"A mark is sent for each of {built.m} possible answers. Of people with your answer, {true.in_ten} mark it. "
        f"Of people with another one, {other.in_ten} mark yours as well.",
        true,
    )


def mechanism_odds(mechanism: Mechanism) -> str:
    """The same in one line with its cost, as the terminal says it."""
    true, other = mechanism.p / SCALE, mechanism.q / SCALE
    cost = f"epsilon {format_epsilon(mechanism.epsilon)}"
    if mechanism.name == "krr":
        return (
            f"One answer out of {mechanism.m}: your true one with {true:.1%}, each of the others with {other:.2%}; "
            f"{cost}."
        )
    if isinstance(mechanism, SubsetSelection):
        return (
            f"{mechanism.w} answers out of {mechanism.m}: your true one among them with {true:.1%}, each of the others "
            f"with {other:.1%}; {cost}."
        )
    return (
        f"{mechanism.m} yes-or-no marks, one per possible answer: at your true answer a yes with {true:.1%}, "
        f"at any other a yes with {other:.1%}; {cost}."
    )
