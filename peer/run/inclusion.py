"""Looking for the own packets in the published transcripts, by their digests.

Fetches do not depend on what was drawn, answered or sent. Every peer fetches the transcripts' documents, of all slots,
at a time of its own. To fetch the own alone would tie this peer's packets to each other. They come with the heads in
one exchange: one circuit a transcript would cost a peer a hundred circuits and tell nothing less.

A transcript of one bucket stands within its document, so nothing more is fetched of it. Of several buckets a peer
fetches the one of its own tag and two decoys, for each slot. Each of them comes over a connection of its own at a time
of its own, drawn over all that is left of the study. So nothing ties two of them to one another, or to the bucket of
the peer's key, which it fetched when enrolment closed. Tags are those of the slots, whatever was drawn, answered, sent
or acknowledged. The number of fetches follows from the signed sizes, and the buckets from the credential and the
secrets of joining.

No slot has more packets than the signed roster has members: by the signed lengths of all transcripts
(`peer.rules.checks.check_numbers`), and by the numbers in their documents. Finer buckets than the roster's would name
the member who asks.

The fetched bytes are not kept: of a bucket the digest of the own packet alone. After a restart the same are fetched
again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve

from anon.credential import pseudonym
from anon.errors import Malformed, RejectedProof
from anon.protocols.cost_words import Amount
from anon.protocols.registry import charge_of
from anon.protocols.sortition import tag_context
from anon.protocols.tellers import tellers_of
from anon.text.sentences import joined, say
from anon.transparency.bucket_evidence import bad_bucket_of
from anon.transparency.bucketed import members_signed, read_digests_bucket
from anon.transparency.buckets import Bucket, BucketDocument, parse_bucket_document
from anon.transparency.documents import Head, SignedHead, find
from anon.transparency.together import HeadGroup
from peer.rules.bucket_checks import BadlyBucketed, buckets_of_tag, demand_full
from peer.rules.checks import check_packets
from peer.rules.distrust import Distrust
from peer.rules.packet_lifecycle import PacketEvent, Status
from peer.rules.schedule import draw_spread
from peer.rules.study_secrets import StudySecrets
from peer.rules.unsummed import UNSUMMED, cost, told
from peer.run.context import Later, StudyRun, credential_of
from peer.run.exchanges import Exchanges
from peer.run.jobs import FetchDigests
from peer.run.plan import transcript_interval
from peer.store.records import OutboxEntry, SentStudy
from peer.threads import heads_off_loop, off_loop

NOT_PUBLISHED = say("the transcript was not published in time")
NOT_SUMMED = say("neither a sum nor the transcript was published in time: ask staff if a teller is away")


async def choose_transcripts(run: StudyRun, exchanges: Exchanges, study: SentStudy) -> None:
    """Once every transcript has a head, fetch their documents, and draw when each bucket is fetched of those that have
    several. The answers play no part."""
    chain, bodies = await exchanges.chain_with(study, HeadGroup.TRANSCRIPTS)
    if not bodies:
        raise Later
    if (ended := find(chain, UNSUMMED)) is not None:
        return conclude_without_sum(run, study, bodies[ended])
    heads = {head.part: head for head in bodies if head.kind == "transcript"}
    documents = await off_loop(_read, study, chain, heads, bodies)
    outbox = run.store.outbox(study.study)
    for document in documents.values():
        if document.only is not None:
            await _look_in(run, study, document, 0, document.only, outbox)
    fetches = await off_loop(_fetches, study, heads, documents, run.secrets(study))
    closed, ends = transcript_interval(study.manifest)
    for fetch in fetches:
        due = draw_spread(closed, ends, run.now(), run.tools.random_bytes)
        run.memory = run.memory.with_time(fetch, due)
    run.memory = evolve(run.memory, digests=fetches)


async def fetch_digests(run: StudyRun, exchanges: Exchanges, study: SentStudy, job: FetchDigests) -> None:
    """Fetch a bucket, and look into it if it is that of the own tag."""
    bucket = await exchanges.bucket(study, job.head, job.document, job.bucket)
    await _look_in(run, study, job.document, job.bucket, bucket, run.store.outbox(study.study) if job.own else ())
    run.memory = run.memory.with_done(job)


async def _look_in(
    run: StudyRun,
    study: SentStudy,
    document: BucketDocument,
    number: int,
    bucket: Bucket,
    outbox: Sequence[OutboxEntry],
) -> None:
    """Of a bucket keep the digest of the own packet alone; `outbox` is empty for a decoy. Raises `BadlyBucketed` for a
    bucket that no honest aggregator signs."""
    try:
        digests = await off_loop(read_digests_bucket, document, bucket.body)
    except Malformed:
        latest = run.store.study(study.study)
        chain = await heads_off_loop(lambda: latest.chain)
        proof = bad_bucket_of(study.manifest, chain, [document.to_bytes()], number, (bucket,))
        raise BadlyBucketed(proof) from None
    demand_full(document, len(digests))
    for packet in outbox:
        if packet.slot == document.part and packet.digest is not None:
            run.listed[packet.slot] = digests & {packet.digest}


def conclude(run: StudyRun, study: SentStudy, reason: str) -> None:
    """Keep what was found of the packets whose transcripts are here; the others stay as they were."""
    outbox = run.store.outbox(study.study)
    delivered = [packet for packet in outbox if packet.status is Status.DELIVERED]
    found = {
        packet.key: PacketEvent.FOUND if packet.digest in run.listed[packet.slot] else PacketEvent.NOT_FOUND
        for packet in delivered
        if packet.slot in run.listed
    }
    if not delivered:
        reason = say("nothing was delivered")
    run.store.inclusion(study.study, found, reason)


def conclude_without_sum(run: StudyRun, study: SentStudy, body: bytes) -> None:
    """The study ended without a sum, and no transcript follows. Every member's program fetches the reason alike."""
    from anon.sharing.round_document import parse_unsummed  # with tellers alone: it loads all about shares

    arrangement = tellers_of(study.manifest)
    try:
        ended = parse_unsummed(arrangement, study.study, body)
    except (Malformed, RejectedProof):
        ended = None
    run.store.inclusion(study.study, {}, told(ended, _held(run, study), tellers=arrangement is not None))


