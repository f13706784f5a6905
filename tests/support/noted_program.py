"""`anonml` as it is, that also writes down each noise that a teller draws, and tells the time of a test's clock.

    python -m tests.support.noted_program WORDS

ANONML_TEST_NOISE names the file that gets a line of JSON for each draw, before the draw is used. ANONML_TEST_CLOCK names
the file of a `FileClock`; without it the time is the wall clock's.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from tests.support.shared_clock import FileClock

CLOCK, NOISE = "ANONML_TEST_CLOCK", "ANONML_TEST_NOISE"


def note_noise(file: Path) -> None:
    """From now on each draw is in the file before a teller has it."""
    from anon.noise import DiscreteGaussian

    draw = DiscreteGaussian.vector

    def noted(self: DiscreteGaussian, length: int, random_bytes: Callable[[int], bytes]) -> list[int]:
        drawn = draw(self, length, random_bytes)
        with file.open("a") as notes:
            notes.write(json.dumps(drawn) + "\n")
        return drawn

    DiscreteGaussian.vector = noted  # type: ignore[method-assign]


if __name__ == "__main__":
    if CLOCK in os.environ:
        time.time = FileClock(Path(os.environ[CLOCK]))  # before anything is imported that keeps it
    from anonml import main

    if NOISE in os.environ:
        note_noise(Path(os.environ[NOISE]))
    main()
