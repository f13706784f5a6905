"""An instant in words: by the clock of the machine that says it, with UTC beside it."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_SHORT = re.compile(r"[A-Z]{2,5}|[+-][0-9]{2,4}")


def instant(seconds: float) -> str:
    """Unix seconds as "2026-11-22 14:00:05 CET (13:00:05 UTC)"; UTC's date is named where it is another one."""
    utc = datetime.fromtimestamp(seconds, UTC)
    local = utc.astimezone()
    if not local.utcoffset():
        return f"{utc:%Y-%m-%d %H:%M:%S} UTC"
    beside = f"{utc:%H:%M:%S}" if local.date() == utc.date() else f"{utc:%Y-%m-%d %H:%M:%S}"
    return f"{local:%Y-%m-%d %H:%M:%S} {zone(local)} ({beside} UTC)"


def zone(at: datetime) -> str:
    """The short name of an aware time's zone, such as "CET"; else how far it is from UTC, such as "UTC+01:00".

    Windows knows long names alone, in its own language, which fill a line and which nobody compares.
    """
    name = at.tzname() or ""
    if _SHORT.fullmatch(name):
        return name
    ahead = f"{at:%z}"
    return f"UTC{ahead[:3]}:{ahead[3:5]}" if at.utcoffset() else "UTC"
