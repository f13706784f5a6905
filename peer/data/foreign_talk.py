"""The conversation about a stranger's file between the child that reads it and the process that holds the keys.

Each side sends frames: four bytes of length, then one JSON value. The parent asks, and the child answers each question
with one frame; one question may be sent before the last answer was taken. The child opens a file, and then gives the
columns of a table, its number of rows, or its records, some at a time. Records are lists `[number, cell, ...]` under
the last `{"keys": [...]}`. `{"skip": [number, why]}` stands for one that is passed over, an empty list for a cell that
is too long for any table, and `null` for the end.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
from attrs import field

from anon.tables.streams import ImportLimits
from anon.values import frozen

WORD = "--read-files"
"""The only argument of a program that brings its Python along, when it is to be the server (`foreign_child.reads`)."""
BEGIN = struct.Struct("<dB")
"""Of the server: seconds of a child's life, and which of `LIBRARIES` are loaded before it."""
LIBRARIES: tuple[tuple[str, ...], ...] = ((), ("pyarrow.parquet", "pyarrow.compute"), ("openpyxl",))
"""Loading one takes much longer than a fork."""
NONE, PARQUET, EXCEL = range(len(LIBRARIES))
LENGTH = struct.Struct("<I")
LONGEST_FRAME = 8 * 2**20
"""Bytes. A row of `ImportLimits.line_bytes` takes up to six times as many."""
_NUMBERS = [part.name for part in attrs.fields(ImportLimits) if part.name != "look"]


class Silent(Exception):
    """The other side said nothing more, or nothing that can be understood."""


@frozen
class Talk:
    """One end of the conversation. Sending and receiving raise `OSError` or `Silent` when the other end is gone."""

    channel: socket.socket
    look: Callable[[], None] = lambda: None
    """Called while the other side is waited for; what it raises ends the wait."""

    def say(self, value: object) -> None:
        """Send a value."""
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        # JSON may escape half of a surrogate pair, which strict UTF-8 cannot spell.
        frame = text.encode("utf-8", "surrogatepass")
        self.channel.sendall(LENGTH.pack(len(frame)) + frame)

    def hear(self) -> Any:
        """Receive a value."""
        (length,) = LENGTH.unpack(self._exactly(LENGTH.size))
        if length > LONGEST_FRAME:
            raise Silent
        try:
            text = self._exactly(length).decode("utf-8", "surrogatepass")
            # Python's reader takes NaN and Infinity, which no JSON has.
            return json.loads(text, parse_constant=_no_number)
        except (ValueError, RecursionError):
            raise Silent from None

    def _exactly(self, length: int) -> bytes:
        parts = bytearray()
        while len(parts) < length:
            try:
                part = self.channel.recv(min(length - len(parts), 2**18))
            except TimeoutError:
                self.look()
                continue
            if not part:
                raise Silent
            parts += part
        return bytes(parts)


def _no_number(_text: str) -> None:
    raise ValueError


@frozen
class ReadingRequest:
    """The file to open, and the limits of reading it."""

    file: Path = field(repr=False)
    limits: ImportLimits

    def values(self) -> list[object]:
        """Plain values. A path may hold bytes that are no text."""
        path = os.fsencode(self.file.absolute()).decode("latin-1")
        return [path, {name: getattr(self.limits, name) for name in _NUMBERS}]

    @classmethod
    def from_values(cls, values: Any) -> ReadingRequest:
        """The request of these values."""
        path, numbers = values
        return cls(Path(os.fsdecode(path.encode("latin-1"))), ImportLimits(**numbers))
