"""edX tracking logs: one event a line, as JSON (edX Research Guide, "Events in the Tracking Logs", "Common Fields").

Every common field is a column, also where no event of this file carries it, so that a study may name it; what else an
event brings becomes a column of its own. `context` and `event` stay JSON text: browser events carry `event` as a
string of JSON, server events as an object, and both come out as the same text.
"""

from __future__ import annotations

from typing import Any

from anon.tables.streams import ImportLimits, Origin
from peer.data.formats.json_text import JsonLinesSource

TABLE = "events"
COMMON_FIELDS = (
    "time", "username", "session", "event_source", "event_type", "name", "event", "context", "page", "referer", "ip",
    "host", "agent", "accept_language",
)  # fmt: skip
_TELLING = {"event_type", "event_source", "time"}


def is_event(value: Any) -> bool:
    """True if a line's value is an event: the three fields that no event lacks."""
    return isinstance(value, dict) and value.keys() >= _TELLING


def edx_source(origin: Origin, limits: ImportLimits) -> JsonLinesSource:
    """The events of one log."""
    return JsonLinesSource(origin, limits, COMMON_FIELDS)
