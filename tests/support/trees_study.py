"""Studies of private trees for tests: the file, and what members hold."""

from __future__ import annotations

from random import Random

from tests.support.masks_study import Rows, masks_study
from tests.support.sums import many

MOST, MEMBERS = 60, 6


def trees_study(
    epsilon: float = 8.0, more: str = "", minimum: int = 4, maximum: int = 20, most: int = MOST, unit: str = "record"
) -> str:
    """A study file. `more`: further lines of its design."""
    return masks_study(
        f'kind = "trees"\nepsilon = {epsilon}\n{more}', many(most, unit), f"minimum = {minimum}\nmaximum = {maximum}"
    )


def held(number: int, many_of: int = 40) -> Rows:
    """The records of a member: short sleep makes tired."""
    spring = Random(number)
    slept = [spring.uniform(2, 10) for _ in range(many_of)]
    return [(day, spring.uniform(0, 100), sleep, int(sleep < 6)) for day, sleep in enumerate(slept)]


HELD = tuple(held(number) for number in range(MEMBERS))
