"""A private Tor network beside code that does not wait: in a thread of its own, for a demo or a session of tests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from anon.errors import AnonmlError
from anon.kit.testnet import PrivateNetwork

ENDING = 30.0
SETTLING = 0.2


@contextmanager
def private_tor(folder: Path) -> Iterator[PrivateNetwork]:
    """A network that stands inside the block and is gone after it, also when the block ends by Ctrl-C.

    Its processes end at once when this one is killed. Its errors are raised here.
    """
    loop = asyncio.new_event_loop()
    ready: Future[PrivateNetwork] = Future()

    async def stand() -> None:
        try:
            async with PrivateNetwork(folder) as network:
                ready.set_result(network)
                await asyncio.Event().wait()
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error)
            raise

    task = loop.create_task(stand())
    thread = threading.Thread(target=_run, args=(loop, task), name="private-tor", daemon=True)
    thread.start()
    try:
        yield ready.result()
    finally:
        with suppress(RuntimeError):  # it has ended by itself, and its loop is closed
            loop.call_soon_threadsafe(task.cancel)
        thread.join(ENDING)


def _run(loop: asyncio.AbstractEventLoop, task: asyncio.Task[None]) -> None:
    asyncio.set_event_loop(loop)
    with closing(loop):
        with suppress(asyncio.CancelledError, AnonmlError):  # who waits for `ready` has the error
            loop.run_until_complete(task)
        loop.run_until_complete(asyncio.sleep(SETTLING))  # the pipes of ended processes close a moment after them
