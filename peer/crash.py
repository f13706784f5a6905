"""A test hook: die by SIGKILL at a named point, on each side of every commit and send.

`ANONML_CRASH_AT=NAME` kills the process the first time it reaches the point; `NAME:3` the third time. Unset, the
points do nothing. Below the command line, this is the only place in `peer` that reads the environment.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

VARIABLE = "ANONML_CRASH_AT"

POINTS = tuple(
    f"{side}-{what}"
    for what in (
        "commit-of-consent",
        "send-of-enrolment",
        "commit-of-enrolment",
        "commit-of-release",
        "commit-of-attempt",
        "send-of-packet",
        "commit-of-answer",
        "commit-of-redraw",
        "commit-of-heads",
        "commit-of-policy",
        "commit-of-restore",
        "commit-of-leaving",
        "send-of-withdrawal",
        "commit-of-withdrawal",
        "commit-of-end",
    )
    for side in ("before", "after")
)

_reached: Counter[str] = Counter()


def crash_point(name: str) -> None:
    """Kill this process here if the environment asks for it. `name` is one of `POINTS`."""
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return
    if name not in POINTS:
        raise AssertionError(f"not a crash point: {name}")
    place, _, turn = wanted.partition(":")
    _reached[name] += 1
    if place == name and _reached[name] == int(turn or 1):
        os.kill(os.getpid(), signal.SIGKILL)
