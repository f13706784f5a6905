"""How long every document of a study can be, from its manifest alone: both sides know it before anything is fetched.

An aggregator checks it before it signs, a peer before it fetches: a signed head that claims more is no honest one's.
The kinds, each with its own bound, are in `anon.protocols.kinds`.
"""

from __future__ import annotations

from functools import lru_cache

from attrs import evolve

from anon.protocols.kinds import Stage, row_of, rows_of
from anon.protocols.registry import protocol_of
from anon.protocols.sortition import has_board
from anon.study.manifest import Manifest
from anon.transparency.closing import CLOSING
from anon.transparency.documents import LONGEST_HEAD
from anon.transparency.together import LENGTH, TIME, HeadGroup
from anon.wire.lists import list_length

LONGEST_UNSEEN_CHAIN = 2 * 1024 * 1024
"""Bytes of heads that are read before the manifest is known: more than a manifest of the longest implies."""

_KEPT = 1024  # lengths are asked for again at every look at the heads


@lru_cache(maxsize=_KEPT)
def longest_body(manifest: Manifest, kind: str, part: int = 0) -> int:
    """Bytes of the longest body of this document. 0 when the study has no such document."""
    if (row := row_of(manifest, kind, part)) is not None:
        return row.longest(manifest, part)
    return protocol_of(manifest).documents(manifest).get((kind, part), 0)


def most_documents(manifest: Manifest) -> int:
    """How many documents the study can have, its manifest included."""
    common = sum(len(row.parts(manifest)) for row in rows_of(manifest) if row.stage is not Stage.INSTEAD)
    return common + len(protocol_of(manifest).documents(manifest))


def longest_chain(manifest: Manifest) -> int:
    """Bytes of all heads of the study, as they travel."""
    return list_length(most_documents(manifest), LONGEST_HEAD)


def longest_beside(manifest: Manifest, group: HeadGroup) -> int:
    """Bytes of all that can come beside the heads in one exchange."""
    slots = [("transcript", slot.slot) for slot in manifest.slots]
    places = {
        HeadGroup.OPENING: [("manifest", 0), ("tellers", 0)],
        HeadGroup.CLOSING: [(kind, 0) for kind in CLOSING],
        HeadGroup.TRANSCRIPTS: [("roster", 0), ("unsummed", 0), *slots],
        HeadGroup.CLOCK: [],
    }[group]
    return LENGTH + TIME + sum(longest_body(manifest, kind, part) for kind, part in places)


@lru_cache(maxsize=8)
def with_members(manifest: Manifest, members: int) -> Manifest:
    """The manifest if so many were its most members: no document is longer than that one's. Of no fewer than its
    minimum, and no more than its maximum, which other checks demand of a roster."""
    cohort = manifest.cohort
    return evolve(manifest, cohort=evolve(cohort, maximum=min(max(members, cohort.minimum), cohort.maximum)))


def longest_board(manifest: Manifest) -> int:
    """The most bytes of pages and seats' documents together, where members write: a peer holds all of them at once,
    since the last page is read together with all before."""
    return sum(protocol_of(manifest).documents(manifest).values()) if has_board(manifest) else 0
