"""Looking for the own packets in the published transcripts, by downloading whole surveys.

Fetches do not depend on what was drawn, answered or sent: every peer fetches the transcripts of all surveys. To fetch
the own alone would tie this peer's packets to each other. Transcripts that follow each other in the chain come in one
exchange: one circuit a transcript would cost a peer a hundred circuits and tell nothing less.

No slot has more packets than the signed roster has members: by the signed lengths of all transcripts
(`peer.rules.checks.check_numbers`), and by the lists of those that were fetched together.

All transcripts together hold the study's packets. Beyond `MOST_LISTED` bytes by the signed heads a peer fetches each of
them with probability `MOST_LISTED` / all. It looks for each of its packets with that probability. An aggregator that
leaves out k packets stays unseen with (1 - MOST_LISTED / all)^k. Then each run of neighbours has a time and a circuit
of its own. The fetched bytes are not kept: of a body its digests alone, and of these the own ones. After a restart all
are fetched again.

Where a study's documents are in buckets, a peer fetches, for each slot, the digests in the bucket of its own tag and in
two decoys. Each of them comes over a connection of its own at a time of its own, drawn over all that is left of the
study. So nothing ties two of them to one another, or to the bucket of the peer's key, which it fetched when enrolment
closed. No transcript may have more packets than the signed roster has members: finer buckets than the roster's would
name the member who asks. Tags are those of the slots, whatever was drawn, answered, sent or acknowledged. The number of
fetches follows from the signed sizes, and the buckets from the credential and the secrets of joining. After a restart
the same are fetched again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve

from anon.credential import pseudonym
from anon.errors import Malformed, RejectedProof
from anon.protocols.charge import Budget
from anon.protocols.registry import charge_of
from anon.protocols.signed_counts import members_signed
from anon.protocols.sortition import tag_context
from anon.protocols.tellers import tellers_of
from anon.text.sentences import joined, say
from anon.transparency.bucket_evidence import bad_bucket_of
from anon.transparency.bucketed import has_buckets, read_digests_bucket, transcript_parts
from anon.transparency.buckets import BucketDocument, parse_bucket_document
from anon.transparency.documents import Head, SignedHead, find
from anon.transparency.transcript import packets_in, transcript_digests
from peer.rules.bucket_checks import BadlyBucketed, buckets_of_tag, demand_full
from peer.rules.checks import check_packets
from peer.rules.distrust import Distrust
from peer.rules.packet_lifecycle import PacketEvent, Status
from peer.rules.schedule import draw_spread, uniform
from peer.rules.study_secrets import StudySecrets
from peer.rules.unsummed import UNSUMMED, cost, told
from peer.run.context import Later, StudyRun, credential_of
from peer.run.exchanges import Exchanges
from peer.run.jobs import FetchDigests, FetchTranscripts, TranscriptRange
from peer.run.plan import transcript_interval
from peer.store.records import SentStudy
from peer.threads import heads_off_loop, off_loop

MOST_LISTED = 32 * 1024 * 1024
"""Bytes of transcripts that a peer fetches of one study, on average: some 70,000 packets."""
MOST_BETWEEN = 1024 * 1024
"""Bytes of documents from the roster's to the last transcript's, of a study in buckets, that come in one exchange."""
NOT_PUBLISHED = say("the transcript was not published in time")
NOT_SUMMED = say("neither a sum nor the transcript was published in time: ask staff if a teller is away")
NOT_FETCHED = say("a random part of the transcripts was fetched; the others were too many")


async def choose_transcripts(run: StudyRun, exchanges: Exchanges, study: SentStudy) -> None:
    """Once every transcript has a head, draw which of them to fetch, and when. The answers play no part."""
    chain: Sequence[SignedHead] = await heads_off_loop(lambda: study.chain)
    surveys = transcript_parts(study.manifest, chain)
    if any(find(chain, "transcript", survey) is None for survey in surveys):
        chain = await exchanges.chain(study)
    if (ended := find(chain, UNSUMMED)) is not None:
        return await conclude_without_sum(run, exchanges, study, ended)
    heads = {survey: head for survey in surveys if (head := find(chain, "transcript", survey)) is not None}
    if len(heads) < len(surveys):
        raise Later
    if has_buckets(study.manifest, chain):
        return await choose_buckets(run, exchanges, study, chain, heads)
    closed, ends = transcript_interval(study.manifest)
    random_bytes, everything = run.tools.random_bytes, sum(head.length for head in heads.values())
    chosen = {
        survey: head
        for survey, head in heads.items()
        if everything <= MOST_LISTED or uniform(0.0, everything, random_bytes) < MOST_LISTED
    }
    runs = tuple(runs_of(chosen))
    for found in runs:
        due = draw_spread(closed, ends, run.now(), random_bytes)
        run.memory = run.memory.with_time(FetchTranscripts(found), due)
    run.memory = evolve(run.memory, runs=runs)


async def fetch_transcripts(run: StudyRun, exchanges: Exchanges, study: SentStudy, job: FetchTranscripts) -> None:
    """Keep of a run of transcripts the digests of own packets alone."""
    bodies = await exchanges.bodies(study, [head for _survey, head in job.run])
    surveys = [survey for survey, _head in job.run]
    chain = await heads_off_loop(lambda: study.chain)
    await off_loop(_check_listed, study, chain, bodies, surveys)
    own = frozenset(packet.digest for packet in run.store.outbox(study.study) if packet.digest is not None)
    run.listed |= await off_loop(_own_listed, bodies, study.study, surveys, own)
    run.memory = run.memory.with_done(job)


def _check_listed(
    study: SentStudy, chain: Sequence[SignedHead], bodies: Sequence[bytes], surveys: Sequence[int]
) -> None:
    """The lists themselves, since packets that are shorter than any make no longer document. Raises `Distrust`."""
    listed = {survey: packets_in(body, study.study, survey) for body, survey in zip(bodies, surveys, strict=True)}
    members = members_signed(study.manifest, chain) or 0
    slots = study.manifest.slots
    check_packets({slot.slot: sum(listed.get(row.survey, 0) for row in slot.rows) for slot in slots}, members)


def conclude(run: StudyRun, study: SentStudy, reason: str) -> None:
    """Keep what was found of the packets whose transcripts are here; the others stay as they were."""
    outbox = run.store.outbox(study.study)
    delivered = [packet for packet in outbox if packet.status is Status.DELIVERED]
    found = {
        packet.key: PacketEvent.FOUND if packet.digest in run.listed[packet.survey] else PacketEvent.NOT_FOUND
        for packet in delivered
        if packet.survey in run.listed
    }
    if not delivered:
        reason = say("nothing was delivered")
    elif not reason and len(found) < len(delivered):
        reason = NOT_FETCHED
    run.store.inclusion(study.study, found, reason)


async def conclude_without_sum(run: StudyRun, exchanges: Exchanges, study: SentStudy, head: Head) -> None:
    """The study ended without a sum, and no transcript follows. Every member's program fetches the reason alike."""
    from anon.sharing.round_document import parse_unsummed  # with tellers alone: it loads all about shares

    body, arrangement = await exchanges.body(study, head), tellers_of(study.manifest)
    try:
        ended = None if arrangement is None else parse_unsummed(arrangement, study.study, body)
    except (Malformed, RejectedProof):
        ended = None
    run.store.inclusion(study.study, {}, told(ended, *_held(run, study)))


