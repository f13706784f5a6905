"""`anonml` as it is, but it knows the toy `letters` and tells the time of a test's clock.

    python -m tests.support.letters_program WORDS

The toy is among the protocols of both sides before any command is imported. Importing this module puts it there: the
children that make packets or verify tokens then know it too. ANONML_TEST_CLOCK and ANONML_TEST_KEEPER are those of
`tests.support.noted_program`. With a keeper the program sleeps by the clock.

A peer's children have their real seconds while the time stands still. Their messages are taken up at the deadline.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from examples.clock import ClockFile, HeldRoute, Party
from tests.support.noted_program import CLOCK, KEEPER, sleep_by

PROGRAM = "tests.support.letters_program"
CHILD_SECONDS = 300.0
"""Real seconds after which a child is ended, however busy the machine is."""


def compose() -> None:
    """From now on the protocols of both sides are those that ship, and the toy."""
    from aggregator.protocols import installed as aggregators
    from peer.protocols import installed as peers
    from tests.support.letters_study import PROTOCOLS

    aggregators.PROTOCOLS = peers.PROTOCOLS = PROTOCOLS  # type: ignore[misc]


if CLOCK in os.environ:
    time.time = ClockFile(Path(os.environ[CLOCK]))  # before anything is imported that keeps it
compose()


def main() -> None:
    """Be the server that makes the content of a peer's packets and holds no key."""
    from peer.data.making import maker

    maker.main()


def live_by(party: Party) -> None:
    """From now on a peer of this program sleeps by the clock. Its exchanges and its children hold the time."""
    from anon.queries import process
    from peer.app import PeerApp
    from peer.data.making.work import _MAKER

    made, start = PeerApp.__init__, process.start

    async def started() -> None:
        with party.held():
            await start()

    async def evaluate(work: process.Work, seconds: float) -> bytes:
        message = await asyncio.to_thread(process.in_a_child, work, CHILD_SECONDS)
        await party.sleep(seconds)
        return message

    def on_the_clock(self: PeerApp, home: Any, route: Callable[[], Any], *given: Any, elapsed: object) -> None:
        made(self, home, lambda: HeldRoute(route(), party), *given, sleep=party.sleep, evaluate=evaluate)

    _MAKER._module = PROGRAM
    process.start, PeerApp.__init__ = started, on_the_clock  # type: ignore[assignment, method-assign]


def run() -> None:
    """`anonml WORDS`, as a party of the clock where there is a keeper."""
    from anonml import main as anonml

    if KEEPER not in os.environ:
        return anonml()
    party = Party(Path(os.environ[CLOCK]), Path(os.environ[KEEPER]), bars=sys.argv[1] == "aggregator")
    sleep_by(party)
    live_by(party)
    try:
        anonml()
    finally:
        party.over()


if __name__ == "__main__":
    run()
