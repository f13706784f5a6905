"""The aggregator's reply to a post: one word, always `REPLY_BYTES` long, whatever it says."""

from __future__ import annotations

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
WORDS = frozenset({ACCEPTED, WITHDRAWN, BUSY, *PACKET_REFUSALS, *ENROLMENT_REFUSALS})


def encode_reply(word: str) -> bytes:
    """The reply's bytes: the word, then spaces. `word` is one of `WORDS`."""
    if word not in WORDS:
        raise AssertionError(f"not a reply: {word}")
    return word.encode().ljust(REPLY_BYTES)


def parse_reply(data_untrusted: bytes) -> str:
    """The word of a reply. Raises `Malformed`."""
    word = data_untrusted.decode("ascii", "replace").rstrip(" ")
    if len(data_untrusted) != REPLY_BYTES or word not in WORDS:
        raise Malformed("answer: not one of the documented words; the other side may not be an aggregator")
    return word
