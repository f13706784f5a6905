"""Numbers with commas: a column is read by all of its cells, and only where these leave one reading."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from anon.tables.columns import columns_of
from anon.tables.numerals import Numerals, readings
from anon.tables.streams import LIMITS, Cell, Record

DECIMAL, THOUSANDS, POINT, TEXT = Numerals.DECIMAL, Numerals.THOUSANDS, Numerals.POINT, Numerals.TEXT


class Cells:
    """One column of untyped cells."""

    typed, unit = False, "line"

    def __init__(self, *cells: str) -> None:
        self.cells = cells

    def keys(self) -> list[str]:
        return ["x"]

    def records(self) -> Iterable[Record]:
        return [(number, {"x": cell}) for number, cell in enumerate(self.cells, 1)]


def read(*cells: str, chosen: Numerals | None = None) -> list[Cell]:
    source = Cells(*cells)
    column = columns_of(source, source.records(), LIMITS, "", {"x": chosen} if chosen else {})["x"]  # type: ignore[arg-type]
    return [column.cell(cell, False) for cell in cells]


def offered(*cells: str) -> tuple[Numerals, ...]:
    source = Cells(*cells)
    return readings(columns_of(source, source.records(), LIMITS, "")["x"].shapes)  # type: ignore[arg-type]


@pytest.mark.parametrize(("cells", "numbers"), [
    (("1,5", "2", "-0,25", ""), [1.5, 2.0, -0.25, None]),
    (("1.234,56", "7,5"), [1234.56, 7.5]),
    (("1,234", "2,5"), [1.234, 2.5]),
    (("1,234,567", "12", "3.5"), [1234567.0, 12.0, 3.5]),
    (("1,234", "3.5"), [1234.0, 3.5]),
    (("1.5", "2"), [1.5, 2.0]),
    (("1", "2"), [1, 2]),
])
def test_what_all_cells_agree_on_is_read(cells: tuple[str, ...], numbers: list[Cell]) -> None:
    assert read(*cells) == numbers


@pytest.mark.parametrize("cells", [
    ("1,234", "5,678"), ("1,5", "n/a"), ("1,5", "2.5"), ("1,5", "1,234,567"), ("1,5,2", "2"), ("01,5", "2"),
    ("1,", "2"),
])
def test_what_can_mean_two_things_or_none_stays_as_it_is_written(cells: tuple[str, ...]) -> None:
    assert read(*cells) == list(cells)


def test_the_owner_says_how_an_open_column_is_read() -> None:
    assert offered("1,234", "5,678") == (DECIMAL, THOUSANDS, TEXT)
    assert read("1,234", "5", chosen=DECIMAL) == [1.234, 5.0] and read("1,234", "5", chosen=THOUSANDS) == [1234.0, 5.0]
    assert offered("1,5", "n/a") == (DECIMAL, TEXT) and read("1,5", "n/a", "2.5", chosen=DECIMAL) == [1.5, None, None]
    assert offered("31", "n/a") == (POINT, TEXT) and read("31", "n/a", chosen=POINT) == [31, None]
    assert read("1,5", chosen=TEXT) == ["1,5"] and offered("many", "some") == () and offered("1", "2.5") == ()
