"""A clock that nobody sets, and the leaps of the one that somebody does."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

from attrs import define, field

WORTH_TELLING = 60.0
"""Seconds of a leap that is told."""

OF_ONE: Mapping[str, object] = MappingProxyType({"of_one": True})
"""A log line's `extra` where it may come of a single member's act: its time is told to the hour."""


def elapsed_seconds() -> float:
    """Seconds since some instant, those asleep included where the system counts them."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    if sys.platform == "darwin":
        return time.clock_gettime(time.CLOCK_MONOTONIC)
    return time.monotonic()


@define
class Leaps:
    """Tells when this machine's clock was set while a command runs. `wall`: unix seconds; `elapsed`: nobody sets it."""

    wall: Callable[[], float] = time.time
    elapsed: Callable[[], float] = elapsed_seconds
    _apart: float = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._apart = self.wall() - self.elapsed()

    def look(self) -> str:
        """A sentence for each leap since the last look; empty without one."""
        leapt = self.wall() - self.elapsed() - self._apart
        if abs(leapt) < WORTH_TELLING:
            return ""
        self._apart += leapt
        return (
            f"this machine's clock leapt {'ahead' if leapt > 0 else 'back'} by {abs(leapt) / 3600:.1f} hours, and the "
            "windows of studies go by it: check its date and time"
        )
