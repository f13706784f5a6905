"""The step that would change what a sentence says, as a value. Each surface words it in its own way."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Self

from anon.protocols.charge import LOCAL, Budget
from anon.text.sentences import Sentence
from anon.values import frozen


class Limit(StrEnum):
    """A limit of the owner's, which they can change."""

    PER_STUDY = "per-study"
    LIFETIME = "lifetime"
    MINIMUM_COHORT = "minimum-cohort"
    MINIMUM_WINDOW = "minimum-window"


@frozen
class NextStep:
    """Set this limit to this value. `budget`: whose limit it is, for amounts of privacy."""

    limit: Limit
    value: str
    budget: Budget = LOCAL


class Advice(Sentence):
    """A sentence for the owner, and the step that would change what it says, if there is one."""

    next_step: NextStep | None

    def __new__(cls, sentence: Sentence, next_step: NextStep | None = None) -> Self:
        """The sentence, with its step."""
        made = super().__new__(cls, sentence.pattern, sentence.many, sentence.values)
        made.next_step = next_step
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        """The parts, for copies between processes."""
        return Sentence(self.pattern, self.many, self.values), self.next_step
