"""The step that would change what a sentence says, as a value. Each surface words it in its own way."""

from __future__ import annotations

from enum import StrEnum

from attrs import frozen


class Limit(StrEnum):
    """A limit of the owner's, which they can change."""

    PER_STUDY = "per-study"
    LIFETIME = "lifetime"
    MINIMUM_COHORT = "minimum-cohort"
    MINIMUM_WINDOW = "minimum-window"


@frozen
class NextStep:
    """Set this limit to this value."""

    limit: Limit
    value: str


class Advice(str):
    """A sentence for the owner, and the step that would change what it says, if there is one."""

    __slots__ = ("next_step",)
    next_step: NextStep | None

    def __new__(cls, text: str, next_step: NextStep | None = None) -> Advice:
        """The text, with its step."""
        made = super().__new__(cls, text)
        made.next_step = next_step
        return made
