"""Studies of oblivious averaging for tests: the file, and what its parties hold."""

from __future__ import annotations

from random import Random

from tests.support.masks_study import Rows, masks_study
from tests.support.sums import many

BITS = 512
"""Of a key that is made in a moment: of a study on one machine alone."""
SIZES = (9, 4, 12, 7, 4)
"""Records of each party. Two have the fewest."""
MOST, LEAST = 20, 3


def design(kind: str = "oblivious-averaging", epsilon: float = 1.0, bits: int = BITS) -> str:
    """A `[design]`; one of averaging by another name has the same sum."""
    keys = f"\nkey_bits = {bits}" if kind == "oblivious-averaging" else ""
    return f'kind = "{kind}"\nepsilon = {epsilon}\nstrength = 0.1{keys}'


def oblivious_study(
    kind: str = "oblivious-averaging", minimum: int = len(SIZES), epsilon: float = 1.0, bits: int = BITS
) -> str:
    """A study file of parties with up to `MOST` records."""
    keys = f"{many(MOST)}\nleast_records = {LEAST}"
    return masks_study(design(kind, epsilon, bits), keys, f"minimum = {minimum}\nmaximum = {len(SIZES)}")


def rows_of(number: int, size: int) -> Rows:
    """Short sleep makes tired."""
    spring = Random(number)
    drawn = [(day, spring.uniform(0, 100), spring.uniform(2, 10)) for day in range(size)]
    return [(day, age, sleep, int(sleep < 6)) for day, age, sleep in drawn]


HELD = tuple(rows_of(number, size) for number, size in enumerate(SIZES))
