"""Roster, credentials and transcripts, made from the store one bucket at a time.

Beside the bucket in hand there are only the keys or tags of all entries, 32 or 48 bytes each, and 40 bytes a bucket.
Buckets are kept before the document that names their root: it has the next number of the chain, and until its head is
there nobody is served them. A step that is repeated writes them anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from aggregator.intake.packets import RosterValues
from aggregator.intake.token_jobs import issue
from aggregator.rules.enrol import roster_entry
from aggregator.rules.enrolled import StoredEnrolment
from aggregator.rules.lengths import demand_buckets
from aggregator.store.buckets import demand_put
from aggregator.store.home import KEPT
from aggregator.study.live import LiveStudy
from anon.credential import signer_nym_entropy
from anon.errors import Damaged
from anon.text.sentences import Term, attributed
from anon.transparency.bucketed import MadeBucket, credentials_bucket, roster_bucket, transcript_bucket
from anon.transparency.buckets import allot, cut, document_over
from anon.transparency.documents import find
from anon.wire.messages import KEY_BYTES, RosterEntry, credential_header, parse_roster
from anon.wire.packets import TAG_BYTES

_KEPT_AT_ONCE = 8
"""Buckets in one transaction: about 3 MB of packets."""
_ISSUED_AT_ONCE = 64


async def publish_in_buckets(study: LiveStudy, kind: str, part: int, made: AsyncIterator[MadeBucket]) -> None:
    """Append a document in buckets, or keep the one of this kind and part that is there already.

    Raises `TooLong`, with nothing signed, for a bucket that no reader takes.
    """
    if find(study.chain, kind, part) is not None:
        return
    number, waiting = len(study.chain), list[MadeBucket]()
    entries, leaves, first = 0, list[bytes](), b""

    async def put() -> None:
        await study.tools.buckets.put(study.study, number, len(leaves) - len(waiting), waiting)
        waiting.clear()

    async for bucket in made:
        demand_buckets(study.manifest, kind, part, bucket.entries)
        entries += bucket.entries
        first = first if leaves else bucket.body
        leaves.append(bucket.leaf)
        waiting.append(bucket)
        if len(waiting) == _KEPT_AT_ONCE:
            await put()
    if waiting:
        await put()

    async def beside(connection: AsyncConnection, taken: int) -> None:
        await demand_put(connection, study.study, taken, leaves)

    document = document_over(study.study, kind, part, entries, leaves, first)
    await study.publish(kind, part, document.to_bytes(), beside)


async def roster_buckets(study: LiveStudy, keys: bytes) -> AsyncIterator[MadeBucket]:
    """The buckets of the roster of these keys, laid end to end."""
    for own in await asyncio.to_thread(allot, keys, KEY_BYTES):
        enrolled = await _enrolled(study, list(cut(own, KEY_BYTES)))
        yield await asyncio.to_thread(_roster_bucket, study.study, enrolled)


async def credentials_buckets(study: LiveStudy, issued: RosterValues) -> AsyncIterator[MadeBucket]:
    """The credentials of each bucket of the signed roster. Raises `Damaged` when enrolments are not those that were
    signed."""
    roster = find(study.chain, "roster")
    if roster is None:
        raise AssertionError("credentials before the roster")  # a fault of ours: the table orders the effects
    async for _bucket, content in study.contents(roster):
        keys = [entry.key for entry in parse_roster(content, study.study)]
        enrolled = await study.tools.enrolments.of_keys(study.study, keys)
        again = await asyncio.to_thread(_roster_bucket, study.study, enrolled)
        if again.content != content:
            raise unlike_the_roster(study)
        signatures = await issue_to(study, issued, enrolled)
        yield await asyncio.to_thread(credentials_bucket, study.study, signatures)


async def transcript_buckets(study: LiveStudy, slot: int) -> AsyncIterator[MadeBucket]:
    """The buckets of a slot's transcript. Raises `Damaged` for a packet that has changed since it was last read."""
    surveys = [row.survey for row in study.manifest.slots[slot].rows]
    tags = await study.tools.packets.tags(study.study, slot, surveys)
    for own in await asyncio.to_thread(allot, tags, TAG_BYTES):
        packets = await study.tools.packets.of_tags(study.study, slot, list(cut(own, TAG_BYTES)))
        if len(packets) * TAG_BYTES != len(own):
            raise _damaged(study, f"packets of slot {slot}")
        yield await asyncio.to_thread(transcript_bucket, study.study, slot, packets)


async def issue_to(study: LiveStudy, issued: RosterValues, enrolled: Sequence[StoredEnrolment]) -> list[bytes]:
    """A || e for each of these enrolments, in their order. Deterministic."""
    manifest, secret = study.manifest, study.secrets.credential_key
    header = credential_header(study.study, issued.roster_digest)
    work = [
        (roster_entry(enrolment).commitment_point, signer_nym_entropy(issued.seed, enrolment.key))
        for enrolment in enrolled
    ]
    some = [work[start : start + _ISSUED_AT_ONCE] for start in range(0, len(work), _ISSUED_AT_ONCE)]
    run = study.tools.workers.run
    parts = await asyncio.gather(
        *(run(issue, secret, manifest.credential_key, header, manifest.packets, part) for part in some)
    )
    return [signature for part in parts for signature in part]


def unlike_the_roster(study: LiveStudy) -> Damaged:
    """The error of stored enrolments that are not those of the signed roster."""
    return KEPT.damaged(
        study.tools.studies.place,
        Term(
            f"study {study.study.hex()[:8]}: enrolments are not those of the signed roster, so that no credentials can "
            "be issued; where there is no backup, publish the study anew"
        ),
    )


async def _enrolled(study: LiveStudy, keys: Sequence[bytes]) -> tuple[StoredEnrolment, ...]:
    found = await study.tools.enrolments.of_keys(study.study, keys)
    if len(found) != len(keys):
        raise _damaged(study, "enrolments")
    return found


def _roster_bucket(study: bytes, enrolled: Sequence[StoredEnrolment]) -> MadeBucket:
    entries: list[RosterEntry] = list(map(roster_entry, enrolled))
    return roster_bucket(study, entries)


def _damaged(study: LiveStudy, what: str) -> Damaged:
    named = f"study {study.study.hex()[:8]}, {what}: changed while they were read"
    return KEPT.damaged(study.tools.studies.place, attributed(named))
