"""The people that the tables on this machine name, for their owner's eyes alone. Reads no file of another kind, so that
`look` does not load the importer."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from attrs import field

from anon.errors import AnonmlError
from anon.queries.sandbox import plain_tables_of
from anon.storage.durable import guarded
from anon.study.features import Table
from anon.text.foreign import Quoted
from anon.text.sentences import Sentence, Term, joined
from anon.values import frozen
from peer.data.kept import DATA_KEPT

PERSON_COLUMNS = frozenset({
    "user", "username", "user_name", "user_id", "userid", "user_full_name", "full_name", "login", "account",
    "student", "studentid", "student_id", "student_name", "student_number", "learner", "learner_id", "alumno",
    "person", "person_id", "participant", "participant_id", "member", "member_id", "actor", "actor_id", "author",
    "email", "e_mail", "email_address", "mail", "nutzer", "benutzer", "benutzername", "vollstandiger_name",
    "matrikelnummer", "gebruiker", "gebruikersnaam", "studentnummer", "usuario", "nombre_de_usuario", "nombre_completo",
})  # fmt: skip
"""Names of columns that say whose row it is, as files and exports of courses call them."""
MOST_NAMED = 10


@frozen
class NamedPeople:
    """A column with several people in it: the first of them, at most `MOST_NAMED`."""

    table: str
    column: str
    people: tuple[str, ...] = field(repr=False)
    more: bool
    """There are others beside these."""

    @property
    def listed(self) -> Sentence:
        """The people with commas between."""
        return joined((*map(Quoted, self.people), *((Term("…"),) if self.more else ())), ", ")


def named(table: str, column: str, people: tuple[str, ...]) -> NamedPeople:
    """The first of the people of a column."""
    return NamedPeople(table, column, people[:MOST_NAMED], len(people) > MOST_NAMED)


def people_held(database: Path, tables: Iterable[Table]) -> tuple[NamedPeople, ...]:
    """The tables on this machine that studies read and that name several people. Never raises."""
    present, found = plain_tables_of(database), []
    for table in tables:
        for column in present.get(table.name, ()):
            if column in PERSON_COLUMNS and len(people := _distinct(database, table.name, column)) > 1:
                found.append(named(table.name, column, people))
    return tuple(found)


def _distinct(database: Path, table: str, column: str) -> tuple[str, ...]:
    try:
        address = f"{database.absolute().as_uri()}?mode=ro"
        with closing(guarded(database, DATA_KEPT)(address, uri=True)) as connection:
            read = f"SELECT DISTINCT trim(\"{column}\") FROM \"{table}\" WHERE trim(\"{column}\") <> '' LIMIT ?"
            return tuple(str(value) for (value,) in connection.execute(read, (MOST_NAMED + 1,)))
    except (AnonmlError, sqlite3.Error):
        return ()
