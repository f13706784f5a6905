"""The peer running beside its page: the same process, holding the home's lock like `anonml peer run`."""

from __future__ import annotations

import asyncio
import logging
from enum import StrEnum

from anon.errors import AnonmlError
from peer.app import PeerApp
from peer.home import RunElsewhere

_LOG = logging.getLogger(__name__)
RETRY_SECONDS = 10.0


class Running(StrEnum):
    """Who runs the home's studies."""

    HERE = "here"
    ELSEWHERE = "elsewhere"  # another process holds the home
    FAULTY = "faulty"  # it stopped with a fault that the owner can do something about; it is tried again
    OFF = "off"  # the page alone was asked for, or it has not begun


class Engine:
    """Runs every study of a peer until it is cancelled, and tries again after a fault. `fault` says what to do."""

    def __init__(self, peer: PeerApp, retry_seconds: float = RETRY_SECONDS) -> None:
        self._peer = peer
        self._retry_seconds = retry_seconds
        self.running = Running.OFF
        self.fault = ""

    async def run(self) -> None:
        """Never returns by itself."""
        while True:
            self.running = Running.HERE
            try:
                await self._peer.run()
            except RunElsewhere:
                self.running, self.fault = Running.ELSEWHERE, ""
            except AnonmlError as fault:
                self.running, self.fault = Running.FAULTY, str(fault)
            except Exception as error:
                _LOG.error("run: %s; it is tried again", type(error).__name__)  # no text: data
                self.running, self.fault = Running.FAULTY, f"a fault in this program ({type(error).__name__})"
            await asyncio.sleep(self._retry_seconds)
