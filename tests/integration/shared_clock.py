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

_SECONDS = struct.Struct("<d")
START = 1_700_000_000.0
LONGEST_BEAT = 0.1


class SharedClock:
    """Unix seconds in a file. Every process opens it by its path."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            path.write_bytes(_SECONDS.pack(START))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _SECONDS.size)

    def __call__(self) -> float:
        return float(_SECONDS.unpack(self._map[:])[0])

    def set(self, seconds: float) -> None:
        """Move it. Only the test does."""
        self._map[:] = _SECONDS.pack(seconds)

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
                self.clock.set(self.clock() + self.rate * min(now - last, LONGEST_BEAT))
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
