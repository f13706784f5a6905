"""Many records of each member: how many are taken and needed, and if a promise is about a member or about one record.

A record is all that the study's queries say under one key: rows of one key are one record. Each query of such a study
gives two columns: the key and the value. More records than `most` are cut by a draw on the member's own machine
(`anon.queries.records`).
"""

from __future__ import annotations

from typing import Final

from attrs import evolve, field

from anon.errors import InvalidValue
from anon.study.features import one_of
from anon.study.structuring import LEFT_OUT
from anon.values import frozen

MOST_RECORDS, MOST_OF_MEMBER = 50_000, 10_000
"""Of any design, and of one that does not say that it takes more."""
MOST_CELLS = 2**20
"""Records times questions: some 10 MB on a member's machine."""
PERSON: Final = "person"
RECORD: Final = "record"


@frozen
class Records:
    """The records of a member: at most `most` are taken. Raises `InvalidValue` for a number out of range.

    `unit`: a promise is about a person with all of their records, or about one record. `least`: a member should have so
    many. Its owner is told how many it has, and decides. The sums of `averaging` take fewer for so many.
    """

    most: int
    unit: str = field(default=PERSON, validator=one_of(PERSON, RECORD))
    least: int = field(default=1, metadata=LEFT_OUT)

    def __attrs_post_init__(self) -> None:
        if not 1 <= self.most <= MOST_RECORDS:
            raise InvalidValue(f"most_records: expected 1 to {MOST_RECORDS}, got {self.most}")
        if not 1 <= self.least <= self.most:
            raise InvalidValue(f"least_records: expected 1 to {self.most}, the most_records, got {self.least}")

    @property
    def asked(self) -> Records:
        """The part that every survey repeats: most and unit."""
        return evolve(self, least=1)

    def demand(self, questions: int, most: int) -> None:
        """Raises `InvalidValue` for more than `most` records, or for more values than a member's machine should hold.
        The label is a question too."""
        if self.most > most:
            raise InvalidValue(f"most_records: expected at most {most} with this design, got {self.most}; lower it")
        if self.most * questions > MOST_CELLS:
            raise InvalidValue(
                f"most_records: expected at most {MOST_CELLS // questions} with {questions} queries, got {self.most}; "
                "lower it, or ask for fewer features"
            )


def declared(records: str, most: int, unit: str, least: int = 1) -> Records | None:
    """The records that a study file declares; None where each member has one. Raises `InvalidValue`."""
    if records == "many":
        if most < 1:
            raise InvalidValue('most_records: required with records = "many": more of a member are cut by a draw')
        return Records(most, unit, least)
    if most or unit != PERSON or least != 1:
        raise InvalidValue('most_records, least_records, unit: belong to records = "many"')
    return None