def give_up(run: StudyRun, study: SentStudy) -> None:
    """The transcripts were not published in time. Where tellers add up, the owner hears what that cost."""
    reason: str = NOT_PUBLISHED
    if tellers_of(study.manifest) is not None:
        reason = joined([NOT_SUMMED, cost(*_held(run, study))])
    conclude(run, study, reason)


def _held(run: StudyRun, study: SentStudy) -> tuple[Budget, int]:
    entry = run.store.ledger().entry(study.study)
    return (charge_of(study.manifest).budget, 0) if entry is None else (entry.budget, entry.spent)


def runs_of(heads: Mapping[int, Head]) -> list[TranscriptRange]:
    """Transcripts by survey, in runs of neighbours in the chain, each of at most `MOST_LISTED` bytes or one alone."""
    runs: list[list[tuple[int, Head]]] = []
    for survey, head in sorted(heads.items(), key=lambda item: item[1].number):
        last = runs[-1] if runs else []
        follows = bool(last) and last[-1][1].number + 1 == head.number
        if follows and sum(listed.length for _survey, listed in last) + head.length <= MOST_LISTED:
            last.append((survey, head))
        else:
            runs.append([(survey, head)])
    return [tuple(run) for run in runs]


def _own_listed(
    bodies: Sequence[bytes], study: bytes, surveys: Sequence[int], own: frozenset[bytes]
) -> dict[int, frozenset[bytes]]:
    return {
        survey: transcript_digests(body, study, survey) & own for body, survey in zip(bodies, surveys, strict=True)
    }