def give_up(run: StudyRun, study: SentStudy) -> None:
    """The transcripts were not published in time. Where tellers add up, the owner hears what that cost."""
    reason: str = NOT_PUBLISHED
    if tellers_of(study.manifest) is not None:
        reason = joined([NOT_SUMMED, cost(_held(run, study))])
    conclude(run, study, reason)


def _held(run: StudyRun, study: SentStudy) -> Amount:
    entry = run.store.ledger().entry(study.study)
    spent = entry.spent if entry is not None else 0
    return Amount(charge_of(study.manifest).budget, spent, study.manifest)


def _read(
    study: SentStudy, chain: Sequence[SignedHead], heads: Mapping[int, Head], bodies: dict[Head, bytes]
) -> dict[int, BucketDocument]:
    """The transcripts' documents by slot, none of more packets than the roster has members. Takes the bodies away: a
    document holds its own, and together they may be 35 MiB."""
    try:
        members = members_signed(chain)
        if members is None:
            roster = next(head for head in bodies if head.kind == "roster")
            members = parse_bucket_document(bodies[roster], study.study, "roster", 0).count
        documents = {
            slot: parse_bucket_document(bodies.pop(head), study.study, "transcript", slot)
            for slot, head in heads.items()
        }
    except Malformed:
        raise Distrust(say("a signed transcript is not what it must be; nothing more is fetched")) from None
    check_packets({slot: document.count for slot, document in documents.items()}, members)
    return documents


def _fetches(
    study: SentStudy, heads: Mapping[int, Head], documents: Mapping[int, BucketDocument], secrets: StudySecrets
) -> tuple[FetchDigests, ...]:
    several = [(slot, document) for slot, document in sorted(documents.items()) if document.bits]
    if not several:
        return ()
    credential, fetches = credential_of(study, secrets), list[FetchDigests]()
    for slot, document in several:
        own, *others = buckets_of_tag(document, pseudonym(credential, tag_context(study.manifest, slot)), secrets)
        fetches += [FetchDigests(heads[slot], document, bucket, bucket == own) for bucket in (own, *others)]
    return tuple(fetches)
