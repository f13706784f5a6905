"""How many answers of each word a study's posts got, of all processes that serve it. They describe traffic, never
anybody: each process adds whole steps, so that no change of a row is one answer (`aggregator.study.answers`)."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Column, Integer, MetaData, String, select

from aggregator.store.database import Database
from aggregator.store.tables import study_table

TABLES = MetaData()

_answers = study_table(
    TABLES,
    "answers",
    Column("kind", String, primary_key=True),
    Column("word", String, primary_key=True),
    Column("number", Integer, nullable=False),
    partitioned=False,
)

Counted = Mapping[tuple[str, str], int]
"""How many by (kind of post, word)."""


class AnswerStore:
    """Answers by (study, kind of post, word)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, study: bytes, counted: Counted) -> None:
        """So many more of each."""
        async with self._database.add(study) as connection:
            for (kind, word), number in sorted(counted.items()):  # no two processes lock crosswise
                key = {"study": study, "kind": kind, "word": word}
                await connection.execute(self._database.insert_new(_answers).values(**key, number=0))
                here = (_answers.c.study == study) & (_answers.c.kind == kind) & (_answers.c.word == word)
                await connection.execute(_answers.update().where(here).values(number=_answers.c.number + number))

    async def of(self, study: bytes) -> Counted:
        """Those that were added."""
        query = select(_answers.c.kind, _answers.c.word, _answers.c.number).where(_answers.c.study == study)
        async with self._database.read() as connection:
            return {(row.kind, row.word): row.number for row in await connection.execute(query)}

    async def erase(self, study: bytes) -> None:
        """Forget those of a study."""
        async with self._database.write() as connection:
            await self._database.erase(connection, study, _answers)
