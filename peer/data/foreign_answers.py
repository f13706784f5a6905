"""The answers of the child that reads a stranger's file (`peer.data.foreign_talk`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import define, field

from anon.errors import AnonmlError
from anon.tables.streams import Cell, ImportLimits, Record, Skip
from anon.text.sentences import to_store
from peer.data.foreign_talk import ReadingRequest, Silent, Talk
from peer.data.formats.detect import DetectedFile, detected
from peer.data.watching import said_as_a_bad_file

ROWS, SIGNS = 512, 2**16
"""Records of one frame, and the characters after which it ends: reading one frame holds up no loop."""
CELL = 8
"""Characters that a cell counts for beside its own: a number takes that long to read."""


def converse(talk: Talk) -> None:
    """Open the file that is asked for, say what it is, and answer questions until the other end closes."""
    request = ReadingRequest.from_values(talk.hear())
    try:
        with said_as_a_bad_file(), detected(request.file, request.limits) as found:
            answers = _Answers(found, request.limits)
            talk.say(_described(found))
            while True:
                talk.say(_answer(answers, talk.hear()))
    except AnonmlError as fault:
        talk.say(_said(fault))
    except (Silent, BrokenPipeError, ConnectionResetError):
        return


def _answer(answers: _Answers, question: Any) -> object:
    try:
        with said_as_a_bad_file():
            return answers.to(question)
    except AnonmlError as fault:
        return _said(fault)


def _said(fault: AnonmlError) -> object:
    return {"fault": [fault.code, to_store(str(fault))]}


def _described(found: DetectedFile) -> object:
    tables = [[table.name, table.title, table.source.typed, table.source.unit] for table in found.tables]
    notes = [to_store(note) for note in found.notes]
    return [found.format, to_store(found.says), tables, notes, found.size]


@define
class _Answers:
    """Answers to questions about an open file."""

    found: DetectedFile
    limits: ImportLimits
    _records: Iterator[Record] = field(factory=lambda: iter(()))
    _keys: list[str] = field(factory=list)

    def to(self, question: Any) -> object:
        """The answer to one question. Raises as reading the file does."""
        match question:
            case ["keys", int(table)]:
                return list(self.found.tables[table].source.keys())
            case ["count", int(table)]:
                return self.found.tables[table].count()
            case ["records", int(table)]:
                self._records, self._keys = self.found.tables[table].source.records(), []
        return self._some()

    def _some(self) -> list[object]:
        """Some more records, with None at the end when there are no others."""
        said: list[object] = []
        signs = 0
        for number, row in self._records:
            signs += self._tell(said, number, row)
            if len(said) >= ROWS or signs >= SIGNS:
                return said
        return [*said, None]

    def _tell(self, said: list[object], number: int, row: dict[str, Cell] | Skip) -> int:
        """Add a record, or that it is passed over; how many characters it counts for."""
        cells, signs = ([], 0) if isinstance(row, Skip) else self._cells(row)
        why = row if isinstance(row, Skip) else Skip.LONG
        if isinstance(row, Skip) or signs > self.limits.line_bytes:
            said.append({"skip": [number, why.name]})
            return 1
        keys = list(row)
        if keys != self._keys:
            self._keys = keys
            said.append({"keys": keys})
        said.append([number, *cells])
        return signs + CELL * len(cells)

    def _cells(self, row: dict[str, Cell]) -> tuple[list[object], int]:
        """The cells, an empty list for each that is too long, and the characters of cells and keys."""
        cells: list[object] = list(row.values())
        signs = len(cells) + sum(map(len, row))
        for index, cell in enumerate(cells):
            if isinstance(cell, str):
                if len(cell) > self.limits.cell_bytes:
                    cells[index] = []
                else:
                    signs += len(cell)
        return cells, signs
