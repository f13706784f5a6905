"""`anonml peer run --stay`: the peer that is started at login. It runs until it is told to end, and waits while another
process holds the home (the page, say). It prints nothing of any study, because its output ends in the system's
journal."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress

from peer.app import PeerApp
from peer.run.supervisor import Supervisor

RETRY_SECONDS = 30.0
"""How soon it looks again whether a home that another process held is free, or a fault is gone."""


async def stay(peer: PeerApp, beside: Callable[[Supervisor], Awaitable[None]] | None = None) -> None:
    """Run the home's studies, also those joined later, until SIGTERM or Ctrl-C; `beside` runs as long.

    Raises `Refused` in a home that was moved elsewhere.
    """
    peer.store.demand_not_retired()
    supervisor, stopped = Supervisor(peer.run, RETRY_SECONDS), asyncio.Event()
    _at_signals(stopped)
    works = [asyncio.ensure_future(supervisor.run())]
    if beside is not None:
        works.append(asyncio.ensure_future(beside(supervisor)))
    ending = asyncio.ensure_future(stopped.wait())
    try:
        await asyncio.wait({ending, works[0]}, return_when=asyncio.FIRST_COMPLETED)
        if works[0].done():
            works[0].result()  # it ends by a fault of ours alone
    finally:
        for work in (*works, ending):
            work.cancel()
        await asyncio.gather(*works, ending, return_exceptions=True)


def _at_signals(stopped: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows
            loop.add_signal_handler(number, stopped.set)
