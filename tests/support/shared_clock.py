"""A clock that several processes read and one test moves: fast, never ahead of the work, held while something restarts.

With the wall clock a study of a few seconds would fail on a busy machine; with this one it only takes longer.
"""

from __future__ import annotations

import asyncio
import mmap
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.clock import START, Clock

_SECONDS = struct.Struct("<d")
LONGEST_BEAT = 0.1


class FileClock(Clock):
    """A clock whose reading is in a file: it outlives its process, and every process opens it by its path."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            path.write_bytes(_SECONDS.pack(START))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _SECONDS.size)

    @property
    def seconds(self) -> float:  # type: ignore[override]
        """Unix seconds."""
        return float(_SECONDS.unpack(self._map[:])[0])

    @seconds.setter
    def seconds(self, seconds: float) -> None:
        self._map[:] = _SECONDS.pack(seconds)


class SharedClock(FileClock):
    """A file's clock that one test moves: the others that read it wait."""

    async def sleep(self, seconds: float) -> None:
        """Until the clock shows so much more."""
        until = self() + seconds
        while self() < until:
            await asyncio.sleep(0.02)


class Flow:
    """Moves a clock `rate` times as fast as real time, but not while it is held or while this process is starved."""

    def __init__(self, clock: SharedClock, rate: float = 10.0) -> None:
        self.clock = clock
        self.rate = rate
        self._holds = 0

    async def run(self) -> None:
        """Until cancelled."""
        last = time.monotonic()
        while True:
            await asyncio.sleep(0.02)
            now = time.monotonic()
            if not self._holds:
                self.clock.seconds += self.rate * min(now - last, LONGEST_BEAT)
            last = now

    @contextmanager
    def held(self) -> Iterator[None]:
        """Time stands still."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1

    async def reach(self, seconds: float) -> None:
        """Wait until the clock shows so much."""
        while self.clock() < seconds:
            await asyncio.sleep(0.02)
