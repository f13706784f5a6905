"""Times in words, on systems that name their zones in their own way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from anon.text.instants import zone


@pytest.mark.parametrize(("name", "hours", "expected"), [
    ("CET", 1, "CET"), ("UTC", 0, "UTC"), ("+0530", 5.5, "+0530"), ("Mitteleuropäische Zeit", 1, "UTC+01:00"),
    ("Newfoundland Standard Time", -3.5, "UTC-03:30"), ("Greenwich Standard Time", 0, "UTC"), ("", 2, "UTC+02:00"),
])
def test_a_zone_has_a_short_name_or_its_distance(name: str, hours: float, expected: str) -> None:
    at = datetime(2026, 11, 22, tzinfo=UTC).astimezone(timezone(timedelta(hours=hours), name))
    assert zone(at) == expected
