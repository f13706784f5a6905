"""How far a demo is, as its processes note it for the one that shows it: numbers in small files."""

from __future__ import annotations

import json
import mmap
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

_NUMBERS = struct.Struct("<3q")


@frozen
class Reached:
    """How many peers enrolled, packets left, and peers have ended."""

    enrolled: int = 0
    sent: int = 0
    ended: int = 0

    def __add__(self, other: Reached) -> Reached:
        return Reached(self.enrolled + other.enrolled, self.sent + other.sent, self.ended + other.ended)


class HostProgress:
    """The numbers of one process of peers, in a file that it alone writes."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(_NUMBERS.size))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _NUMBERS.size)
        self._reached = Reached()

    def add(self, enrolled: int = 0, sent: int = 0, ended: int = 0) -> None:
        """So many more."""
        self._reached += Reached(enrolled, sent, ended)
        now = self._reached
        self._map[:] = _NUMBERS.pack(now.enrolled, now.sent, now.ended)


def reached_in(folder: Path) -> Reached:
    """The sum over all processes of peers of a demo's folder."""
    found = [path.read_bytes() for path in sorted(folder.glob("homes-*/progress"))]
    return sum((Reached(*_NUMBERS.unpack(each)) for each in found if len(each) == _NUMBERS.size), Reached())


def keep_sight(path: Path, sight: Mapping[str, Any]) -> None:
    """The aggregator's part, whole or not at all."""
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(sight), "utf-8")
    beside.replace(path)


def sight_in(path: Path) -> dict[str, Any]:
    """The aggregator's part; empty before there is one."""
    return dict(json.loads(path.read_text("utf-8"))) if path.exists() else {}
