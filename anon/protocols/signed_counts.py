"""How many members and packets a study has by its signed heads alone, before a body is fetched.

Entries of a whole roster are equally long, and so are the packets of a survey. So a signed length is a signed number.
In buckets the numbers stand in the short documents instead (`anon.transparency.buckets`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from attrs import evolve

from anon.protocols.posts import recipients
from anon.study.manifest import Manifest
from anon.transparency.bucketed import has_buckets
from anon.transparency.documents import SignedHead, find
from anon.transparency.transcript import empty_length, entry_length
from anon.wire.lists import most_items
from anon.wire.messages import (
    COMMITMENT_POINT_BYTES,
    CONTRIBUTION_BYTES,
    KEY_BYTES,
    RosterEntry,
    encode_roster,
)

_KEPT = 1024


def members_signed(manifest: Manifest, chain: Sequence[SignedHead]) -> int | None:
    """The members of a whole roster; None before there is one, and where it is in buckets."""
    head = find(chain, "roster")
    if head is None or has_buckets(manifest, chain):
        return None
    entry = RosterEntry(bytes(KEY_BYTES), bytes(CONTRIBUTION_BYTES), bytes(COMMITMENT_POINT_BYTES))
    empty, single = (len(encode_roster(bytes(32), entries)) for entries in ([], [entry]))
    return most_items(head.length, empty, single - empty)


def packets_signed(manifest: Manifest, chain: Sequence[SignedHead]) -> Counter[int]:
    """By slot, the packets of its whole transcripts that are signed so far."""
    lengths = {signed.head.part: signed.head.length for signed in chain if signed.head.kind == "transcript"}
    packets = Counter[int]()
    for slot in manifest.slots:
        for row in slot.rows:
            if row.survey in lengths:
                packets[slot.slot] += most_items(lengths[row.survey], *_lengths(manifest, row.survey))
    return packets


@lru_cache(maxsize=8)
def with_members(manifest: Manifest, members: int) -> Manifest:
    """The manifest if so many were its most members: no document is longer than that one's. Of no fewer than its
    minimum, and no more than its maximum, which other checks demand of a roster."""
    cohort = manifest.cohort
    return evolve(manifest, cohort=evolve(cohort, maximum=min(max(members, cohort.minimum), cohort.maximum)))


@lru_cache(maxsize=_KEPT)
def _lengths(manifest: Manifest, survey: int) -> tuple[int, int]:
    """Bytes of a survey's transcript without packets, and of each packet in it."""
    asked = manifest.survey(survey)
    return empty_length(bytes(32), survey), entry_length(manifest, asked, recipients(manifest))
