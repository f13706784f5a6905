"""An instant in words: by the clock of the machine that says it, with UTC beside it."""

from __future__ import annotations

from datetime import UTC, datetime


def instant(seconds: float) -> str:
    """Unix seconds as "2026-11-22 14:00:05 CET (13:00:05 UTC)"; UTC's date is named where it is another one."""
    utc = datetime.fromtimestamp(seconds, UTC)
    local = utc.astimezone()
    if not local.utcoffset():
        return f"{utc:%Y-%m-%d %H:%M:%S} UTC"
    beside = f"{utc:%H:%M:%S}" if local.date() == utc.date() else f"{utc:%Y-%m-%d %H:%M:%S}"
    return f"{local:%Y-%m-%d %H:%M:%S %Z} ({beside} UTC)"
