"""A test hook: die by SIGKILL at a named point, on each side of every commit and send.

`ANONML_CRASH_AT=NAME` kills the process the first time it reaches the point; `NAME:3` the third time. Unset, the
points do nothing.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence

VARIABLE = "ANONML_CRASH_AT"
KILL = 9
"""SIGKILL, which Windows has under no name: there it ends the process at once, with this exit code."""


def crash_points(names: Sequence[str]) -> Callable[[str], None]:
    """The function that passes one of these points: it kills this process there if the environment asks for it."""
    reached: Counter[str] = Counter()

    def crash_point(name: str) -> None:
        wanted = os.environ.get(VARIABLE)
        if not wanted:
            return
        if name not in names:
            raise AssertionError(f"not a crash point: {name}")
        place, _, turn = wanted.partition(":")
        reached[name] += 1
        if place == name and reached[name] == int(turn or 1):
            os.kill(os.getpid(), KILL)

    return crash_point
