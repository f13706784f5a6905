"""One reading of a file, bounded as a whole: rows, bytes and time, and until its owner stops it.

A small file can name one part of itself again and again, or say a value once and its number. So what comes out is
counted, whatever the format claims.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

from attrs import define, evolve, field

from anon.errors import AnonmlError, Malformed, Refused, because
from anon.tables.streams import ImportLimits, Record, Source
from anon.text.sentences import say

LOOK_EVERY = 64
"""Records between two looks at the clock and at the owner's wish."""
_ROW_BYTES, _NUMBER_BYTES = 16, 8
"""Counted of each record, and of each cell that is no text: about the work that they make."""


@define
class Watch:
    """Ends a reading that was stopped or takes too long. Any thread may set `stop`."""

    stop: Event
    ends: float

    @classmethod
    def begin(cls, seconds: float, stop: Event | None = None) -> Watch:
        """A watch from now on."""
        return cls(stop or Event(), time.monotonic() + seconds)

    def look(self) -> None:
        """Raises `Refused` when the reading is to end."""
        if self.stop.is_set():
            raise Refused(say("reading the file was stopped; nothing was imported"))
        if time.monotonic() > self.ends:
            raise Refused(say("reading the file takes too long; import it in parts, or export it as CSV"))


def watched(limits: ImportLimits, seconds: float, stop: Event | None) -> ImportLimits:
    """The same limits, with a watch that begins now."""
    return evolve(limits, look=Watch.begin(seconds, stop).look)


@define
class RecordMeter:
    """Counts all records of one file, over every pass. `size` is what the file takes on the disk.

    Without a `size` the file's own bytes are counted as they are unpacked (`anon.tables.streams`).
    """

    limits: ImportLimits
    size: int | None
    _read: int = field(default=0, init=False)

    @property
    def most(self) -> int:
        """Bytes that all passes together may give."""
        if self.size is None:
            return self.limits.passes * self.limits.archive_bytes
        return self.limits.passes * max(self.limits.rows_from, self.limits.ratio * self.size)

    def records(self, source: Source) -> Iterator[Record]:
        """The records of the source. Raises `Refused` when there are more than a file of this size holds."""
        for count, (number, row) in enumerate(source.records()):
            if count % LOOK_EVERY == 0:
                self.limits.look()
            self._read += _bytes_of(row)
            if self._read > self.most:
                raise Refused(say("the file gives far more rows than a file of its length holds; export it as CSV"))
            yield number, row


def _bytes_of(row: object) -> int:
    cells = row.values() if isinstance(row, dict) else ()
    return sum((len(cell) if isinstance(cell, str) else _NUMBER_BYTES for cell in cells), _ROW_BYTES)


@contextmanager
def said_as_a_bad_file() -> Iterator[None]:
    """A reader's surprise at a file becomes `Malformed`; its own text may quote the data and is dropped.

    Errors of disks and of the data file pass: readers say their own in their own words.
    """
    try:
        yield
    except (AnonmlError, OSError, MemoryError, sqlite3.Error):
        raise
    except Exception as error:
        raise Malformed(
            say(
                "the file cannot be read{why}: it is damaged or unusual; export it again, or as CSV",
                why=because(error),
            )
        ) from None

