"""A private Tor network beside code that does not wait: in a thread of its own, for a demo or a session of tests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

from anon.route.testnet import PrivateNetwork

ENDING = 30.0


@contextmanager
def private_tor(folder: Path) -> Iterator[PrivateNetwork]:
    """A network that stands inside the block and is gone after it, also when the block ends by Ctrl-C.

    Its processes end at once when this one is killed. What it raises, it raises here.
    """
    loop = asyncio.new_event_loop()
    ready: Future[PrivateNetwork] = Future()
    over = asyncio.Event()

    async def stand() -> None:
        try:
            async with PrivateNetwork(folder) as network:
                ready.set_result(network)
                await over.wait()
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)

    thread = threading.Thread(target=lambda: loop.run_until_complete(stand()), name="private-tor", daemon=True)
    thread.start()
    try:
        yield ready.result()
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(ENDING)
        if not thread.is_alive():
            loop.close()
