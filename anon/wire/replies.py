"""The aggregator's reply to a post: one word, always `REPLY_BYTES` long, whatever it says.

An enrolment that is accepted has the aggregator's time after the word. It is cut to the minute: a finer one would help
to find the machine behind an onion address by its clock.
"""

from __future__ import annotations

import re

from anon.errors import Malformed

REPLY_BYTES = 64
ACCEPTED = "accepted"
WITHDRAWN = "withdrawn"
BUSY = "busy"

# Refusals of a packet, by the step of `aggregator.rules.acceptance` that makes them.
PACKET_REFUSALS = (
    "wrong-size",
    "sealed-to-another-key",
    "malformed",
    "wrong-study",
    "unknown-slot",
    "unknown-survey",
    "window-not-open",
    "window-closed",
    "wrong-draw",
    "malformed-report",
    "rejected-proof",
    "tag-spent",
)
# Refusals of an enrolment or a withdrawal.
ENROLMENT_REFUSALS = (
    "wrong-size",
    "sealed-to-another-key",
    "malformed",
    "rejected-proof",
    "enrolment-closed",
    "roster-full",
    "unknown-invite",
    "invite-spent",
    "key-not-listed",
    "already-enrolled-differently",
    "not-enrolled",
)
_REPLY = re.compile("([a-z-]+)(?: ([1-9][0-9]{0,11}))? *")
WORDS = frozenset({ACCEPTED, WITHDRAWN, BUSY, *PACKET_REFUSALS, *ENROLMENT_REFUSALS})


def encode_reply(word: str, now: float | None = None) -> bytes:
    """The reply's bytes: the word, with `now` the whole minute in unix seconds, then spaces. `word` is one of
    `WORDS`."""
    if word not in WORDS:
        raise AssertionError(f"not a reply: {word}")
    return (word if now is None else f"{word} {int(now) // 60 * 60}").encode().ljust(REPLY_BYTES)


def parse_reply(data_untrusted: bytes) -> str:
    """The word of a reply. Raises `Malformed`."""
    return _parsed(data_untrusted)[0]


def parse_admission(data_untrusted: bytes) -> tuple[str, int]:
    """The word of a reply to an enrolment, and the minute in unix seconds: of one that is not accepted 0.

    Raises `Malformed`, also where the minute is missing.

    >>> parse_admission(encode_reply(ACCEPTED, 1e9)), parse_admission(encode_reply(BUSY))
    (('accepted', 999999960), ('busy', 0))
    """
    word, minute = _parsed(data_untrusted)
    if word == ACCEPTED and not minute:
        raise Malformed("answer: accepted without a time; the other side is another version's")
    return word, int(minute or 0)


def _parsed(data_untrusted: bytes) -> tuple[str, str | None]:
    said = _REPLY.fullmatch(data_untrusted.decode("ascii", "replace"))
    if len(data_untrusted) != REPLY_BYTES or said is None or said[1] not in WORDS or (said[2] and said[1] != ACCEPTED):
        raise Malformed("answer: not one of the documented words; the other side may not be an aggregator")
    return said[1], said[2]
