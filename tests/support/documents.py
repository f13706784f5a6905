"""Roster and credentials of few members as they are signed: each document holds its one bucket. And heads as served."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from anon.study.manifest import Manifest
from anon.transparency.bucketed import credentials_in_buckets, read_roster_bucket, roster_in_buckets
from anon.transparency.buckets import parse_bucket_document
from anon.transparency.documents import SignedHead, encode_chain, find
from anon.transparency.together import HeadGroup, heads_of, told_time, with_heads
from anon.wire.messages import Roster, RosterEntry, Signatures, parse_credentials

if TYPE_CHECKING:  # a peer's tests run on Windows too, where there is no aggregator
    from aggregator.store.packets import PacketStore
    from aggregator.study.live import LiveStudy


def roster_body(study: bytes, entries: Sequence[RosterEntry]) -> bytes:
    return roster_in_buckets(study, entries).document.to_bytes()


def credentials_body(study: bytes, signatures: Sequence[bytes]) -> bytes:
    """In the roster's order, which is that of one bucket."""
    return credentials_in_buckets(study, [signatures]).document.to_bytes()


def read_roster(body: bytes, study: bytes) -> Roster:
    document = parse_bucket_document(body, study, "roster", 0)
    return read_roster_bucket(document, 0, document.body)


def read_credentials(body: bytes, study: bytes) -> Signatures:
    document = parse_bucket_document(body, study, "credentials", 0)
    return parse_credentials(document.body, study, document.count)


async def contents_of(live: LiveStudy, kind: str) -> list[bytes]:
    """All buckets of the documents of a kind, as they are exported."""
    heads = [one.head for one in live.chain if one.head.kind == kind]
    return [content for head in heads async for _bucket, content in live.contents(head)]


async def plaintexts_of(store: PacketStore, study: bytes, slot: int, survey: int) -> tuple[bytes, ...]:
    """The sound plaintexts of a survey, sorted by tag."""
    return tuple([plaintext async for some in store.pages_of(study, slot, survey) for plaintext in some])


def heads_answer(
    what: str, chain: Sequence[SignedHead], bodies: Sequence[bytes], study: Manifest, now: float = 0.0
) -> bytes:
    """The answer to `heads`, or to `heads/GROUP` with what comes beside them."""
    heads, (_, _, group) = encode_chain(chain), what.partition("/")
    if not group:
        return heads
    if group == HeadGroup.CLOCK:
        rest = [told_time(now, study.timetable.margin)] if find(chain, "roster") else []
    else:
        rest = [bodies[head.number] for head in heads_of(HeadGroup(group), chain, len(study.slots))]
    return b"".join(with_heads(heads, rest))
