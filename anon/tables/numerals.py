"""Numbers as people write them: with a decimal comma, with commas between thousands, or with a point.

One cell can be both: 1,234 is a thousand and more, or one and a bit. A column is read by all of its cells; where these
leave it open, its owner says which.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from enum import Enum, StrEnum

from anon.tables.streams import Cell

_DECIMAL = re.compile(r"[+-]?((0|[1-9][0-9]{0,2}(\.[0-9]{3})+|[1-9][0-9]*),[0-9]+)", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]+)?", re.ASCII)


class Numerals(StrEnum):
    """The reading of a column's cells."""

    POINT = "point"
    """1.5, as programs write it. Everything else is no number."""
    DECIMAL = "decimal"
    """1,5 is one and a half; points may stand between thousands."""
    THOUSANDS = "thousands"
    """1,234 is one thousand two hundred and thirty-four."""
    TEXT = "text"
    """As it is written."""


class Shape(Enum):
    """The readings that one cell allows."""

    WHOLE, POINT, DECIMAL, THOUSANDS, EITHER, OTHER = range(6)


def shape_of(text: str, kind: str) -> Shape:
    """The shape of a cell without blanks around it, which is not empty. `kind` is its type with a point: INTEGER, REAL
    or TEXT."""
    if kind != "TEXT":
        return Shape.WHOLE if kind == "INTEGER" else Shape.POINT
    decimal, thousands = _DECIMAL.fullmatch(text), _THOUSANDS.fullmatch(text)
    if decimal and thousands:
        return Shape.EITHER
    return Shape.DECIMAL if decimal else Shape.THOUSANDS if thousands else Shape.OTHER


def certain(shapes: AbstractSet[Shape]) -> Numerals | None:
    """The one reading with commas by which every cell of a column is a number; None where there is none, or two."""
    if Shape.DECIMAL in shapes and shapes <= {Shape.WHOLE, Shape.EITHER, Shape.DECIMAL}:
        return Numerals.DECIMAL
    if not shapes <= {Shape.WHOLE, Shape.EITHER, Shape.THOUSANDS, Shape.POINT}:
        return None
    if Shape.THOUSANDS in shapes or {Shape.EITHER, Shape.POINT} <= shapes:
        return Numerals.THOUSANDS
    return None


def readings(shapes: AbstractSet[Shape]) -> tuple[Numerals, ...]:
    """The readings that an owner may choose for a column of these shapes, the likeliest first; none where nothing is to
    be chosen."""
    if not shapes - {Shape.WHOLE, Shape.POINT} or shapes == {Shape.OTHER}:
        return ()
    found = [certain(shapes)] if certain(shapes) else []
    if shapes & {Shape.EITHER, Shape.DECIMAL}:
        found.append(Numerals.DECIMAL)
    if shapes & {Shape.EITHER, Shape.THOUSANDS}:
        found.append(Numerals.THOUSANDS)
    if shapes & {Shape.WHOLE, Shape.POINT} and not shapes & {Shape.EITHER, Shape.DECIMAL, Shape.THOUSANDS}:
        found.append(Numerals.POINT)
    return tuple(dict.fromkeys([*found, Numerals.TEXT]))  # type: ignore[list-item]


def number_in(text: str, numerals: Numerals) -> Cell:
    """The number that a cell with commas is by this reading; None for what is none."""
    if numerals is Numerals.DECIMAL and _DECIMAL.fullmatch(text):
        return float(text.replace(".", "").replace(",", "."))
    if numerals is Numerals.THOUSANDS and _THOUSANDS.fullmatch(text):
        return float(text.replace(",", ""))
    return None
