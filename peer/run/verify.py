"""Fetching what closed the enrolment, having it checked, and evaluating the features once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve

from anon.credential import Credential, pseudonym
from anon.errors import Malformed, Refused, RejectedProof
from anon.protocols.sortition import drawn_surveys, tag_context
from anon.queries import process
from anon.study.manifest import Manifest
from anon.text.sentences import say
from anon.transparency.closing import CLOSING, Bodies, BucketPair, read_closing
from anon.transparency.documents import Head, SignedHead, find
from anon.transparency.together import HeadGroup
from peer.rules.bucket_checks import buckets_of_key, check_membership
from peer.rules.checks import Membership, NotEnrolled, check_count
from peer.rules.distrust import Distrust
from peer.rules.lifecycle import Event
from peer.rules.schedule import draw_begin, evaluation_allowance
from peer.rules.study_secrets import StudySecrets
from peer.run.context import Later, StudyRun
from peer.run.exchanges import Exchanges
from peer.run.jobs import BucketOpening, FetchMembers, Look
from peer.run.packets.inputs import PacketInputs
from peer.run.packets.making import asked_at_first, first_cover, make_by_deadline, without_answers
from peer.store.records import ConsentedStudy, EnrolledStudy, Evaluation, JoinedStudy, Study, VerifiedEnrolment
from peer.threads import off_loop


async def look(run: StudyRun, exchanges: Exchanges, study: EnrolledStudy) -> None:
    """See whether a roster is there already, and by whose time."""
    await exchanges.look_at_clock(study)
    run.memory = run.memory.with_done(Look())


async def verify(run: StudyRun, exchanges: Exchanges, study: JoinedStudy) -> None:
    """Fetch what closed the enrolment, have it checked, and evaluate the features; where it has several buckets, draw
    when each of them is fetched, and when this peer goes on."""
    if _passed(run, study):
        return
    await process.start()
    chain, found = await exchanges.chain_with(study, HeadGroup.CLOSING)
    if find(chain, "abandoned") is not None:
        reason = say("too few enrolled; nothing is sent, the budget is back")
        return run.store.end(study.study, Event.STUDY_ABANDONED, reason)
    bodies = _membership_bodies(found)
    try:
        documents = await off_loop(read_closing, study.manifest_bytes, study.manifest, bodies)
        check_count(study.manifest, documents.roster.count, study.minimum_cohort)
    except (Malformed, Refused, RejectedProof) as fault:
        return run.store.end(study.study, Event.CHECK_FAILED, str(fault))
    numbers = buckets_of_key(documents.roster, run.secrets(study))
    opening = BucketOpening(chain, bodies, documents, numbers, 0.0, documents.opened)
    if not opening.lacking:
        return await _check(run, study, opening)
    run.memory = evolve(run.memory, opening=opening)
    fetch_again(run, study)


def fetch_again(run: StudyRun, study: Study) -> None:
    """Draw the next time at which this peer goes on if all buckets are here, and then when it fetches those that are
    not. Nothing of both follows from an answer."""
    opening = _opening(run)
    run.memory = evolve(
        run.memory,
        opening=evolve(opening, begins=draw_begin(study.manifest, run.now(), run.tools.random_bytes)),
        drawn={job: time for job, time in run.memory.drawn.items() if not isinstance(job, FetchMembers)},
        retries={
            job: evolve(retry, not_before=0.0) if isinstance(job, FetchMembers) else retry
            for job, retry in run.memory.retries.items()
        },
    )


async def fetch_members(run: StudyRun, exchanges: Exchanges, study: JoinedStudy, job: FetchMembers) -> None:
    """Fetch a bucket and keep it. Its number alone ties the fetch of the roster's to that of the credentials'."""
    opening = _opening(run)
    documents, heads = opening.documents, [find(opening.chain, "roster"), find(opening.chain, "credentials")]
    pair = BucketPair(*[
        await exchanges.bucket(study, head, document, job.number)
        for head, document in zip(heads, (documents.roster, documents.credentials), strict=True)
        if head is not None
    ])
    run.memory = evolve(run.memory, opening=evolve(opening, opened={**opening.opened, job.number: pair}))


async def begin(run: StudyRun, study: JoinedStudy) -> None:
    """Go on at the time that was drawn, without an exchange, if all buckets are here."""
    opening = _opening(run)
    if _passed(run, study):
        return
    if opening.lacking:
        return fetch_again(run, study)
    await _check(run, study, opening)


def _opening(run: StudyRun) -> BucketOpening:
    if run.memory.opening is None:
        raise Later
    return run.memory.opening


def _passed(run: StudyRun, study: JoinedStudy) -> bool:
    """True if no packet could leave any more: the study is over then."""
    passed = run.now() + evaluation_allowance(study.manifest.timetable) >= last_chance(study.manifest)
    if passed:
        reason = say("the windows passed before the checks could be made; nothing is sent")
        run.store.end(study.study, Event.WINDOWS_PASSED, reason)
    return passed


async def _check(run: StudyRun, study: JoinedStudy, opening: BucketOpening) -> None:
    secrets = run.secrets(study)
    try:
        member, verified = await _checked(run, study, opening, secrets)
    except NotEnrolled as absent:
        event = Event.ENROLMENT_REFUSED if isinstance(study, ConsentedStudy) else Event.CHECK_FAILED
        return run.store.end(study.study, event, str(absent))
    except Distrust:  # the runner ends the study, and keeps the evidence
        raise
    except (Malformed, Refused, RejectedProof) as fault:
        return run.store.end(study.study, Event.CHECK_FAILED, str(fault))
    run.memory = evolve(run.memory, opening=None)
    return await _evaluate(run, study, verified, secrets, member.credential)


async def _evaluate(
    run: StudyRun, study: JoinedStudy, verified: VerifiedEnrolment, secrets: StudySecrets, credential: Credential
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


def _membership_bodies(found: Mapping[Head, bytes]) -> Bodies:
    if not found:
        raise Later
    return Bodies(*found.values())


async def _checked(
    run: StudyRun, study: JoinedStudy, opening: BucketOpening, secrets: StudySecrets
) -> tuple[Membership, VerifiedEnrolment]:
    manifest, chain = study.manifest, opening.chain
    demand_order(chain)
    member = await off_loop(
        check_membership,
        study.manifest_bytes,
        manifest,
        opening.bodies,
        opening.opened,
        chain,
        secrets,
        study.minimum_cohort,
        study.consented,
        run.tools.random_bytes,
        run.tools.checked,
    )
    draws = await off_loop(drawn, manifest, member)
    return member, VerifiedEnrolment(chain, member.roster_digest, member.seed, member.signature, draws)


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
