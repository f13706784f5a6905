"""Lengths of time as a study file spells them: "7d", "12h", "1h30m" or "90s"."""

from __future__ import annotations

import re
from typing import Any

from anon.errors import InvalidValue
from anon.study.structuring import kind_of

LONGEST_DURATION = 3650 * 86400
"""Seconds of each part of a schedule. Sixty rounds of it end before the last instant that a manifest can have."""
_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_DURATION = re.compile(r"(?:([0-9]{1,9})d)?(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,9})s)?\Z")


def duration(text: Any) -> int:
    """Seconds of a duration such as "7d", "1h30m" or "90s". Raises `InvalidValue` for anything else.

    >>> duration("1h30m"), spelled(5400)
    (5400, '1h30m')
    """
    match = _DURATION.match(text) if isinstance(text, str) and text else None
    if match is None:
        raise InvalidValue(f'expected a duration such as "7d", "12h", "1h30m" or "90s", got {kind_of(text)}')
    return sum(int(part or 0) * scale for part, scale in zip(match.groups(), _SECONDS.values(), strict=True))


def named_duration(key: str, text: Any) -> int:
    """The same of a key, which the fault names."""
    try:
        return duration(text)
    except InvalidValue as fault:
        raise InvalidValue(f"{key}: {fault}") from None


def spelled(seconds: int) -> str:
    """The shortest duration that says so many seconds, such as "90d"."""
    parts = []
    for unit, size in _SECONDS.items():
        count, seconds = divmod(seconds, size)
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts) or "0s"
