"""A CSV file of staff's own as columns of typed cells, read as a member's importer reads one (`anon.tables`).

The importer passes over rows that it cannot read. Here rows of another width are counted, and all others refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from attrs import evolve, frozen

from anon.errors import Malformed, Refused, because
from anon.tables.columns import LearntColumn, columns_of
from anon.tables.delimited import DelimitedSource
from anon.tables.streams import LIMITS, Cell, Skip, in_its_encoding, origin_of
from anon.text.sentences import Term

_LIMITS = evolve(LIMITS, columns=100_000)


@frozen
class CsvFile:
    """The columns by name, of equal length, and how many rows were left out because they have more or fewer cells."""

    columns: dict[str, list[Cell]]
    skipped: int


def read_columns(path: Path) -> dict[str, list[Cell]]:
    """`read_csv` without the count of rows left out."""
    return read_csv(path).columns


def read_csv(path: Path) -> CsvFile:
    """The cells of a text file with a header, gzipped or not; names and types are the importer's.

    Raises `Malformed` when the file or a row cannot be read, there is no row, or two columns have one name.
    """
    try:
        source = DelimitedSource(in_its_encoding(origin_of(path), _LIMITS), _LIMITS)
        known = columns_of(source, source.records(), _LIMITS, Term("a header and at least one row"))
        return _read(source, known)
    except OSError as error:
        raise Malformed(f"{path.name}: cannot be read as CSV{because(error)}; check the path") from None
    except (Malformed, Refused) as fault:
        raise Malformed(f"{path.name}: cannot be read as CSV: {fault}") from None


def _read(source: DelimitedSource, known: Mapping[str, LearntColumn]) -> CsvFile:
    columns: dict[str, list[Cell]] = {column.name: [] for column in known.values()}
    skipped = 0
    for number, row in source.records():
        if row is Skip.WIDTH:
            skipped += 1
        elif isinstance(row, Skip):
            raise Malformed(f"line {number}: {row.value}; save it as UTF-8 text and check its quotes and line ends")
        else:
            for key, cell in row.items():
                columns[known[key].name].append(known[key].cell(cell, source.typed))
    if not any(columns.values()):
        raise Malformed(f"expected a header and at least one row of {len(columns)} cells; check the delimiter")
    return CsvFile(columns, skipped)
