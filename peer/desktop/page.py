"""The owner's page served by a thread of its own, for programs in which something else must hold the main thread: a
tray icon, a window. Calls from there are done in that thread, where the store was opened."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import TypeVar

from peer.desktop.notifier import reminding_beside
from peer.desktop.served import ServedPage

T = TypeVar("T")
Make = Callable[[], tuple[ServedPage, Callable[[], Awaitable[None]]]]
"""Makes the server and what is closed after it, in the thread that serves."""


class Page:
    """Serves, runs the studies and notifies between `start` and `stop`, each called once."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self._ready: Future[ServedPage] = Future()
        self._stopped = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._serve, name="page", daemon=True)

    def start(self) -> None:
        """Return once it answers. Raises whatever kept it from that: `Refused`, say."""
        self._thread.start()
        self._ready.result()

    def ask(self, work: Callable[[ServedPage], T]) -> T:
        """The result of something short, done in the thread that serves. Raises what it raises."""
        assert self._loop is not None
        server, loop = self._ready.result(), self._loop

        async def done() -> T:
            return work(server)

        return asyncio.run_coroutine_threadsafe(done(), loop).result()

    def link(self) -> str:
        """The link that opens the page in a browser, once; after its use it is another one."""
        return self.ask(lambda server: server.link)

    def stop(self) -> None:
        """End it in order. Nothing is lost."""
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join()

    def _serve(self) -> None:
        try:
            asyncio.run(self._served())
        except BaseException as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)

    async def _served(self) -> None:
        server, close = self._make()
        try:
            await server.start()
            self._loop = asyncio.get_running_loop()
            self._ready.set_result(server)
            async with reminding_beside(server):
                await self._stopped.wait()
        finally:
            await server.close()
            await close()
