"""The people that a file names, for its owner's eyes alone: a row of somebody else would count as the owner's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from threading import Event

from anon.tables.columns import column_name
from anon.tables.streams import LIMITS, ImportLimits, Record, Skip
from peer.data.choices import Person
from peer.data.foreign import opened
from peer.data.importing import named_tables
from peer.data.people import MOST_NAMED, PERSON_COLUMNS, NamedPeople, named
from peer.data.watching import RecordMeter, said_as_a_bad_file, watched


def people_of_file(
    file: Path, table: str | None = None, *, limits: ImportLimits = LIMITS, stop: Event | None = None
) -> NamedPeople | None:
    """The column of a file that names several people; reads all of it where it names one. Raises as `import_file`."""
    return next(_columns_of_file(file, table, PERSON_COLUMNS, limits, stop, fewest=2), None)


def values_of_file(
    file: Path, table: str | None, person: Person, *, limits: ImportLimits = LIMITS
) -> NamedPeople | None:
    """The first values of the column that tells whose row it is. Raises as `import_file`."""
    return next(_columns_of_file(file, table, frozenset({person.column}), limits, None, fewest=1), None)


def _columns_of_file(
    file: Path, table: str | None, columns: frozenset[str], limits: ImportLimits, stop: Event | None, fewest: int
) -> Iterator[NamedPeople]:
    limits = watched(limits, limits.seconds, stop)
    with said_as_a_bad_file(), opened(file, limits) as found:
        meter = RecordMeter(limits, found.size)
        for name, source in named_tables(found, table, limits):
            held = _people(meter.records(source), columns)
            for column, people in held.items():
                if len(people) >= fewest:
                    yield named(name, column, tuple(people.values()))


def _people(records: Iterable[Record], columns: frozenset[str]) -> Mapping[str, dict[str, str]]:
    """Column -> its values, each as it was first written; reading ends when there are more than can be named."""
    found: dict[str, dict[str, str]] = {}
    names: dict[str, str] = {}
    for _number, row in records:
        if isinstance(row, Skip):
            continue
        for key, cell in row.items():
            name = names.setdefault(key, column_name(key))
            if name in columns and cell is not None and str(cell).strip():
                people = found.setdefault(name, {})
                people.setdefault(" ".join(str(cell).split()).casefold(), str(cell).strip())
                if len(people) > MOST_NAMED:
                    return {name: people}
    return found
