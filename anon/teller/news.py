"""A line for the person who runs a teller, when a study of it comes, is added up, or is over."""

from __future__ import annotations

from enum import Enum

from attrs import field

from anon.study.manifest import Manifest
from anon.values import frozen

SHORTEST = 8
"""Digits of a study's id that name it."""


class Event(Enum):
    """Past tense: the journal has it."""

    COUNTERSIGNED = "countersigned"
    ADDING_UP = "adding-up"
    OVER = "over"


@frozen
class News:
    """The news of a study. `round`: of packets that have come, from 0; None for the whole study."""

    event: Event
    manifest: Manifest = field(repr=False)
    round: int | None = None

    @property
    def said(self) -> str:
        """In a line."""
        from anon.kit.terminal.foreign import short

        study, least = self.manifest, self.manifest.cohort.minimum
        after = {
            Event.COUNTERSIGNED: f"new, of {short(study.contact)}: at least {least} members",
            Event.ADDING_UP: f"asked to add up round {(self.round or 0) + 1}",
            Event.OVER: "over; its keys and shares are erased here",
        }[self.event]
        return f"{study.study_id.hex()[:SHORTEST]} {short(study.title)}: {after}"

    def figures(self) -> dict[str, object]:
        """For `--json`."""
        rounds = {} if self.round is None else {"round": self.round}
        return {"study": self.manifest.study_id.hex(), "event": self.event.value, **rounds}
