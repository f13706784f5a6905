"""The peer running beside its page: the same process, holding the home's lock like `anonml peer run`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from enum import StrEnum

from anon.errors import FAULT_IN_THIS_PROGRAM, AnonmlError
from anon.machine.guard import told
from peer.store.home import RunElsewhere

_LOG = logging.getLogger(__name__)
RETRY_SECONDS = 10.0


class Running(StrEnum):
    """Who runs the home's studies."""

    HERE = "here"
    ELSEWHERE = "elsewhere"  # another process holds the home
    FAULTY = "faulty"  # it stopped with a fault that the owner can do something about; it is tried again
    OFF = "off"  # the page alone was asked for, or it has not begun


class Supervisor:
    """Runs every study of a peer until it is cancelled, and tries again after a fault. `fault` says what to do."""

    def __init__(self, run: Callable[[], Awaitable[None]], retry_seconds: float = RETRY_SECONDS) -> None:
        self._run = run
        self._retry_seconds = retry_seconds
        self._going = asyncio.Event()
        self._going.set()
        self._halting = asyncio.Lock()
        self._work: asyncio.Task[None] | None = None
        self.running = Running.OFF
        self.fault = ""

    async def run(self) -> None:
        """Never returns by itself."""
        while True:
            await self._going.wait()
            await self._run_once()
            if self._going.is_set():
                await asyncio.sleep(self._retry_seconds)

    @asynccontextmanager
    async def halted(self) -> AsyncIterator[None]:
        """Nothing of the home's studies runs in this process within the block. Afterwards it goes on."""
        async with self._halting:
            self._going.clear()
            try:
                if self._work is not None:
                    self._work.cancel()
                    # Not awaited itself: its cancellation would be raised here like our own.
                    await asyncio.wait({self._work})
                yield
            finally:
                self._going.set()

    async def _run_once(self) -> None:
        self.running = Running.HERE
        try:
            # A task of its own: `halted` cancels it, and this loop goes on.
            self._work = asyncio.ensure_future(self._run())
            await self._work
        except asyncio.CancelledError:
            if self._going.is_set():  # this supervisor was cancelled, not halted
                raise
        except RunElsewhere:
            self.running, self.fault = Running.ELSEWHERE, ""
        except AnonmlError as fault:
            self.running, self.fault = Running.FAULTY, str(fault)
        except Exception as error:
            said = told(error)
            if said != self.fault:
                named = type(error).__name__ if said == FAULT_IN_THIS_PROGRAM else said  # no text of others: data
                _LOG.error("run: %s; it is tried again", named)
            self.running, self.fault = Running.FAULTY, said
        finally:
            self._work = None
