"""The aggregator's words as sentences, each with what to do next. One table for every word of `anon.wire.replies`."""

from __future__ import annotations

_UPDATE = "update this program; if it stays, tell staff"
_NEW_LINK = "ask staff for a new link, and join with it"

SENTENCES = {
    "accepted": "it was taken; nothing to do",
    "withdrawn": "you are struck off; nothing to do",
    "busy": "it was busy; it is tried again by itself while `anonml peer run` runs",
    "wrong-size": f"what was sent has the wrong length: {_UPDATE}",
    "sealed-to-another-key": f"what was sent is closed for another key than the study's: {_UPDATE}",
    "malformed": f"what was sent could not be read: {_UPDATE}",
    "wrong-study": f"the packet names another study: {_UPDATE}",
    "unknown-slot": f"the study has no such packet: {_UPDATE}",
    "unknown-survey": f"the study has no such survey: {_UPDATE}",
    "window-not-open": "it came too early: check this machine's clock; it is sent again while `anonml peer run` runs",
    "window-closed": "it came too late: check this machine's clock, and keep `anonml peer run` running next time",
    "wrong-draw": f"it answers another survey than was drawn: {_UPDATE}",
    "malformed-report": f"the report in it could not be read: {_UPDATE}",
    "rejected-proof": f"its signature or token was not believed: {_UPDATE}",
    "tag-spent": "another packet of yours was taken already, as from a second copy of this home: keep only one copy",
    "enrolment-closed": "enrolment had closed: check this machine's clock, and ask staff for the next study",
    "roster-full": "as many as may take part have enrolled: ask staff for the next study",
    "unknown-invite": f"it does not know this invite: {_NEW_LINK}",
    "invite-spent": f"somebody has used this invite: if that was not you, {_NEW_LINK}",
    "key-not-listed": "your key was not on its list: join again, give staff the key that `anonml peer join` prints, "
    "and start `anonml peer run` when they have put it on",
    "already-enrolled-differently": "your key is enrolled with other content, as from a second copy of this home: "
    "keep only one copy",
    "not-enrolled": "you were not on its list; nothing to do",
}
"""Word -> what it means to the owner."""


def reply_sentence(word: str) -> str:
    """The word and its sentence. A text that is no word of the aggregator's comes back as it is."""
    return f"{word}: {SENTENCES[word]}" if word in SENTENCES else word
