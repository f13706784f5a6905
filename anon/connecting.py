"""Telling somebody who waits how far tor has got with connecting."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")
_POLL_SECONDS = 0.2
_CLEAR = "\r\x1b[K"


async def telling(work: Awaitable[T], percent: Callable[[], int | None], say: Callable[[str], None]) -> T:
    """The result of `work`; meanwhile `say` hears each new percentage once, and at last an empty line.

    `percent` gives None while there is nothing to tell.
    """
    following = asyncio.create_task(_follow(percent, say))
    try:
        return await work
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
        say("")


async def _follow(percent: Callable[[], int | None], say: Callable[[str], None]) -> None:
    told: int | None = None
    while True:
        now = percent()
        if now is not None and now != told:
            told = now
            say(f"connecting to Tor: {now} % ...")
        await asyncio.sleep(_POLL_SECONDS)


def on_one_line(line: str) -> None:
    """Show a line on a terminal in place of the last one; an empty line wipes it. Where nobody watches, nothing."""
    if sys.stderr.isatty():
        sys.stderr.write(_CLEAR + line)
        sys.stderr.flush()
