"""The owner's word on a file: the names of its columns in the table, whose rows are taken, and how numbers are read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

from attrs import field

from anon.errors import Refused
from anon.queries.lint import NAME
from anon.queries.sandbox import plain_tables_of
from anon.storage.durable import guarded
from anon.tables.columns import LearntColumn, column_name
from anon.tables.numerals import Numerals
from anon.tables.streams import Record, Skip
from anon.text.sentences import listed, say
from anon.values import frozen
from peer.data.kept import DATA_KEPT

_REMEMBERED = re.compile(r'"([a-z][a-z0-9_]*)" [A-Z]* ?/\* ([a-z][a-z0-9_]*) \*/')


@frozen
class Person:
    """The rows of one person out of many: those with this value in this column of the file."""

    column: str
    value: str = field(repr=False)

    def rows(self, records: Iterable[Record]) -> Iterator[Record]:
        """This person's records. A record that cannot be read is nobody's."""
        wanted, names = _plain(self.value), dict[str, str]()
        for number, row in records:
            if isinstance(row, Skip):
                continue
            for key, cell in row.items():
                name = names.setdefault(key, column_name(key))
                if name == self.column and cell is not None and _plain(str(cell)) == wanted:
                    yield number, row
                    break


def _plain(value: str) -> str:
    return " ".join(value.split()).casefold()


class NoSuchPerson(Refused):
    """No row of the file is of the person who was named."""


@frozen
class Choices:
    """`names`: a column of the file -> its name in the table. `person`: whose rows are taken, None for all. `numerals`:
    a column of the file -> how its numbers are written. `said`: by the owner about this file, not about an earlier one.
    `left_out`: columns of the file that are not taken over.
    """

    names: Mapping[str, str] = field(factory=dict)
    person: Person | None = None
    numerals: Mapping[str, Numerals] = field(factory=dict)
    said: bool = True
    left_out: frozenset[str] = frozenset()

    def renamed(self, columns: Iterable[LearntColumn]) -> dict[str, str]:
        """The names in the file -> those in the table, of all columns. Raises `Refused` where two become one, and for a
        column that the file does not have."""
        found = {column.name: self.names.get(column.name, column.name) for column in columns}
        named = {*self.names, *self.numerals, *((self.person.column,) if self.person else ())}
        if self.said and (strange := sorted(named - found.keys())):
            raise Refused(
                say("the file has no column {columns}; `--preview` names its columns", columns=listed(strange))
            )
        if not all(NAME.fullmatch(name) for name in found.values()):
            raise Refused(say("that is no name of a column; use a-z, 0-9 and _, a letter first"))
        if len(set(found.values())) < len(found):
            raise Refused(
                say("two columns of the file would stand for one column of the table; choose a column for each")
            )
        return found


def declared(name: str, kind: str, original: str) -> str:
    """A column as a table is made with it. A name that the owner gave keeps the file's own beside it."""
    return f'"{name}" {kind}' + (f" /* {original} */" if name != original else "")


def remembered(database: Path, table: str) -> dict[str, str]:
    """The names that the owner gave to columns of files imported into this table: the file's -> the table's."""
    if table not in plain_tables_of(database):
        return {}
    address = f"{database.absolute().as_uri()}?mode=ro"
    with closing(guarded(database, DATA_KEPT)(address, uri=True)) as connection:
        made = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND lower(name) = ?", (table,))
        return {original: name for name, original in _REMEMBERED.findall(made.fetchone()[0] or "")}
