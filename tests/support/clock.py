"""Clocks that a test sets by hand. `shared_clock` has those that several processes read."""

from __future__ import annotations

import asyncio
import time

from attrs import define, field

from examples.clock import Clock
from tests.support.patience import until

START = 1_700_000_000


@define
class SteppedClock(Clock):
    """Time stands until a test lets it go on; who sleeps waits for that."""

    _ends: list[tuple[float, asyncio.Event]] = field(factory=list, init=False)

    async def sleep(self, seconds: float) -> None:
        """Awake when the clock shows that much more."""
        self._ends.append((self.seconds + seconds, end := asyncio.Event()))
        await end.wait()

    async def rest(self, sleepers: int) -> None:
        """Wait until so many sleep: nothing is under way then."""
        await until(lambda: len(self._ends) == sleepers)

    def go_on(self, seconds: float) -> None:
        """Wake all whose time has come by then."""
        self.seconds += seconds
        due = [(at, end) for at, end in self._ends if at <= self.seconds]
        self._ends = [one for one in self._ends if one not in due]
        for _, end in due:
            end.set()


@define
class RunningClock(Clock):
    """Real time from `START` on; what a test adds to `seconds` is a leap."""

    _begun: float = field(factory=time.monotonic, init=False)

    def __call__(self) -> float:
        return self.seconds + time.monotonic() - self._begun

    async def sleep(self, seconds: float) -> None:
        """Awake, that much later in real time."""
        await asyncio.sleep(seconds)
