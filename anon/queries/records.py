"""The records of a study in which a query gives many rows, and the seeded draw that cuts too many.

Each row has two columns, the key of a record and a value. A record is a key that any query gives. Its values are those
that the queries give beside the key; one that comes twice, or not at all, is missing.

The draw ranks keys by SHA-256 of a secret seed and the key, and keeps those of the lowest ranks. So it depends on no
value and no order of rows. A record in place of another one changes at most one of those kept: docs/explanation/
exact-sums.md has the proof.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from heapq import heappop, heappush
from typing import NamedTuple

from anon.queries.sandbox import MissingValue, Outcome, Reason, Sandbox

LONGEST_KEY = 1000
"""Characters."""

Key = int | str


class Draw(NamedTuple):
    """At most `most` records are kept. `seed`: secret bytes of this machine, the same for a study whenever it is asked.
    """

    most: int
    seed: bytes

    def rank(self, key: Key) -> bytes:
        """The place of a key among all keys, 32 bytes: the lowest are kept."""
        # The number 1 and the text "1" are two keys.
        spelled = f"{'text' if isinstance(key, str) else 'number'} {key}".encode("utf-8", "surrogatepass")
        return hashlib.sha256(len(self.seed).to_bytes(2, "big") + self.seed + spelled).digest()


class Drawing:
    """The records of the lowest ranks among all keys seen so far, with their outcomes: at most so many at any time.

    A key that was let go never comes back: those kept only sink in rank.
    """

    def __init__(self, draw: Draw, questions: int) -> None:
        self._draw = draw
        self._missing: list[Outcome | None] = [None] * questions
        self._kept: dict[Key, list[Outcome | None]] = {}
        self._heap: list[tuple[int, Key]] = []

    def put(self, question: int, key: Key, value: Outcome) -> None:
        """One row of a question's query. A second value of one key makes it missing."""
        held = self._kept.get(key) or self._begun(key)
        if held is not None:
            held[question] = value if held[question] is None else _TWICE

    def drop(self, question: int) -> None:
        """Forget all values of a question: its query did not end. The keys stay."""
        for held in self._kept.values():
            held[question] = None

    def records(self) -> list[list[Outcome | None]]:
        """The outcomes of each record, one for each question, in the order of ranks."""
        return [self._kept[key] for _, key in sorted(self._heap, reverse=True)]

    def _begun(self, key: Key) -> list[Outcome | None] | None:
        # A heap has its least on top: negated, that is the record to let go.
        place = -int.from_bytes(self._draw.rank(key), "big")
        if len(self._heap) == self._draw.most:
            if place < self._heap[0][0]:
                return None
            del self._kept[heappop(self._heap)[1]]
        heappush(self._heap, (place, key))
        self._kept[key] = list(self._missing)
        return self._kept[key]


_TWICE = MissingValue(Reason.SHAPE)


def drawn(sandbox: Sandbox, queries: Sequence[str], as_of: int, draw: Draw) -> list[list[Outcome | None]]:
    """The outcomes of all queries, record by record; at most as many records as the draw keeps. Never raises for
    anything that depends on data."""
    drawing = Drawing(draw, len(queries))
    for number, query in enumerate(queries):
        if not sandbox.rows(query, as_of, partial(_row, drawing, number)):
            drawing.drop(number)
    return drawing.records()


def _row(drawing: Drawing, question: int, key: object, value: Outcome) -> None:
    """A row without a key is none: NULL, bytes, a number that is not whole, or a text too long to be a key."""
    if isinstance(key, float) and key.is_integer():
        key = int(key)
    if isinstance(key, int) or (isinstance(key, str) and len(key) <= LONGEST_KEY):
        drawing.put(question, key, value)
