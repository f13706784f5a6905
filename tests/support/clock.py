"""Clocks that a test sets by hand. `shared_clock` has those that several processes read."""

from __future__ import annotations

import asyncio
import time

from attrs import define, field

START = 1_700_000_000


@define
class Clock:
    """Unix seconds that only a test moves; a sleeper moves them to its own end at once."""

    seconds: float = float(START)

    def __call__(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        """Awake, that much later."""
        self.seconds += max(0.0, seconds)


@define
class RunningClock(Clock):
    """Real time from `START` on; what a test adds to `seconds` is a leap."""

    _begun: float = field(factory=time.monotonic, init=False)

    def __call__(self) -> float:
        return self.seconds + time.monotonic() - self._begun

    async def sleep(self, seconds: float) -> None:
        """Awake, that much later in real time."""
        await asyncio.sleep(seconds)
