"""Records as rows of their columns' types, counting what is passed over and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from attrs import define, field

from anon.tables.columns import LearntColumn
from anon.tables.streams import Cell, ImportLimits, Record, Skip
from anon.text.sentences import Sentence, say_many

PROGRESS_EVERY = 1_000


@define
class Reading:
    """One reading of a source whose columns are known."""

    typed: bool
    columns: Mapping[str, LearntColumn]
    limits: ImportLimits
    progress: Callable[[int], None]
    read: int = 0
    emptied: int = 0
    counted: Counter[Skip] = field(factory=Counter)
    numbers: list[int] = field(factory=list)
    """Of the first records passed over."""

    @property
    def skipped(self) -> int:
        """Records passed over."""
        return self.counted.total()

    @property
    def reasons(self) -> dict[str, int]:
        """Why, and how many each."""
        return {why.value: count for why, count in self.counted.items()}

    def rows(self, records: Iterable[Record]) -> Iterator[list[Cell]]:
        """Rows to insert."""
        for number, cells in records:
            row = cells if isinstance(cells, Skip) else self._row(cells)
            if isinstance(row, Skip):
                self._skip(number, row)
                continue
            self.read += 1
            if self.read % PROGRESS_EVERY == 0:
                self.progress(self.read)
            yield row
        self.progress(self.read)

    def _skip(self, number: int, why: Skip) -> None:
        self.counted[why] += 1
        if len(self.numbers) < self.limits.lines_named:
            self.numbers.append(number)

    def _row(self, cells: dict[str, Cell]) -> list[Cell] | Skip:
        try:
            row = [self._cell(cells.get(key), column) for key, column in self.columns.items()]
            size = sum(len(cell.encode()) if isinstance(cell, str) else 9 for cell in row)
        except UnicodeEncodeError:  # half of a surrogate pair, from a JSON escape
            return Skip.BROKEN
        return row if size <= self.limits.row_bytes else Skip.LONG

    def _cell(self, cell: Cell, column: LearntColumn) -> Cell:
        if isinstance(cell, str) and (len(cell.encode()) > self.limits.cell_bytes or "\0" in cell):
            self.emptied += 1
            return None
        return column.cell(cell, self.typed)


def counted(number: int, unit: str) -> Sentence:
    """"1 line", "2 entries": of the units that sources count in, and texts."""
    match unit:
        case "line":
            return say_many("{count} line", "{count} lines", number)
        case "entry":
            return say_many("{count} entry", "{count} entries", number)
        case "row":
            return say_many("{count} row", "{count} rows", number)
        case "text":
            return say_many("{count} text", "{count} texts", number)
    raise ValueError(unit)
