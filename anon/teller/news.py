"""A line for the person who runs a teller, when a study of it comes, is added up, or is over."""

from __future__ import annotations

from enum import Enum

from attrs import field

from anon.sharing.arrangement import parse_arrangement
from anon.study.manifest import Manifest
from anon.values import frozen

SHORTEST = 8
"""Digits of a study's id that name it."""
_EARLY = (
    ", before its dates: the staff's clock runs ahead, as in a rehearsal or a dry round. In any other study tell the "
    "staff and the other tellers"
)


class Event(Enum):
    """Past tense: the journal has it."""

    COUNTERSIGNED = "countersigned"
    ADDING_UP = "adding-up"
    OVER = "over"


@frozen
class News:
    """The news of a study. `round`: of packets that have come, from 0; None for the whole study.

    `early`: they came before the study's own dates (`anon.teller.dates`). `others`: how many studies still run.
    """

    event: Event
    manifest: Manifest = field(repr=False)
    round: int | None = None
    early: bool = False
    others: int = 0

    @property
    def said(self) -> str:
        """In a line."""
        from anon.kit.terminal.foreign import short

        study, least = self.manifest, self.manifest.cohort.minimum
        fewest = parse_arrangement(study.part).minimum
        after = {
            Event.COUNTERSIGNED: f"new, of {short(study.contact)}: at least {least} members; a sum may be of {fewest}",
            Event.ADDING_UP: f"asked to add up round {(self.round or 0) + 1}{_EARLY if self.early else ''}",
            Event.OVER: f"over; its keys and shares are erased here. {self._then()}",
        }[self.event]
        return f"{study.study_id.hex()[:SHORTEST]} {short(study.title)}: {after}"

    def _then(self) -> str:
        from anon.study.proposal import DRY_ROUND

        if self.manifest.title == DRY_ROUND:
            return "Keep serving: the staff's rehearsal or their study comes next"
        if not self.others:
            return "No other study runs: you may stop (Ctrl-C), unless the staff plan a further one"
        return f"Keep serving: {self.others} {'studies run' if self.others > 1 else 'study runs'} still"

    def figures(self) -> dict[str, object]:
        """For `--json`."""
        rounds = {} if self.round is None else {"round": self.round, "early": self.early}
        others = {"others": self.others} if self.event is Event.OVER else {}
        return {"study": self.manifest.study_id.hex(), "event": self.event.value, **rounds, **others}
