"""Heads that come with documents, in one exchange: `heads/NAME` over HTTP.

The answer is the length of the heads (4 bytes, big-endian), the heads, and the bodies of the group's documents, as far
as they are published, in the order of `heads_of`. Both sides compute that order from the heads.

A request names the group, and nothing else: all peers ask alike. Heads and bodies of one answer are of one story. So a
chain is fetched by itself as often as a liar shall be caught (docs/protocol.md, One story for everybody).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from itertools import accumulate

from anon.errors import Malformed
from anon.text.sentences import say
from anon.transparency.bucketed import members_signed
from anon.transparency.closing import CLOSING
from anon.transparency.documents import Head, SignedHead, check_body, find

LENGTH, TIME = 4, 8
"""Bytes of the length before the heads, and of a told time."""


class HeadGroup(StrEnum):
    """The documents that come with the heads."""

    OPENING = "opening"
    CLOSING = "closing"
    TRANSCRIPTS = "transcripts"
    CLOCK = "clock"
    """No document. Once there is a roster the aggregator's time comes in place of bodies."""


def heads_of(group: HeadGroup, chain: Sequence[SignedHead], slots: int) -> list[Head]:
    """The heads of a group's documents; none before all of them are published. `slots`: of the study.

    Where the study ended without a sum, `transcripts` has the reason in their place. Where the roster's head does not
    say how many members there are, they come with its document."""
    if group is HeadGroup.OPENING:
        found = [find(chain, "manifest"), find(chain, "tellers")]
        return [head for head in found if head is not None]
    if group is HeadGroup.CLOCK:
        return []
    if group is HeadGroup.TRANSCRIPTS and (ended := find(chain, "unsummed")) is not None:
        return [ended]
    wanted = [(kind, 0) for kind in CLOSING]
    if group is HeadGroup.TRANSCRIPTS:
        roster = [("roster", 0)] if members_signed(chain) is None else []
        wanted = [*roster, *(("transcript", slot) for slot in range(slots))]
    heads = [head for place in wanted if (head := find(chain, *place)) is not None]
    return heads if len(heads) == len(wanted) else []


def told_time(now: float, margin: float) -> bytes:
    """The time as an aggregator tells it: up to the next multiple of the study's clock margin, and at least a second.
    It tells nobody how exactly its machine keeps time."""
    step = max(1, round(margin))
    return (-(-int(now) // step) * step).to_bytes(TIME, "big")


def parse_told_time(told_untrusted: bytes) -> float | None:
    """The time in unix seconds; None where none was told. Raises `Malformed`."""
    if not told_untrusted:
        return None
    if len(told_untrusted) != TIME:
        raise Malformed(say("the aggregator's time: expected 8 bytes; it is asked again"))
    return float(int.from_bytes(told_untrusted, "big"))


def with_heads(heads: bytes, rest: Sequence[bytes | memoryview]) -> list[bytes | memoryview]:
    """The answer in pieces."""
    return [len(heads).to_bytes(LENGTH, "big") + heads, *rest]


def parse_with_heads(answer_untrusted: bytes) -> tuple[bytes, bytes]:
    """The heads, and all that follows them. Raises `Malformed`."""
    end = LENGTH + int.from_bytes(answer_untrusted[:LENGTH], "big")
    if len(answer_untrusted) < max(end, LENGTH):
        raise Malformed(say("heads: the answer is cut off; they are fetched again"))
    return answer_untrusted[LENGTH:end], answer_untrusted[end:]


def taken_apart(heads: Sequence[Head], together_untrusted: bytes) -> dict[Head, bytes]:
    """The bodies that follow each other, each as long as its head says. Raises `Malformed`."""
    ends = list(accumulate((head.length for head in heads), initial=0))
    if len(together_untrusted) != ends[-1]:
        raise Malformed(say(
            "documents: expected {ends} bytes, got {together_untrusted}; they are fetched again",
            ends=ends[-1],
            together_untrusted=len(together_untrusted),
        ))
    return {
        head: check_body(head, together_untrusted[start : start + head.length])
        for head, start in zip(heads, ends, strict=False)
    }
