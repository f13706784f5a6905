"""The next event of a study, for a terminal: which one it waits for, and when."""

from __future__ import annotations

from anon.kit.terminal.options import local_time
from peer.rules.lifecycle import State
from peer.store.records import Study

KEEP_RUNNING = "Keep it running until your packet is sent; it may be stopped and started again meanwhile."
SET_ASIDE = "spent counts what is set aside for packets made, not yet sent"


def coming(study: Study, now: float) -> str:
    """The event that a study waits for and its time; empty for one that waits for none."""
    if study.refused:
        return ""
    manifest = study.manifest
    closes = manifest.timetable.enrol_closes
    first = local_time(min(window.opens for window in manifest.windows))
    last = local_time(max(window.closes for window in manifest.windows))
    match study.state:
        case State.CONSENTED:
            return f"your enrolment leaves by itself before enrolment closes at {local_time(closes)}"
        case State.ENROLLED if now < closes:
            return f"waits until enrolment closes at {local_time(closes)}"
        case State.ENROLLED:
            return f"waits for the list of members; packets leave between {first} and {last}"
        case State.CHECKED:
            return f"all checks passed; packets leave at random times between {first} and {last}"
        case State.SENT:
            return f"nothing more leaves; results come after {local_time(manifest.timetable.ends)}"
        case State.LEAVING:
            return "you left; the aggregator is being told, and nothing else is sent"
    return ""
