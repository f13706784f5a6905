"""Work that takes longer than a page may: one job of a name for a study at a time, its result kept until the next."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from attrs import frozen

from anon.errors import AnonmlError

Place = tuple[bytes, str]


@frozen
class Outcome:
    """How a job stands: `state` is "running", "done" or "failed"; `fault` says why."""

    state: str
    result: Any = None
    fault: str = ""


class Jobs:
    """The jobs of a desk."""

    def __init__(self) -> None:
        self._tasks: dict[Place, asyncio.Task[Any]] = {}

    def start(self, study: bytes, name: str, work: Coroutine[Any, Any, Any]) -> None:
        """Begin, unless the same job is under way."""
        running = self._tasks.get((study, name))
        if running is not None and not running.done():
            work.close()
            return
        self._tasks[study, name] = asyncio.create_task(work)

    def outcome(self, study: bytes, name: str) -> Outcome | None:
        """How the last job of this name stands; None when there was none."""
        task = self._tasks.get((study, name))
        if task is None:
            return None
        if not task.done():
            return Outcome("running")
        if task.cancelled():
            return Outcome("failed", fault="it was stopped")
        error = task.exception()
        if isinstance(error, AnonmlError):
            return Outcome("failed", fault=str(error))
        if error is not None:
            return Outcome("failed", fault=f"it failed ({type(error).__name__})")
        return Outcome("done", task.result())

    async def close(self) -> None:
        """End all."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
