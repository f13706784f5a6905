"""`anonml` as it is, that also writes down each noise that a teller draws, and tells the time of a test's clock.

    python -m tests.support.noted_program WORDS

ANONML_TEST_NOISE names the file that gets a line of JSON for each draw, before the draw is used. ANONML_TEST_CLOCK
names the file of a virtual clock (`examples.clock`); without it the time is the wall clock's. ANONML_TEST_KEEPER names
its keeper, for an aggregator that serves: it sleeps by that clock, and nobody passes its instants. ANONML_TEST_LOOK
names the seconds between its looks, in place of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Coroutine
from functools import partialmethod
from pathlib import Path
from typing import Any

from examples.clock import ClockFile, Party, Shifts

CLOCK, KEEPER, NOISE = "ANONML_TEST_CLOCK", "ANONML_TEST_KEEPER", "ANONML_TEST_NOISE"
LOOK = "ANONML_TEST_LOOK"


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

    def run(main: Coroutine[Any, Any, Any]) -> Any:
        with asyncio.Runner(loop_factory=party.loop) as runner:
            return runner.run(main)

    AggregatorApp.__init__ = partialmethod(  # type: ignore[method-assign, assignment]
        made, sleep=Shifts(party).sleep, **looks
    )
    asyncio.run = run  # type: ignore[assignment]


if __name__ == "__main__":
    if CLOCK in os.environ:
        time.time = ClockFile(Path(os.environ[CLOCK]))  # before anything is imported that keeps it
    from anonml import main

    if KEEPER in os.environ:
        sleep_by(Party(Path(os.environ[CLOCK]), Path(os.environ[KEEPER]), bars=True))
    if NOISE in os.environ:
        note_noise(lambda: Path(os.environ[NOISE]))
    main()
