"""Work that takes longer than a page may: one job of a name at a time, its result kept until it is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from anon.errors import FAULT_IN_THIS_PROGRAM, AnonmlError
from anon.text.sentences import say
from anon.values import frozen

T = TypeVar("T")


@frozen
class Outcome:
    """How a job stands: `state` is "running", "done" or "failed"; `fault` says why."""

    state: str
    result: Any = None
    fault: str = ""


class Jobs:
    """The jobs of a server's pages."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[Any]] = {}

    def begin(self, name: str, make: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Task[T]:
        """The job of this name, begun if there is none."""
        task = self._tasks.get(name)
        if task is None:
            task = self._tasks[name] = asyncio.create_task(make())
            task.add_done_callback(_heard)
        return task

    def begin_anew(self, name: str, make: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Task[T]:
        """The same, but one that has ended is forgotten first."""
        if (task := self._tasks.get(name)) is not None and task.done():
            self.forget(name)
        return self.begin(name, make)

    def get(self, name: str) -> asyncio.Task[Any] | None:
        """The job of this name, if it was begun and not forgotten."""
        return self._tasks.get(name)

    def outcome(self, name: str) -> Outcome | None:
        """How the job of this name stands; None when there is none."""
        task = self._tasks.get(name)
        if task is None:
            return None
        if not task.done():
            return Outcome("running")
        if task.cancelled():
            return Outcome("failed", fault=say("it was stopped"))
        error = task.exception()
        if isinstance(error, AnonmlError):
            return Outcome("failed", fault=str(error))
        if error is not None:
            return Outcome("failed", fault=FAULT_IN_THIS_PROGRAM)
        return Outcome("done", task.result())

    def names(self, beginning: str = "") -> list[str]:
        """Every job whose name begins so, if it was begun and not forgotten."""
        return [name for name in self._tasks if name.startswith(beginning)]

    def unfinished(self, beginning: str) -> list[str]:
        """Those of them that are under way."""
        return [name for name in self.names(beginning) if not self._tasks[name].done()]

    def forget(self, name: str) -> None:
        """The next beginning of this job begins it anew. One under way is ended."""
        task = self._tasks.pop(name, None)
        if task is not None and not task.done():
            task.cancel()

    async def close(self) -> None:
        """End all."""
        tasks = list(self._tasks.values())
        for name in self.names():
            self.forget(name)
        await asyncio.gather(*tasks, return_exceptions=True)


def _heard(task: asyncio.Task[Any]) -> None:
    """A job that fails while nobody looks: asyncio would log its text, which may quote somebody's data."""
    if not task.cancelled():
        task.exception()