async def choose_buckets(
    run: StudyRun, exchanges: Exchanges, study: SentStudy, chain: Sequence[SignedHead], heads: Mapping[int, Head]
) -> None:
    """Fetch the transcripts' documents with the roster's, and draw when each bucket is fetched. `heads`: of each slot's
    transcript."""
    bodies: dict[int, bytes] = {}
    for neighbours in runs_of(_with_roster(chain, heads)):
        numbers, wanted = zip(*neighbours, strict=True)
        bodies |= zip(numbers, await exchanges.bodies(study, wanted), strict=True)
    documents = _read(study, chain, heads, bodies)
    secrets = run.secrets(study)
    fetches = await off_loop(_fetches, study, heads, documents, secrets)
    closed, ends = transcript_interval(study.manifest)
    for fetch in fetches:
        due = draw_spread(closed, ends, run.now(), run.tools.random_bytes)
        run.memory = run.memory.with_time(fetch, due)
    run.memory = evolve(run.memory, runs=(), digests=fetches)


async def fetch_digests(run: StudyRun, exchanges: Exchanges, study: SentStudy, job: FetchDigests) -> None:
    """Of a bucket keep the digest of the own packet alone, if it is the bucket of the own tag."""
    bucket = await exchanges.bucket(study, job.head, job.document, job.bucket)
    try:
        digests = await off_loop(read_digests_bucket, job.document, bucket.body)
    except Malformed:
        chain = await heads_off_loop(lambda: study.chain)
        body = job.document.to_bytes()
        raise BadlyBucketed(bad_bucket_of(study.manifest, chain, [body], job.bucket, (bucket,))) from None
    demand_full(job.document, len(digests))
    slot = job.document.part
    if job.own:
        own = [packet for packet in run.store.outbox(study.study) if packet.slot == slot and packet.digest is not None]
        run.listed |= {packet.survey: digests & {packet.digest} for packet in own if packet.digest is not None}
    run.memory = run.memory.with_done(job)


def _with_roster(chain: Sequence[SignedHead], heads: Mapping[int, Head]) -> dict[int, Head]:
    """The heads of the roster and of the transcripts by number, with all between them: one exchange brings them.
    Without these where they are long, which an honest aggregator's are not."""
    roster = _roster(chain)
    needed = {head.number: head for head in (roster, *heads.values())}
    together = needed | {signed.head.number: signed.head for signed in chain[roster.number : max(needed)]}
    return together if sum(head.length for head in together.values()) <= MOST_BETWEEN else needed


def _roster(chain: Sequence[SignedHead]) -> Head:
    return next(signed.head for signed in chain if signed.head.kind == "roster")


def _read(
    study: SentStudy, chain: Sequence[SignedHead], heads: Mapping[int, Head], bodies: Mapping[int, bytes]
) -> dict[int, BucketDocument]:
    """The transcripts' documents by slot, none of more packets than the roster has members."""
    try:
        members = parse_bucket_document(bodies[_roster(chain).number], study.study, "roster", 0).count
        documents = {
            slot: parse_bucket_document(bodies[head.number], study.study, "transcript", slot)
            for slot, head in heads.items()
        }
    except Malformed:
        raise Distrust(say("a signed transcript is not what it must be; nothing more is fetched")) from None
    check_packets({slot: document.count for slot, document in documents.items()}, members)
    return documents


def _fetches(
    study: SentStudy, heads: Mapping[int, Head], documents: Mapping[int, BucketDocument], secrets: StudySecrets
) -> tuple[FetchDigests, ...]:
    credential, fetches = credential_of(study, secrets), list[FetchDigests]()
    for slot, document in sorted(documents.items()):
        own, *others = buckets_of_tag(document, pseudonym(credential, tag_context(study.manifest, slot)), secrets)
        fetches += [FetchDigests(heads[slot], document, bucket, bucket == own) for bucket in (own, *others)]
    return tuple(fetches)
