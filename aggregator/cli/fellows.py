"""`serve --workers N`: further processes that answer at the same port, each of which may come to lead."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import define, field

from aggregator.app import AggregatorApp
from aggregator.intake.workers import begin_child
from aggregator.rules.faults import in_words
from anon.kit.terminal.logs import to_stderr, with_times
from anon.machine.guard import Guard

_CONTEXT = multiprocessing.get_context("spawn")
_LOOK_SECONDS = 1.0
_LOG = logging.getLogger(__name__)


@define
class Fellows:
    """The processes beside this one. One that dies is replaced."""

    home: Path
    count: int
    processes: int
    _running: list[multiprocessing.process.BaseProcess] = field(factory=list)

    async def keep(self, host: str, port: int) -> None:
        """Have so many serve there, until cancelled."""
        guard = Guard("the further processes")
        while True:
            with guard.turn():
                self._running = [fellow for fellow in self._running if fellow.is_alive()]
                for _ in range(self.count - len(self._running)):
                    started = _CONTEXT.Process(target=_serve_beside, args=(self.home, host, port, self.processes))
                    started.start()
                    self._running.append(started)
            await asyncio.sleep(guard.pause or _LOOK_SECONDS)

    @contextmanager
    def ended(self) -> Iterator[None]:
        """They end with the block."""
        try:
            yield
        finally:
            for fellow in self._running:
                fellow.terminate()


def _serve_beside(home: Path, host: str, port: int, processes: int) -> None:
    to_stderr()
    with_times()
    begin_child()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

    async def work() -> None:
        async with AggregatorApp(home, processes=processes) as aggregator:
            await aggregator.serve_beside(host, port)

    try:
        asyncio.run(work())
    except Exception as error:  # the interpreter would print its text, which may quote data
        _LOG.error("a further process ended: %s", in_words(error), exc_info=error)
        sys.exit(1)
