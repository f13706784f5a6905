"""`anonml aggregator serve` on a home of a test's, in this process or one of its own, by a clock that the test
moves."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from aggregator.app import AggregatorApp
from aggregator.cli.fellows import Fellows
from aggregator.cli.serve import HOST, Serving, served
from anon.kit.terminal.logs import to_stderr
from tests.support.shared_clock import SharedClock


def wishes(home: Path, port: int, desk_port: int | None = None) -> Serving:
    """Of `serve --json`."""
    return Serving(home, HOST, port, False, False, 0, False, True, desk_port)


def serve_command(home: Path, clock: Path, port: int, said: Path, ended: Connection | None = None) -> None:
    """The command in this process, until it is killed or told to end; all that it says goes to `said`."""
    with said.open("ab") as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
    to_stderr()

    async def work() -> None:
        shared = SharedClock(clock)
        async with AggregatorApp(home, shared, os.urandom, processes=0, sleep=shared.sleep, look_seconds=0.1) as app:
            await served(app, wishes(home, port), Fellows(home, 0, 0))

    with suppress(asyncio.CancelledError):
        asyncio.run(work())
