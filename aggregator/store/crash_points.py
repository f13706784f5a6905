"""The points at which a test may kill an aggregator, on each side of every commit and answer (see
`anon.storage.crash_points`)."""

from __future__ import annotations

from anon.storage.crash_points import VARIABLE, crash_points

__all__ = ["POINTS", "VARIABLE", "crash_point"]

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
    "before-commit-of-list",
    "after-commit-of-list",
    "before-commit-of-packets",
    "after-commit-of-packets",
    "before-answer",
    "after-answer",
    "before-erasure",
    "after-erasure",
)

crash_point = crash_points(POINTS)
