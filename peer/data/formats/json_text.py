"""JSON Lines (jsonlines.org) and one JSON list (RFC 8259), both read entry by entry in bounded memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from anon.tables.streams import CHUNK, Cell, ImportLimits, Origin, Record, Skip, finite_number, numbered_lines
from anon.values import frozen

DEEPEST = 500
"""Brackets within an entry, one in the other. A deeper entry never reaches the JSON reader."""
_STRUCTURE = re.compile(rb'["\]},]|[\[{]+')
_IN_STRING = re.compile(rb'["\\]')


@frozen
class JsonLinesSource:
    """One JSON object a line; what is nested stays JSON text."""

    origin: Origin
    limits: ImportLimits
    known: tuple[str, ...] = ()
    typed: bool = True
    unit: str = "line"

    def keys(self) -> Sequence[str]:
        """Those that the format names; every object may bring its own."""
        return self.known

    def records(self) -> Iterator[Record]:
        """Every line that is not blank."""
        for number, line in numbered_lines(self.origin, self.limits):
            if line is None:
                yield number, Skip.LONG
            elif line.strip():
                yield number, row_of(json_value(line))


@frozen
class JsonListSource:
    """The objects of one JSON list; what is nested stays JSON text."""

    origin: Origin
    limits: ImportLimits
    typed: bool = True
    unit: str = "entry"

    def keys(self) -> Sequence[str]:
        """None: every object may bring its own."""
        return ()

    def records(self) -> Iterator[Record]:
        """Every entry of the list."""
        for number, value in numbered_entries(self.origin, self.limits):
            yield number, row_of(value)


def json_value(raw: bytes) -> Any:
    """The value, or None for what is no JSON. NaN and infinities are nothing."""
    try:
        # Programs of Windows begin UTF-8 with a byte order mark.
        return json.loads(raw.decode("utf-8-sig"), parse_constant=lambda _name: None)
    except (ValueError, RecursionError):
        return None


def row_of(value: Any) -> dict[str, Cell] | Skip:
    """Cells of a JSON object; every other value is passed over."""
    if not isinstance(value, dict):
        return value if isinstance(value, Skip) else Skip.BROKEN
    try:
        return {key.replace("\0", ""): cell_of(part) for key, part in value.items()}
    except RecursionError:  # nested as deeply as it could just be read
        return Skip.BROKEN


def cell_of(value: Any) -> Cell:
    """A JSON value as a cell: a list or an object stays JSON text."""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float):
        return finite_number(value)
    return value if isinstance(value, str) else None


def numbered_entries(origin: Origin, limits: ImportLimits, depth: int = 1) -> Iterator[tuple[int, Any]]:
    """The values at `depth` brackets below the top, from 1; a `Skip` for one that is too long, broken or breaks off.

    The text between two commas is held and read alone, so that one broken entry spoils no other.
    """
    for number, raw in enumerate(_entries(origin, limits, depth), 1):
        yield number, raw if isinstance(raw, Skip) else json_value(raw)


def _entries(origin: Origin, limits: ImportLimits, depth: int) -> Iterator[bytes | Skip]:
    scan = _Scan(depth, limits.line_bytes)
    with origin.open(limits) as stream:
        while chunk := stream.read(CHUNK):
            yield from scan.feed(chunk)
            if scan.ended:
                return
    yield from scan.cut_off()


class _Scan:
    """Finds where entries begin and end by brackets, commas and strings alone."""

    def __init__(self, depth: int, most: int) -> None:
        self._base, self._most = depth, most
        self._depth = 0
        self._in_string = self._escaped = self._long = self._deep = False
        self._held = bytearray()
        self.ended = False

    def feed(self, chunk: bytes) -> Iterator[bytes | Skip]:
        """Entries that end in this chunk."""
        begin = position = 0
        if self._escaped:
            position, self._escaped = 1, False
        while (match := (_IN_STRING if self._in_string else _STRUCTURE).search(chunk, position)) is not None:
            position, sign = match.end(), match[0]
            if sign == b"\\":
                self._escaped = position == len(chunk)
                position += 1
            elif sign == b'"':
                self._in_string = not self._in_string
            elif sign[0] in b"[{":
                needed = self._base - self._depth
                self._depth += len(sign)
                self._deep = self._deep or self._depth > self._base + DEEPEST
                if 0 < needed <= len(sign) and sign[needed - 1] == b"["[0]:
                    begin = match.start() + needed
            elif sign == b",":
                if self._depth == self._base:
                    self._keep(chunk[begin : position - 1])
                    yield from self._taken()
                    begin = position
                elif self._depth < self._base:
                    begin = position
            else:
                if self._depth == self._base:
                    self._keep(chunk[begin : position - 1])
                    yield from self._taken(last=True)
                    begin = position
                self._depth -= 1
                if self._depth <= 0:
                    self.ended = True
                    return
        self._keep(chunk[begin:])

    def cut_off(self) -> Iterator[bytes | Skip]:
        """Once, if the list never ended: its last entry cannot be trusted."""
        yield Skip.BROKEN

    def _keep(self, part: bytes) -> None:
        if self._depth < self._base:
            return
        self._long = self._long or len(self._held) + len(part) > self._most
        if self._long or self._deep:
            self._held.clear()
        else:
            self._held += part

    def _taken(self, last: bool = False) -> Iterator[bytes | Skip]:
        raw, too_long, too_deep = bytes(self._held), self._long, self._deep
        self._held.clear()
        self._long = self._deep = False
        if too_long or too_deep:
            yield Skip.LONG if too_long else Skip.BROKEN
        elif raw.strip() or not last:
            yield raw
