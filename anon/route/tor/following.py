"""Following how far tor has got with connecting, for somebody who waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from anon.text.sentences import say

T = TypeVar("T")
_POLL_SECONDS = 0.2


async def telling(work: Awaitable[T], percent: Callable[[], int | None], tell: Callable[[str], None]) -> T:
    """The result of `work`; meanwhile `tell` hears each new percentage once, and at last an empty line.

    `percent` gives None while there is nothing to tell.
    """
    following = asyncio.create_task(_follow(percent, tell))
    try:
        return await work
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
        tell("")


async def _follow(percent: Callable[[], int | None], tell: Callable[[str], None]) -> None:
    told: int | None = None
    while True:
        now = percent()
        if now is not None and now != told:
            told = now
            tell(say("connecting to Tor: {now} % ...", now=now))
        await asyncio.sleep(_POLL_SECONDS)
