"""The aggregator's words as sentences, each with what to do next. One table for every word of `anon.wire.replies`."""

from __future__ import annotations

from anon.text.sentences import NOTHING, Ours, Term, attributed, say

SENTENCES = {
    "accepted": say("it was taken; nothing to do"),
    "withdrawn": say("you are struck off; nothing to do"),
    "busy": say("it was busy; it is tried again by itself while `anonml peer run` runs"),
    "wrong-size": say("what was sent has the wrong length: update this program; if it stays, tell staff"),
    "sealed-to-another-key": say(
        "what was sent is closed for another key than the study's: update this program; if it stays, tell staff",
    ),
    "malformed": say("what was sent could not be read: update this program; if it stays, tell staff"),
    "wrong-study": say("the packet names another study: update this program; if it stays, tell staff"),
    "unknown-slot": say("the study has no such packet: update this program; if it stays, tell staff"),
    "unknown-survey": say("the study has no such survey: update this program; if it stays, tell staff"),
    "window-not-open": say(
        "it came too early: check this machine's clock; it is sent again while `anonml peer run` runs",
    ),
    "window-closed": say("it came too late: check this machine's clock, and keep `anonml peer run` running next time"),
    "wrong-draw": say("it answers another survey than was drawn: update this program; if it stays, tell staff"),
    "malformed-report": say("the report in it could not be read: update this program; if it stays, tell staff"),
    "rejected-proof": say("its signature or token was not believed: update this program; if it stays, tell staff"),
    "tag-spent": say(
        "another packet of yours was taken already, as from a second copy of this home: keep only one copy",
    ),
    "enrolment-closed": say("enrolment had closed: check this machine's clock, and ask staff for the next study"),
    "roster-full": say("as many as may take part have enrolled: ask staff for the next study"),
    "unknown-invite": say("it does not know this invite: ask staff for a new link, and join with it"),
    "invite-spent": say(
        "somebody has used this invite: if that was not you, ask staff for a new link, and join with it",
    ),
    "key-not-listed": say(
        "your key was not on its list: join again, give staff the key that `anonml peer join` prints, and start "
        "`anonml peer run` when they have put it on"
    ),
    "already-enrolled-differently": say(
        "your key is enrolled with other content, as from a second copy of this home: keep only one copy",
    ),
    "not-enrolled": say("you were not on its list; nothing to do"),
}
"""Word -> what it means to the owner."""


def reply_sentence(word: str) -> Ours:
    """The word and its sentence. A text that is no word of the protocol's comes back between marks."""
    if word in SENTENCES:
        return say("{word}: {sentence}", word=Term(word), sentence=SENTENCES[word])
    return attributed(word) if word else NOTHING
