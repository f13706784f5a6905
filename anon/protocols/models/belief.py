"""How much of a model staff declared, and how much was heard: what it says of itself, in words."""

from __future__ import annotations

from anon.errors import InvalidValue
from anon.text.sentences import Figure, Sentence, say, say_many
from anon.values import frozen


def starting(features: int, enough: int) -> Sentence:
    """How much is declared, how much is heard, and when a wrong declaration is found out: before anybody answers."""
    return say_many(
        "The model starts from what staff declared of {count} feature, and answers correct it. With fewer than about "
        "{enough} members it is mostly what staff believed; from there on answers show if that is wrong as a whole.",
        "The model starts from what staff declared of {count} features, and answers correct it. With fewer than about "
        "{enough} members it is mostly what staff believed; from there on answers show if that is wrong as a whole.",
        features,
        enough=enough,
    )


@frozen
class Belief:
    """The part of what staff declared in a model.

    `features`: of how many something was declared. `heard`: the part of the variance of log-odds between people, all
    categories alike, that comes from the answers of `members`. `against`: how often answers that say nothing would
    speak as clearly against what was declared; `contradicted`: whether that is so rare that they are said to. `enough`:
    from about so many members on, a declaration that is wrong as a whole would be found out.
    """

    features: int
    heard: float
    members: int
    against: float
    contradicted: bool
    enough: int

    def __attrs_post_init__(self) -> None:
        if not 0 <= self.heard <= 1 or not 0 <= self.against <= 1 or min(self.features, self.members, self.enough) < 0:
            raise InvalidValue("belief: expected parts from 0 to 1, and no negative number")

    @property
    def percent_heard(self) -> int:
        """The part that comes from answers; the rest of a hundred was declared."""
        return round(100 * self.heard)

    @property
    def shares(self) -> tuple[str, str]:
        """The parts declared and heard. A part that is not quite none, or not quite all, says so."""
        if 0 < self.heard < 1 and self.percent_heard in (0, 100):
            return ("> 99 %", "< 1 %") if self.heard < 0.5 else ("< 1 %", "> 99 %")
        return f"{100 - self.percent_heard} %", f"{self.percent_heard} %"

    def sentences(self) -> tuple[Sentence, ...]:
        """The shares declared and heard, and what these rest on."""
        declared, heard = map(Figure, self.shares)
        told = say_many(
            "Of the differences that this model sees between people, {declared} follow from what staff declared "
            "beforehand of {count} feature, and {heard} from the answers of {members} members.",
            "Of the differences that this model sees between people, {declared} follow from what staff declared "
            "beforehand of {count} features, and {heard} from the answers of {members} members.",
            self.features,
            declared=declared,
            heard=heard,
            members=self.members,
        )
        if self.contradicted:
            return told, say("The answers contradict what was declared.")
        if self.members < self.enough:
            return told, say(
                "So few members cannot show that what was declared is wrong as a whole: about {enough} could. The part "
                "that comes from answers may be noise.",
                enough=self.enough,
            )
        return (told,)
