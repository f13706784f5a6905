"""Lengths of time as an owner writes them: 30s, 10m, 2h, and 0 for none."""

from __future__ import annotations

import re

from anon.errors import Malformed
from anon.text.sentences import Term, say

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds_of(text: str) -> int:
    """Seconds of such a text. Raises `Malformed`."""
    match = re.fullmatch(r"([0-9]{1,6})([smhd])|0", text.strip(), re.ASCII)
    if match is None:
        raise Malformed(say("shortest window: expected a number with s, m, h or d, such as 10m, or 0 for no limit"))
    return int(match[1]) * _UNITS[match[2]] if match[1] else 0


def text_of(seconds: int) -> Term:
    """The shortest text whose seconds these are."""
    unit = next(unit for unit in ("d", "h", "m", "s") if seconds % _UNITS[unit] == 0)
    return Term(f"{seconds // _UNITS[unit]}{unit}" if seconds else "0")
