"""How long every document of a study can be, from its manifest alone: both sides know it before anything is fetched.

An aggregator checks it before it signs, a peer before it fetches: a signed head that claims more is no honest one's.
The kinds, each with its own bound, are in `anon.protocols.kinds`.
"""

from __future__ import annotations

from functools import lru_cache

from anon.protocols.kinds import Stage, longest_bucket, row_of, rows_of
from anon.protocols.registry import protocol_of
from anon.study.manifest import Manifest
from anon.transparency.buckets import DECOYS
from anon.transparency.closing import CLOSING
from anon.transparency.documents import LONGEST_HEAD
from anon.wire.lists import list_length

LONGEST_UNSEEN_CHAIN = 2 * 1024 * 1024
"""Bytes of heads that are read before the manifest is known: more than a manifest of the longest implies."""

MOST_HELD = 64 * 1024 * 1024
"""Bytes of documents that a study may make a peer hold at once: 300,000 people. A phone has that to spare; over Tor, at
some 200 kB/s, it takes five minutes; reading it takes seconds (docs/performance.md). A peer declines more, and an
aggregator publishes no such study."""

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


@lru_cache(maxsize=_KEPT)
def longest_at_once(manifest: Manifest) -> int:
    """The most bytes of documents that a peer holds at one time: roster, credentials and seed together, which it checks
    against each other, or one transcript; or its own buckets and the decoys."""
    closing = sum(longest_body(manifest, kind) for kind in CLOSING)
    closing = max(closing, (1 + DECOYS) * sum(longest_bucket(manifest, kind) for kind in CLOSING))
    return max(closing, *(longest_body(manifest, "transcript", survey.survey) for survey in manifest.surveys))
