"""The slots of a study: weighted tables from which a member's tag draws the survey that it answers."""

from __future__ import annotations

from collections.abc import Sequence

from anon.errors import InvalidValue
from anon.study.designs import AskedSurvey, most_in_a_window
from anon.values import frozen

HEAVIEST_TABLE = 2**28
"""Weights of a slot's rows add up to less: the draw's bias stays below 2**-100 (`anon.protocols.sortition`)."""


@frozen
class Row:
    """One row of a slot's table: a survey and its integer weight."""

    survey: int
    weight: int


@frozen
class Slot:
    """One packet's place: the weighted table from which a tag draws the survey to answer (design section 3, step 4)."""

    slot: int
    rows: tuple[Row, ...]

    @property
    def total(self) -> int:
        """The sum of the weights."""
        return sum(row.weight for row in self.rows)


def demand_slots(surveys: Sequence[AskedSurvey], slots: Sequence[Slot], connections: int) -> None:
    """Raises `InvalidValue` unless the slots name each survey once, and fit the cover.

    `connections`: those of a peer in each window, 0 without cover.
    """
    if not 1 <= len(slots) <= 255:
        raise InvalidValue("slots: expected 1 to 255")
    asked: list[int] = []
    for number, slot in enumerate(slots):
        if slot.slot != number or not slot.rows or any(row.weight < 1 for row in slot.rows):
            raise InvalidValue(f"slot {number}: expected its number and rows of weight 1 or more")
        if slot.total >= HEAVIEST_TABLE:
            raise InvalidValue(f"slot {number}: expected weights that add up to less than {HEAVIEST_TABLE}")
        asked += [row.survey for row in slot.rows]
    if sorted(asked) != list(range(len(surveys))):
        raise InvalidValue("slots: expected every survey in exactly one row of one slot")
    most = most_in_a_window(surveys, slots)
    if 0 < connections < most:
        raise InvalidValue(
            f"cover.connections: expected at least {most}, the most packets that one peer has in a window"
        )
