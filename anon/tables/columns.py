"""Names and types of columns: what any text becomes as a name, and the narrowest type that holds all values."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from attrs import define, field

from anon.errors import Malformed, Refused
from anon.queries.lint import NAME
from anon.tables.numerals import Numerals, Shape, certain, number_in, shape_of
from anon.tables.streams import Cell, ImportLimits, Record, Skip, Source
from anon.text.foreign import Quoted
from anon.text.sentences import Figure, Ours, Sentence, say

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})", re.ASCII)
_REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", re.ASCII)
_IDENTIFIER = re.compile(r"[+-]?(0[0-9].*|[0-9]{19,})", re.ASCII)


def sanitised(name: str) -> str:
    """A table or column name of a-z, 0-9 and _ made from any text; the same text gives the same name."""
    ascii_only = unicodedata.normalize("NFKD", name[:256]).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9]+", "_", ascii_only.lower()).strip("_")[:60] or "unnamed"
    return words if NAME.fullmatch(words) else f"x_{words}"[:63]


@define
class LearntColumn:
    """A column as it is learnt."""

    name: str
    kind: str = ""
    """INTEGER, REAL or TEXT; empty as long as only NULL was seen."""
    numerals: Numerals = Numerals.POINT
    shapes: set[Shape] = field(factory=set)
    """Of the cells seen, where these are text; of typed cells none."""

    def learn(self, cell: Cell, typed: bool) -> None:
        """Widen the type so that it holds this cell too."""
        kind = _kind(cell, typed)
        if kind and kind != self.kind:
            self.kind = kind if not self.kind else "TEXT" if "TEXT" in (kind, self.kind) else "REAL"
        if kind and not typed and isinstance(cell, str):
            self.shapes.add(shape_of(cell.strip(), kind))

    def settle(self, chosen: Numerals | None) -> None:
        """Read the cells as their owner chose, else as all of them agree, else as text."""
        self.numerals = chosen or certain(self.shapes) or Numerals.POINT
        if self.numerals is Numerals.TEXT:
            self.kind = "TEXT"
        elif chosen or self.numerals is not Numerals.POINT:
            self.kind = "REAL" if self.shapes - {Shape.WHOLE, Shape.OTHER} else "INTEGER"

    def cell(self, cell: Cell, typed: bool) -> Cell:
        """The cell as this column wants it. Beside numbers, a text that is none of them is nothing."""
        if not isinstance(cell, str):
            if self.kind == "TEXT":
                return None if cell is None else str(cell)
            return float(cell) if self.kind == "REAL" and cell is not None else cell
        return cell if typed else self._typed(cell.strip())

    def _typed(self, text: str) -> Cell:
        kind = kind_of_text(text)
        if not text or self.kind == "TEXT":
            return text or None
        if kind == "TEXT":
            return number_in(text, self.numerals)
        if kind == "REAL" and self.numerals is Numerals.DECIMAL:
            return None  # a point beside decimal commas: thousands, or another way of writing; nobody can say
        return int(text) if self.kind == kind == "INTEGER" else float(text)


def columns_of(
    source: Source,
    records: Iterable[Record],
    limits: ImportLimits,
    expected: Ours,
    numerals: Mapping[str, Numerals] = MappingProxyType({}),
) -> dict[str, LearntColumn]:
    """The columns of these records by their keys, in the order met. `numerals`: the reading of some, by their names.

    Raises `Malformed` where there are none (saying what was `expected`) and `Refused` for too many, or two of a name.
    """
    taken: set[str] = set()
    columns = {key: _new_column(key, 0, taken, limits) for key in source.keys()}  # noqa: SIM118
    for number, row in records:
        for key, cell in () if isinstance(row, Skip) else row.items():
            if key not in columns:
                columns[key] = _new_column(key, number, taken, limits)
            columns[key].learn(cell, source.typed)
    if not columns:
        raise Malformed(say("no row could be read; expected {expected}", expected=expected))
    for column in columns.values():
        column.settle(numerals.get(column.name))
    return columns


def column_name(key: str, number: int = 0) -> str:
    """The name of the column of a key, the `number`th of a row."""
    title, _nul, place = key.partition("\0")
    return sanitised(title) if title.strip() else f"column_{place or number}"


def _new_column(key: str, number: int, taken: set[str], limits: ImportLimits) -> LearntColumn:
    # CSV keys carry their place after a NUL, so that columns of equal or no name stay apart until here.
    _title, _nul, place = key.partition("\0")
    name = column_name(key, len(taken) + 1)
    where = _where(place, number)
    if name in taken:
        raise Refused(
            say(
                "{where} has the same name as another once reduced to a-z, 0-9 and _; rename it in the file",
                where=where,
            )
        )
    if len(taken) >= limits.columns:
        raise Refused(
            say(
                "more than {columns} columns, reached at row {number}; drop some from the file",
                columns=limits.columns, number=number,
            )
        )
    taken.add(name)
    return LearntColumn(name)


def _where(place: str, number: int) -> Sentence:
    if place:
        return say("column {place}", place=Figure(place) if place.isdecimal() else Quoted(place))
    return say("a key first met in row {number}", number=number) if number else say("a column")


def _kind(cell: Cell, typed: bool) -> str:
    if cell is None or cell == "":
        return "TEXT" if typed and cell == "" else ""
    if isinstance(cell, str):
        return "TEXT" if typed else kind_of_text(cell.strip())
    return "INTEGER" if isinstance(cell, int) else "REAL"


def kind_of_text(text: str) -> str:
    """The type of a cell without blanks around it: INTEGER, REAL, TEXT, or nothing for an empty one.

    Numbers with a leading zero or of 19 digits and more are identifiers: they stay text, to the last digit.
    """
    if not text:
        return ""
    if _INTEGER.fullmatch(text):
        return "INTEGER"
    number = _REAL.fullmatch(text) and not _IDENTIFIER.fullmatch(text) and math.isfinite(float(text))
    return "REAL" if number else "TEXT"

