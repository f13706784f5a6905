"""The columns of a sample file, as the beginning of a study's features. The file is staff's own and stays on their
machine; nothing but names, round bounds and values that several people share is taken from it.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil, floor, log10
from pathlib import Path

from attrs import frozen

from aggregator.lab.simulation.csv_file import read_columns
from aggregator.lab.simulation.inference import FEW_NUMBERS, numbers_if_any
from anon.storage.private_files import new_private_text
from anon.tables.streams import Cell

MOST_VALUES = 12
"""So many of a column's commonest values are offered as categories."""
FEWEST_SHARING = 2
"""A value that fewer rows have is not offered: it may tell of one person."""


@frozen
class SampleColumn:
    """A column: `numeric` with round bounds beyond all its values, or else the values that several rows have, and how
    many rows have each."""

    name: str
    numeric: bool
    low: float = 0.0
    high: float = 0.0
    values: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()


def sample_columns(text: str) -> tuple[SampleColumn, ...]:
    """The columns of a CSV file's text, in its order. Raises `Malformed` when it cannot be read."""
    with as_file(text) as path:
        return tuple(_column(name, numbers_if_any(cells)) for name, cells in read_columns(path).items())


@contextmanager
def as_file(text: str) -> Iterator[Path]:
    """A private file with this text, for as long as this lasts."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "sample.csv"
        with new_private_text(path) as file:
            file.write(text)
        yield path


def _column(name: str, cells: list[Cell]) -> SampleColumn:
    known = [cell for cell in cells if cell is not None]
    counted = Counter(known)
    numbers = [float(cell) for cell in known if isinstance(cell, (int, float))]
    if len(counted) > FEW_NUMBERS and len(numbers) == len(known):
        low, high = _below(min(numbers)), _above(max(numbers))
        return SampleColumn(name, True, 0.0 if 0 <= low < high / 4 else low, high)
    shared = [value for value, count in counted.most_common(MOST_VALUES) if count >= FEWEST_SHARING]
    if len(numbers) == len(known):
        shared.sort(key=float)
    counts = tuple(counted[value] for value in shared)
    return SampleColumn(name, False, values=tuple(str(value) for value in shared), counts=counts)


def _above(value: float) -> float:
    step = _step(value)
    return ceil(value / step) * step if value else 1.0


def _below(value: float) -> float:
    step = _step(value)
    return floor(value / step) * step if value else 0.0


def _step(value: float) -> float:
    """Half a power of ten: 0.5, 5, 50."""
    return 10.0 ** floor(log10(abs(value))) / 2 if value else 1.0
