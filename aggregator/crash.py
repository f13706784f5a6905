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
_NAME, _, _NTH = os.environ.get(VARIABLE, "").partition(":")
_seen = 0


def crash_point(name: str) -> None:
    """Die by SIGKILL here when the environment names this point; in every other case do nothing. For tests only.

    "POINT" dies at the first passing, "POINT:3" at the third.
    """
    global _seen  # noqa: PLW0603
    if name == _NAME:
        _seen += 1
        if _seen >= int(_NTH or 1):
            os.kill(os.getpid(), signal.SIGKILL)
