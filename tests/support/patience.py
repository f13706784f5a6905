"""Tests wait as long as a slow machine takes, and measure the cost of work in processor time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 60.0
"""Seconds in which all comes that comes at all."""


async def until(reached: Callable[[], object]) -> None:
    """Look again and again. Raises `TimeoutError` when all patience is spent."""
    async with asyncio.timeout(PATIENCE):
        while not reached():
            await asyncio.sleep(0.005)


@contextmanager
def cheap(seconds: float = 2.0) -> Iterator[None]:
    """The block takes less of this process's own time, which other work on the machine does not lengthen.

    `seconds`: many times what it takes, and far below what the fault took that the test is about.
    """
    began = time.process_time()
    yield
    taken = time.process_time() - began
    assert taken < seconds, f"{taken:.1f} s of processor time"


async def turns(count: int = 50) -> None:
    """Let all else on this loop, its sockets too, have so many turns: what has not happened by then is not on its
    way."""
    for _ in range(count):
        await asyncio.sleep(0.001)
