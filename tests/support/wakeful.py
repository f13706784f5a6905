"""Wakes asyncio's loops under Wine 8 as Windows does: a plugin of pytest, imported by other programs of these tests.

A thread wakes a loop by a byte through a pair of sockets. While one thread's send is not over, Wine refuses another's
on the same socket (error 10035). asyncio takes that for a pair that is full, so for a loop that will wake anyway: it
slept on with work that was ready. Windows takes both bytes. Here a byte is sent again until it is taken.
"""

from __future__ import annotations

import sys
import time
from asyncio import proactor_events, selector_events
from typing import Any

TRIES, PAUSE = 1000, 0.001
"""A send of one byte is over in far less than a second."""


def wake(loop: Any) -> None:
    """In place of the loop's own `_write_to_self`; from any thread."""
    for _ in range(TRIES):
        if (pipe := loop._csock) is None:
            return
        try:
            pipe.send(b"\0")
        except BlockingIOError:
            time.sleep(PAUSE)
        except OSError:  # the loop is closed meanwhile
            return
        else:
            return


if sys.platform == "win32":
    for _loop in (proactor_events.BaseProactorEventLoop, selector_events.BaseSelectorEventLoop):
        setattr(_loop, "_write_to_self", wake)  # noqa: B010, which the types of asyncio do not know
