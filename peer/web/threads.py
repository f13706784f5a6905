"""Threads for what the page is asked: apart from those that evaluate studies, and few.

Files are read, and queries of strangers wait for their answers, in threads of their own, so that a page is drawn while
they are. A reading can be stopped at any time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event
from typing import Any, TypeVar

T = TypeVar("T")
PREVIEWS, IMPORTS, QUERIES, PAGES = 2, 1, 2, 4
"""Threads that look at files, that import one, that wait for queries, and that compute what a page shows."""


class Threads:
    """Never the event loop's own threads, which belong to the studies."""

    def __init__(self) -> None:
        self._previews = ThreadPoolExecutor(PREVIEWS, "anonml-preview")
        self._imports = ThreadPoolExecutor(IMPORTS, "anonml-import")
        self._queries = ThreadPoolExecutor(QUERIES, "anonml-query")
        self._pages = ThreadPoolExecutor(PAGES, "anonml-page")

    async def asked(self, function: Callable[..., T], *arguments: Any) -> T:
        """A page's content, computed in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pages, partial(function, *arguments))

    async def queried(self, function: Callable[..., T], *arguments: Any) -> T:
        """Answers to queries that somebody else wrote: they may take all of their time."""
        return await asyncio.get_running_loop().run_in_executor(self._queries, partial(function, *arguments))

    async def looked(self, function: Callable[..., T], *arguments: Any, stop: Event) -> T:
        """A file being looked at. It ends soon after `stop` is set, and `stop` is set when nobody waits any more."""
        return await _stoppable(self._previews, partial(function, *arguments, stop=stop), stop)

    async def imported(self, function: Callable[..., T], *arguments: Any, stop: Event) -> T:
        """A file being imported: one at a time."""
        return await _stoppable(self._imports, partial(function, *arguments, stop=stop), stop)

    def close(self) -> None:
        """Let the threads end once nothing is left in them."""
        for threads in (self._previews, self._imports, self._queries, self._pages):
            threads.shutdown(wait=False, cancel_futures=True)


async def _stoppable(threads: ThreadPoolExecutor, work: Callable[[], T], stop: Event) -> T:
    try:
        return await asyncio.get_running_loop().run_in_executor(threads, work)
    finally:
        stop.set()
