"""A plugin of pytest for Windows' Python: a loop of asyncio that looks again after a fifth of a second at the latest.

Under Wine 8 a loop slept on now and then with work that was ready: what a thread had written to wake it was lost, in
Windows' usual loop and in that of sockets. The page and single commands keep the usual one, in programs of their own.
"""

from __future__ import annotations

import asyncio
import selectors
import sys

LONGEST = 0.2


class Wakeful(selectors.SelectSelector):
    """Waits for a bounded time."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """As its base does."""
        return super().select(LONGEST if timeout is None else min(timeout, LONGEST))


if sys.platform == "win32":

    class _Policy(asyncio.WindowsSelectorEventLoopPolicy):
        @staticmethod
        def _loop_factory() -> asyncio.AbstractEventLoop:
            return asyncio.SelectorEventLoop(Wakeful())

    asyncio.set_event_loop_policy(_Policy())
