"""Fetching what closed the enrolment, having it checked, and evaluating the features once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from attrs import evolve

from anon.credential import Credential, pseudonym
from anon.errors import Malformed, Refused, RejectedProof
from anon.protocols.sortition import drawn_surveys, tag_context
from anon.queries import process
from anon.study.manifest import Manifest
from anon.text.sentences import say
from anon.transparency.bucketed import has_buckets
from anon.transparency.closing import CLOSING, Bodies
from anon.transparency.closing_buckets import read_closing_documents
from anon.transparency.documents import SignedHead, find
from peer.rules.bucket_checks import BucketPair, buckets_of_key, check_membership_in_buckets, check_size
from peer.rules.checks import Membership, NotEnrolled, check_membership
from peer.rules.distrust import Distrust
from peer.rules.lifecycle import Event
from peer.rules.schedule import evaluation_allowance
from peer.rules.study_secrets import StudySecrets
from peer.run.context import Later, StudyRun
from peer.run.exchanges import Exchanges
from peer.run.jobs import Look
from peer.run.make_packets import PacketInputs, asked_at_first, first_cover, make_by_deadline, without_answers
from peer.store.records import Consented, Enrolled, Evaluation, Joined, Verified
from peer.threads import off_loop


async def look(run: StudyRun, exchanges: Exchanges, study: Enrolled) -> None:
    """See whether a roster is there already. The next look is drawn anew, whatever comes of this one."""
    run.memory = run.memory.without_time(Look())
    await exchanges.chain(study)


async def verify(run: StudyRun, exchanges: Exchanges, study: Joined) -> None:
    """Fetch what closed the enrolment, have it checked, and evaluate the features."""
    manifest = study.manifest
    if run.now() + evaluation_allowance(manifest.timetable) >= last_chance(manifest):
        reason = say("the windows passed before the checks could be made; nothing is sent")
        return run.store.end(study.study, Event.WINDOWS_PASSED, reason)
    await process.start()
    chain = await exchanges.chain(study)
    if find(chain, "abandoned") is not None:
        reason = say("too few enrolled; nothing is sent, the budget is back")
        return run.store.end(study.study, Event.STUDY_ABANDONED, reason)
    bodies = await _membership_bodies(exchanges, study, chain)
    secrets = run.secrets(study)
    try:
        opened = await _member_buckets(exchanges, study, chain, bodies, secrets)
        member, verified = await _checked(run, study, chain, bodies, opened, secrets)
    except NotEnrolled as absent:
        event = Event.ENROLMENT_REFUSED if isinstance(study, Consented) else Event.CHECK_FAILED
        return run.store.end(study.study, event, str(absent))
    except Distrust:  # the runner ends the study, and keeps the evidence
        raise
    except (Malformed, Refused, RejectedProof) as fault:
        return run.store.end(study.study, Event.CHECK_FAILED, str(fault))
    return await _evaluate(run, study, verified, secrets, member.credential)


async def _evaluate(
    run: StudyRun, study: Joined, verified: Verified, secrets: StudySecrets, credential: Credential
) -> None:
    """Make what is sent if nothing comes of the data, draw everything that will be seen, store that evaluating begins,
    and only then look at the data: all features at one instant, the study's own, unrelated to when packets leave. That
    is now, or when the first backup was taken, so that all copies of a home answer alike."""
    manifest, slots = study.manifest, asked_at_first(study.manifest, verified.draws)
    inputs = PacketInputs(manifest, secrets, credential, verified.seed, slots)
    try:
        otherwise = await off_loop(without_answers, inputs)
    except (Malformed, RejectedProof) as fault:
        return run.store.end(study.study, Event.CHECK_FAILED, str(fault))
    ready = run.now() + evaluation_allowance(manifest.timetable)
    run.memory = evolve(run.memory, ready=ready)
    send_times = run.departure_times(manifest, ready).times(slots)
    cover = first_cover(run, manifest, verified.draws, ready)
    evaluation = Evaluation(ready, send_times, otherwise.message)
    run.store.record_verified(study.study, verified, evaluation, cover)
    await make_by_deadline(run, inputs, otherwise, evaluation, study.snapshot)


async def _membership_bodies(exchanges: Exchanges, study: Joined, chain: Sequence[SignedHead]) -> Bodies:
    heads = [find(chain, kind) for kind in CLOSING]
    present = [head for head in heads if head is not None]
    if len(present) < len(heads):
        raise Later
    return Bodies(*[await exchanges.body(study, head) for head in present])


async def _member_buckets(
    exchanges: Exchanges, study: Joined, chain: Sequence[SignedHead], bodies: Bodies, secrets: StudySecrets
) -> dict[int, BucketPair] | None:
    """The own buckets of roster and credentials and the decoys, in the order of their numbers: nothing tells which is
    the own, and a retry asks for the same. None where the documents are whole."""
    roster, credentials = find(chain, "roster"), find(chain, "credentials")
    if roster is None or credentials is None or not has_buckets(study.manifest, chain):
        return None
    documents = read_closing_documents(study.manifest_bytes, study.manifest, bodies)
    check_size(study.manifest, documents.roster, study.minimum_cohort)
    opened = {}
    for number in buckets_of_key(documents.roster, secrets):
        entries = await exchanges.member_bucket(study, roster, documents.roster, number)
        issued = await exchanges.member_bucket(study, credentials, documents.credentials, number)
        opened[number] = BucketPair(entries, issued)
    exchanges.forget_buckets()
    return opened


async def _checked(
    run: StudyRun,
    study: Joined,
    chain: tuple[SignedHead, ...],
    bodies: Bodies,
    opened: dict[int, BucketPair] | None,
    secrets: StudySecrets,
) -> tuple[Membership, Verified]:
    manifest = study.manifest
    demand_order(chain)
    check = check_membership if opened is None else partial(_in_buckets, opened)
    member = await off_loop(
        check,
        study.manifest_bytes,
        manifest,
        bodies,
        chain,
        secrets,
        study.minimum_cohort,
        study.consented,
        run.tools.random_bytes,
        run.tools.checked,
    )
    draws = await off_loop(drawn, manifest, member)
    return member, Verified(chain, member.roster_digest, member.seed, member.signature, draws)


def _in_buckets(
    opened: dict[int, BucketPair], manifest_bytes: bytes, manifest: Manifest, bodies: Bodies, *rest: Any
) -> Membership:
    return check_membership_in_buckets(manifest_bytes, manifest, bodies, opened, *rest)


def drawn(manifest: Manifest, member: Membership) -> tuple[int, ...]:
    """The survey that each slot's pseudonym draws."""
    tags = [pseudonym(member.credential, tag_context(manifest, number)) for number in range(manifest.packets)]
    return drawn_surveys(manifest, member.seed, tags)


def last_chance(manifest: Manifest) -> float:
    """The last instant at which any packet of the study could still leave, in unix seconds."""
    return max(survey.window.closes for survey in manifest.surveys) - manifest.timetable.margin


def demand_order(chain: Sequence[SignedHead]) -> None:
    """The roster was signed before the seed was revealed, the seed before the credentials. Raises `Refused`."""
    numbers = [head.number for kind in CLOSING if (head := find(chain, kind)) is not None]
    if numbers != sorted(numbers):
        raise Refused(say("the aggregator revealed its random value before it signed the roster; nothing is sent"))
