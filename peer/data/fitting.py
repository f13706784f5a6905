"""A file beside what studies read of it: which columns lack, whose rows it holds, and what would count as missing.

For the owner's eyes alone, before anything is kept. It never refuses: refusing would tell the aggregator something.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from attrs import field

from anon.protocols.categories import Value, is_clamped, is_missing, is_missing_label
from anon.queries.answers import LABEL, value_of
from anon.queries.sandbox import MissingValue, Reason
from anon.study.features import Feature, Label, Table
from anon.study.manifest import Manifest
from anon.tables.columns import kind_of_text
from anon.tables.numerals import Numerals
from anon.tables.streams import Cell
from anon.values import frozen
from peer.data.people import PERSON_COLUMNS
from peer.data.preview import PreviewColumn, PreviewTable

MOST_PEOPLE, MOST_VALUES = 50, 5
_PLAIN = re.compile(r'\s*select\s+"?([a-z][a-z0-9_]*)"?\s+from\s+"?([a-z][a-z0-9_]*)"?\s*;?\s*', re.IGNORECASE)
_WORDS = re.compile(r"[a-z0-9]+")


@frozen
class PeopleColumn:
    """A column with several people in it, and those of the first rows: suggestions, not all."""

    column: str
    values: tuple[str, ...] = field(repr=False)


@frozen
class UncountedCells:
    """One column's cells, among the first `rows`, that a study cannot count: `kind` is empty, no-number, unknown or
    clamped. Only the last counts: it is moved to the nearest end of the range."""

    column: str
    kind: str
    count: int
    rows: int
    values: tuple[str, ...] = field(repr=False)


@frozen
class Fit:
    """A previewed table beside a table that studies read. `guessed`: a lacking column -> the file's column that may be
    it, or nothing."""

    table: str
    guessed: Mapping[str, str]
    spare: tuple[str, ...]
    """The file's columns that may stand for a lacking one."""
    uncounted: tuple[UncountedCells, ...]
    uses: Mapping[str, tuple[str, ...]]
    """A lacking column -> the sentences of the features that read it."""
    one_row: bool
    """A study reads one value of it, and the file has several rows: each such value would count as missing."""
    strange: bool
    """No column has a name that studies read, nor one like it: this is probably another file."""


def people_in(table: PreviewTable) -> PeopleColumn | None:
    """The column that says whose row it is, if several people are among the first rows."""
    for place, column in enumerate(table.columns):
        if column.name in PERSON_COLUMNS:
            found = list(dict.fromkeys(str(row[place]).strip() for row in table.sample if row[place] is not None))
            if len(found) > 1:
                return PeopleColumn(column.name, tuple(found[:MOST_PEOPLE]))
    return None


def fit_of(table: PreviewTable, wanted: Table, studies: Sequence[Manifest], known: Mapping[str, str]) -> Fit:
    """Compare. `known`: names that the owner gave to columns of an earlier file, the file's -> the table's."""
    held = [column.name for column in table.columns]
    spare = tuple(name for name in held if name not in wanted.columns)
    lacking = [name for name in wanted.columns if name not in held]
    given = {name: original for original, name in known.items() if original in spare}
    guessed = {name: given.get(name) or _alike(name, spare) for name in lacking}
    names = {original: name for name, original in guessed.items() if original}
    asked: list[Feature | Label] = []
    for study in studies:
        asked += [*study.features, study.label]
    plain = [
        (query, column)
        for query in asked
        if (column := plain_column(query.query, wanted.name)) is not None
    ]
    places = {names.get(name, name): place for place, name in enumerate(held)}
    found = {
        (fault.column, fault.kind): fault
        for query, column in plain
        if column in places
        for fault in _uncounted(query, column, [row[places[column]] for row in table.sample])
    }
    for name in wanted.columns:  # also those that a query computes with
        if name in places and not any(column == name for _query, column in plain):
            empty = sum(row[places[name]] is None for row in table.sample)
            if empty:
                found[name, "empty"] = UncountedCells(name, "empty", empty, len(table.sample), ())
    uses = {name: tuple(query.description for query in asked if _reads(query.query, name)) for name in lacking}
    several = table.count != 1 and len(table.sample) > 1
    strange = len(lacking) == len(wanted.columns) and not any(guessed.values())
    return Fit(wanted.name, guessed, spare, tuple(found.values()), uses, several and bool(plain), strange)


def plain_column(query: str, table: str) -> str | None:
    """The column that a query reads as it stands, with nothing computed; None for every other query."""
    read = _PLAIN.fullmatch(query)
    return read[1].lower() if read is not None and read[2].lower() == table else None


def _reads(query: str, column: str) -> bool:
    return re.search(rf"\b{re.escape(column)}\b", query, re.IGNORECASE) is not None


def _alike(name: str, spare: Sequence[str]) -> str:
    """The only spare column that has all words of the name; empty where there is none, or more than one."""
    words = set(_WORDS.findall(name.replace("_", " ")))
    found = [column for column in spare if words <= set(_WORDS.findall(column.replace("_", " ")))]
    return found[0] if len(found) == 1 else ""


def _uncounted(asked: Feature | Label, column: str, cells: Sequence[Cell]) -> list[UncountedCells]:
    kinds: dict[str, Counter[str]] = {}
    for cell in cells:
        if kind := _kind(asked, cell):
            kinds.setdefault(kind, Counter())["" if cell is None else str(cell)] += 1
    return [
        UncountedCells(column, kind, found.total(), len(cells), _commonest(found))
        for kind, found in kinds.items()
    ]


def _commonest(found: Counter[str]) -> tuple[str, ...]:
    return tuple(value for value, _count in found.most_common(MOST_VALUES) if value)


def _kind(asked: Feature | Label, cell: Cell) -> str:
    if cell is None:
        return "empty"
    if isinstance(asked, Label):
        return "unknown" if is_missing_label(asked, _value(LABEL, cell)) else ""
    value = _value(asked.kind, cell)
    if is_missing(asked, value):
        return "no-number" if asked.kind == "numeric" else "unknown"
    return "clamped" if is_clamped(asked, value) else ""


def _value(kind: str, cell: Cell) -> Value:
    if kind == "numeric" and isinstance(cell, str) and kind_of_text(cell) != "TEXT":
        return float(cell)  # a number beside texts: the texts are left out where the column is read as numbers
    return value_of(kind, MissingValue(Reason.NULL) if cell is None else cell)


def likely(column: PreviewColumn, cells: Sequence[Cell]) -> Numerals | None:
    """How an owner probably wants a column's numbers read; None where nothing says so."""
    if column.numerals is not Numerals.POINT:
        return column.numerals
    if Numerals.DECIMAL in column.readings or Numerals.THOUSANDS in column.readings:
        return None
    numbers = sum(isinstance(cell, str) and kind_of_text(cell) != "TEXT" for cell in cells)
    return Numerals.POINT if 2 * numbers >= sum(cell is not None for cell in cells) else Numerals.TEXT
