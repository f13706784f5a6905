"""Names and types of columns: what any text becomes as a name, and the narrowest type that holds all values."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable

from attrs import define

from anon.errors import Malformed, Refused
from anon.queries.lint import NAME
from anon.tables.streams import Cell, ImportLimits, Record, Skip, Source

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})", re.ASCII)
_REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", re.ASCII)
_IDENTIFIER = re.compile(r"[+-]?(0[0-9].*|[0-9]{19,})", re.ASCII)


def sanitised(name: str) -> str:
    """A table or column name of a-z, 0-9 and _ made from any text; the same text gives the same name."""
    ascii_only = unicodedata.normalize("NFKD", name[:256]).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9]+", "_", ascii_only.lower()).strip("_")[:60] or "unnamed"
    return words if NAME.fullmatch(words) else f"x_{words}"[:63]


@define
class Column:
    """A column as it is learnt."""

    name: str
    kind: str = ""
    """INTEGER, REAL or TEXT; empty as long as only NULL was seen."""

    def learn(self, kind: str) -> None:
        """Widen the type so that it holds a value of this one too."""
        if kind and kind != self.kind:
            self.kind = kind if not self.kind else "TEXT" if "TEXT" in (kind, self.kind) else "REAL"


def columns_of(source: Source, records: Iterable[Record], limits: ImportLimits, expected: str) -> dict[str, Column]:
    """The columns of these records by their keys, in the order met.

    Raises `Malformed` where there are none (saying what was `expected`) and `Refused` for too many, or two of a name.
    """
    taken: set[str] = set()
    columns = {key: _new_column(key, 0, taken, limits) for key in source.keys()}  # noqa: SIM118
    for number, row in records:
        for key, cell in () if isinstance(row, Skip) else row.items():
            if key not in columns:
                columns[key] = _new_column(key, number, taken, limits)
            columns[key].learn(_kind(cell, source.typed))
    if not columns:
        raise Malformed(f"no row could be read; expected {expected}")
    return columns


def _new_column(key: str, number: int, taken: set[str], limits: ImportLimits) -> Column:
    # CSV keys carry their place after a NUL, so that columns of equal or no name stay apart until here.
    title, _nul, place = key.partition("\0")
    name = sanitised(title) if title.strip() else f"column_{place or len(taken) + 1}"
    where = f"column {place}" if place else f"a key first met in row {number}" if number else "a column"
    if name in taken:
        raise Refused(f"{where} has the same name as another once reduced to a-z, 0-9 and _; rename it in the file")
    if len(taken) >= limits.columns:
        raise Refused(f"more than {limits.columns} columns, reached at row {number}; drop some from the file")
    taken.add(name)
    return Column(name)


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


def cell_in(cell: Cell, kind: str, typed: bool) -> Cell:
    """The cell as its column's type wants it."""
    if isinstance(cell, str):
        return cell if typed else _typed(cell, kind)
    if kind == "TEXT":
        return None if cell is None else str(cell)
    return float(cell) if kind == "REAL" and cell is not None else cell


def _typed(text: str, kind: str) -> Cell:
    stripped = text.strip()
    if not stripped:
        return None
    kind_of_cell = kind_of_text(stripped)
    if kind == "TEXT" or kind_of_cell in ("", "TEXT"):
        return stripped
    return int(stripped) if kind == kind_of_cell == "INTEGER" else float(stripped)
