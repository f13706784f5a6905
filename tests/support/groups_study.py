"""Studies of averaging in groups for tests: the file, and what its members hold."""

from __future__ import annotations

from tests.support.masks_study import masks_study
from tests.support.oblivious_study import rows_of
from tests.support.sums import many

MEMBERS, MOST, LEAST = 12, 20, 3
HELD = tuple(rows_of(number, 4 + number % 9) for number in range(MEMBERS))
"""Members of groups."""


def groups_study(
    aggregations: int = 2,
    group: int = 4,
    receivers: int = 2,
    epsilon: float = 1.0,
    minimum: int = MEMBERS - 2,
    maximum: int = MEMBERS,
    unit: str = "record",
) -> str:
    """A study file of members with up to `MOST` records."""
    design = (
        f'kind = "group-averaging"\nepsilon = {epsilon}\nstrength = 0.1\naggregations = {aggregations}\n'
        f"group = {group}\nreceivers = {receivers}"
    )
    keys = f"{many(MOST, unit)}\nleast_records = {LEAST}"
    return masks_study(design, keys, f"minimum = {minimum}\nmaximum = {maximum}")
