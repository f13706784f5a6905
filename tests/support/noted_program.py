"""`anonml` as it is, that also writes down each noise that a teller draws, and tells the time of a test's clock.

    python -m tests.support.noted_program WORDS

ANONML_TEST_NOISE names the file that gets a line of JSON for each draw, before the draw is used. ANONML_TEST_CLOCK
names the file of a virtual clock (`examples.clock`); without it the time is the wall clock's. ANONML_TEST_KEEPER names
its keeper, for an aggregator that serves or a peer that runs: it sleeps by that clock, and nobody passes an
aggregator's instants. ANONML_TEST_LOOK names the seconds between its looks, in place of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Coroutine
from functools import partialmethod
from pathlib import Path
from typing import Any

from examples.clock import ClockFile, HeldRoute, Party, Shifts

CLOCK, KEEPER, NOISE = "ANONML_TEST_CLOCK", "ANONML_TEST_KEEPER", "ANONML_TEST_NOISE"
LOOK = "ANONML_TEST_LOOK"
CHILD_SECONDS = 300.0
"""Real seconds after which a child that evaluates is ended, however busy the machine is."""


def note_noise(place: Callable[[], Path]) -> None:
    """From now on each draw is in the file of that place before it is used."""
    from anon.noise import DiscreteGaussian
    from anon.protocols.sum.oblivious.l2_laplace import L2Laplace

    for law in (DiscreteGaussian, L2Laplace):
        _note(law, place)


def _note(law: Any, place: Callable[[], Path]) -> None:
    draw = law.vector

    def noted(self: Any, length: int, random_bytes: Callable[[int], bytes]) -> list[int]:
        drawn: list[int] = draw(self, length, random_bytes)
        with place().open("a") as notes:
            notes.write(json.dumps(drawn) + "\n")
        return drawn

    law.vector = noted


def sleep_by(party: Party) -> None:
    """From now on an aggregator of this program sleeps by the clock, in a loop that tells when nothing is due."""
    from aggregator.app import AggregatorApp
    from aggregator.cli import serve

    made, looks = AggregatorApp.__init__, {}
    if LOOK in os.environ:
        serve.LOOK_SECONDS = looks["look_seconds"] = float(os.environ[LOOK])

    AggregatorApp.__init__ = partialmethod(  # type: ignore[method-assign, assignment]
        made, sleep=Shifts(party).sleep, **looks
    )
    _loop_of(party)


def live_by(party: Party) -> None:
    """From now on a peer of this program lives by the clock: it stands still during exchanges and evaluations."""
    from anon.machine import clock
    from peer.app import PeerApp
    from peer.data.evaluate import at_once

    made = PeerApp.__init__

    async def evaluate(work: Any, _: float) -> bytes:
        return await at_once(work, CHILD_SECONDS)

    def make(self: PeerApp, home: Any, route: Callable[[], Any], *more: Any, **named: Any) -> None:
        made(self, home, lambda: HeldRoute(route(), party), *more, **named, sleep=party.sleep, evaluate=evaluate)

    PeerApp.__init__ = make  # type: ignore[method-assign]
    clock.elapsed_seconds = party
    _loop_of(party, party.over)


def _loop_of(party: Party, over: Callable[[], None] = lambda: None) -> None:
    def run(main: Coroutine[Any, Any, Any]) -> Any:
        try:
            with asyncio.Runner(loop_factory=party.loop) as runner:
                return runner.run(main)
        finally:
            over()

    asyncio.run = run  # type: ignore[assignment]


if __name__ == "__main__":
    if CLOCK in os.environ:
        time.time = ClockFile(Path(os.environ[CLOCK]))  # before anything is imported that keeps it
    from anonml import main

    if KEEPER in os.environ:
        clock, keeper = Path(os.environ[CLOCK]), Path(os.environ[KEEPER])
        if sys.argv[1] != "peer":
            sleep_by(Party(clock, keeper, bars=True))
        elif sys.argv[2] == "run":
            live_by(Party(clock, keeper))
    if NOISE in os.environ:
        note_noise(lambda: Path(os.environ[NOISE]))
    main()
