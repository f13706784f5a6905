"""Named points at which a test may kill this process, on each side of every commit and answer."""

from __future__ import annotations

import os
import signal

VARIABLE = "ANONML_CRASH_AT"
POINTS = (
    "before-commit-of-study",
    "after-commit-of-study",
    "before-commit-of-enrolments",
    "after-commit-of-enrolments",
    "before-commit-of-withdrawal",
    "after-commit-of-withdrawal",
    "before-commit-of-document",
    "after-commit-of-document",
    "before-commit-of-phase",
    "after-commit-of-phase",
    "before-commit-of-freeze",
    "after-commit-of-freeze",
    "before-commit-of-packets",
    "after-commit-of-packets",
    "before-answer",
    "after-answer",
    "before-erasure",
    "after-erasure",
)
_CRASH_AT = os.environ.get(VARIABLE, "")


def crash_point(name: str) -> None:
    """Die by SIGKILL here when the environment names this point; in every other case do nothing. For tests only."""
    if name == _CRASH_AT:
        os.kill(os.getpid(), signal.SIGKILL)
