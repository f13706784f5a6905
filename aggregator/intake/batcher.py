"""Many small requests made one batch: a batch of tokens costs a fraction of as many alone.

1. `submit` puts an item in line, and turns it away as "busy" where too many wait already.
2. A collector waits until the line is full, or until the first has waited for `DELAY`.
3. It waits for a turn: at most two batches are handled at once. The next fills up meanwhile.
4. The batch is handled together, and each item gets its own result. Where the batch fails, each gets that failure.

A sender that went away cancels its own result and no other's. Why batches fail is told once in a while, not each time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from aggregator.rules.faults import in_words
from aggregator.rules.refusal import PacketRefused
from anon.machine.clock import OF_ONE
from anon.wire.replies import BUSY

Item = TypeVar("Item")
Result = TypeVar("Result")

AT_MOST = 256
DELAY = 0.025
MOST_WAITING = 4096
TELL_SECONDS = 60.0
_LOG = logging.getLogger(__name__)


class Batcher(Generic[Item, Result]):
    """Hands up to `at_most` items, or what came within `delay` seconds, to `handle`; at most `abreast` batches at once.

    Beyond `most_waiting` items it turns newcomers away as "busy", so that memory is bounded whatever comes.
    """

    def __init__(
        self,
        handle: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]],
        at_most: int = AT_MOST,
        delay: float = DELAY,
        most_waiting: int = MOST_WAITING,
        abreast: int = 2,
    ) -> None:
        self._handle = handle
        self._at_most = at_most
        self._delay = delay
        self._most_waiting = most_waiting
        self._turns = asyncio.Semaphore(abreast)
        self._waiting: list[tuple[Item, asyncio.Future[Result]]] = []
        self._arrived = asyncio.Event()
        self._full = asyncio.Event()
        self._open: set[asyncio.Future[Result]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._collector: asyncio.Task[None] | None = None
        self._failing, self._quiet_until = "", 0.0

    async def submit(self, item: Item) -> Result:
        """The result for this item. Raises `PacketRefused` ("busy") when too many wait; re-raises what `handle`
        raised."""
        if len(self._waiting) >= self._most_waiting:
            raise PacketRefused(BUSY)
        if self._collector is None:
            self._collector = asyncio.create_task(self._collect())
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        self._open.add(future)
        future.add_done_callback(self._open.discard)
        self._arrived.set()
        if len(self._waiting) >= self._at_most:
            self._full.set()
        return await future

    async def drain(self) -> None:
        """Return when everything submitted before this call is answered."""
        if self._open:
            await asyncio.wait(set(self._open))

    async def close(self) -> None:
        """Stop collecting; whatever still waits is cancelled and will be sent again."""
        tasks = [task for task in (self._collector, *self._tasks) if task is not None]
        for task in tasks:
            task.cancel()
        # To cancel a task is to ask it: it has ended only once it was awaited.
        await asyncio.gather(*tasks, return_exceptions=True)
        for _, future in self._waiting:
            future.cancel()
        self._waiting.clear()
        self._collector = None

    async def _collect(self) -> None:
        while True:
            await self._arrived.wait()
            if len(self._waiting) < self._at_most:
                self._full.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._full.wait(), self._delay)
            # The batch is cut after a turn is free: what came meanwhile is in it.
            await self._turns.acquire()
            batch, self._waiting = self._waiting[: self._at_most], self._waiting[self._at_most :]
            if not self._waiting:
                self._arrived.clear()
            task = asyncio.create_task(self._work(batch))
            # The loop itself holds tasks weakly (CPython's documentation of create_task).
            self._tasks.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._turns.release()

    async def _work(self, batch: Sequence[tuple[Item, asyncio.Future[Result]]]) -> None:
        try:
            results = await self._handle([item for item, _ in batch])
        except asyncio.CancelledError:
            for _, future in batch:
                future.cancel()
            raise
        except Exception as error:
            self._tell(in_words(error))
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        # A sender that went away cancelled its future; a result for it would raise InvalidStateError.
        for (_, future), result in zip(batch, results, strict=True):
            if not future.done():
                future.set_result(result)

    def _tell(self, failing: str) -> None:
        """Say why batches fail, the same no oftener than once in a while. Senders keep what they sent and come again.
        """
        now = asyncio.get_running_loop().time()
        if failing != self._failing or now >= self._quiet_until:
            _LOG.error("nothing that comes in can be kept: %s", failing, extra=OF_ONE)
            self._failing, self._quiet_until = failing, now + TELL_SECONDS
