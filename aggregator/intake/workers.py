"""Where heavy work runs: processes of their own, so that the event loop stays free and both cores are used.

1. The pool is made by spawning: a forked child would have the locks of threads that it does not have.
2. A worker leaves interrupts to its parent, keeps little of the environment, and ends when its parent does.
3. `run` gives a function and its arguments to a worker. Where that one dies, a new pool repeats the work once.

Secret keys are given to these workers alone, and never to `aggregator.compute`. The curve library lets go of the
interpreter's lock, but only for moments: a thread would hold up the event loop.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from typing import ParamSpec, TypeVar

from anon.machine.environment import shed

Given = ParamSpec("Given")
Result = TypeVar("Result")


class Workers:
    """Runs functions in `processes` worker processes; with 0, in a thread of this one (for tests)."""

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._pool = _pool(processes) if processes else None

    async def run(self, function: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs) -> Result:
        """The function's result. Everything passed must pickle. If a worker dies its work is repeated, once, by a new
        one; `BrokenProcessPool` is raised if that dies too.
        """
        if self._pool is None:
            return await asyncio.to_thread(function, *args, **kwargs)
        pool = self._pool
        try:
            # The loop's own run_in_executor takes no keyword arguments.
            return await asyncio.wrap_future(pool.submit(function, *args, **kwargs))
        except BrokenProcessPool:
            fresh = self._replace(pool)
            return await asyncio.wrap_future(fresh.submit(function, *args, **kwargs))

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _replace(self, broken: ProcessPoolExecutor) -> ProcessPoolExecutor:
        # Several callers may see one pool break: the first replaces it, and the others take the new one.
        if self._pool is broken or self._pool is None:
            broken.shutdown(wait=False)
            self._pool = _pool(self._processes)
        return self._pool


def _pool(processes: int) -> ProcessPoolExecutor:
    # A forked child would have the locks of threads that it does not have.
    return ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn"), initializer=begin_child)


def begin_child() -> None:
    """Leave interrupts to the parent, keep of its environment what a child may have, and end when it does."""
    shed()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent,), daemon=True).start()


def _follow(parent: BaseProcess) -> None:
    parent.join()
    # In a thread sys.exit ends that thread alone.
    os._exit(0)
