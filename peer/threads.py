"""Two threads for work that would hold up the event loop, which sends packets at their times.

Bodies, and the packets made from them, wait for one thread: one document at a time is taken apart, whichever study it
belongs to. Heads have a thread of their own, because a look at them comes before each packet. The bytes read here are
bounded before they are fetched (`anon.protocols.sizes`), so each wait ends.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


@lru_cache
def _thread(name: str, _process: int) -> ThreadPoolExecutor:
    """The thread of this name in this process: a fork takes no threads along."""
    return ThreadPoolExecutor(1, name)


async def off_loop(rule: Callable[_P, _T], *given: _P.args, **named: _P.kwargs) -> _T:
    """Call a function in the thread for bodies and packets. Returns and raises as the function does."""
    return await _in("bodies", partial(rule, *given, **named))


async def heads_off_loop(rule: Callable[_P, _T], *given: _P.args, **named: _P.kwargs) -> _T:
    """Call a function in the thread for heads. Returns and raises as the function does."""
    return await _in("heads", partial(rule, *given, **named))


async def _in(name: str, work: Callable[[], _T]) -> _T:
    return await asyncio.get_running_loop().run_in_executor(_thread(name, os.getpid()), work)
