"""The course of the example: its calendar, its problems and its videos. Everything here is invented."""

from __future__ import annotations

from datetime import UTC, datetime

ORG = "ExampleX"
RUN = "ExampleX+SYS101+2024_T1"
COURSE_ID = f"course-v1:{RUN}"
HOST = "courses.example.org"

START = datetime(2024, 2, 5, tzinfo=UTC)
"""Monday 00:00 UTC of week 1. The queries in `study.toml` hold the same instant as seconds since 1970."""

DAY = 86_400.0
WEEK = 7 * DAY
WEEKS = 12
OBSERVED_WEEKS = 6
"""Features look at weeks 1 to 6; whoever has no event in week 6 is no longer active and is not in the cohort."""
DROPOUT_WEEK = 10
"""Dropped out by week 10: no event in week 10 or later."""

PROBLEMS_PER_WEEK = 6
VIDEOS_PER_WEEK = 5


def problem_name(week: int, number: int) -> str:
    """Short name of a problem, weeks and numbers counted from 1; harder problems have higher numbers."""
    return f"w{week:02}p{number}"


def block(kind: str, name: str) -> str:
    """An edX usage key for a block of this course."""
    return f"block-v1:{RUN}+type@{kind}+block@{name}"
