"""Work that a study waits for, beside the clockwork: while it lasts, no other study waits with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any


class Job:
    """One piece of work at a time, by name. Nothing of it is durable: it is begun anew after a restart."""

    def __init__(self) -> None:
        self._name = ""
        self._task: asyncio.Task[None] | None = None

    @property
    def waits(self) -> bool:
        """True while something is under way, or done and not asked for since."""
        return self._task is not None

    @property
    def under_way(self) -> bool:
        """True while something is under way."""
        return self._task is not None and not self._task.done()

    async def ended(self, seconds: float) -> None:
        """Return when what is under way has ended, after so many seconds at the latest."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=seconds)

    async def done(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """True, once, when the work of this name is done; begin it if nothing is under way. Raises what it raised, and
        the next call begins it anew."""
        if self._task is None or (self._name != name and self._task.done()):
            await self.stop()
            self._name, self._task = name, asyncio.create_task(work())
        await asyncio.sleep(0)
        if not self._task.done() or self._name != name:
            return False
        finished, self._task = self._task, None
        finished.result()
        return True

    async def stop(self) -> None:
        """End what is under way."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task
