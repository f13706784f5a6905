"""The points at which a test may kill a peer, on each side of every commit and send (see
`anon.storage.crash_points`)."""

from __future__ import annotations

from anon.storage.crash_points import VARIABLE, crash_points

__all__ = ["POINTS", "VARIABLE", "crash_point"]

POINTS = tuple(
    f"{side}-{what}"
    for what in (
        "commit-of-consent",
        "send-of-enrolment",
        "commit-of-enrolment",
        "commit-of-evaluation",
        "commit-of-release",
        "commit-of-attempt",
        "send-of-packet",
        "commit-of-answer",
        "commit-of-redraw",
        "commit-of-heads",
        "commit-of-policy",
        "commit-of-pause",
        "commit-of-restore",
        "commit-of-leaving",
        "send-of-withdrawal",
        "commit-of-withdrawal",
        "commit-of-end",
    )
    for side in ("before", "after")
)

crash_point = crash_points(POINTS)
