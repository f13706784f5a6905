"""Writing an enrolment, and delivering the stored one, or the withdrawal."""

from __future__ import annotations

from anon.protocols import posts
from anon.study.manifest import Manifest
from anon.text.sentences import say
from anon.wire.invite import invite_hash
from anon.wire.messages import Enrolment, sign_enrolment
from anon.wire.replies import ACCEPTED, BUSY, WITHDRAWN
from anon.wire.reply_sentences import reply_sentence
from peer.rules.lifecycle import Event
from peer.rules.schedule import draw_fetch_time
from peer.rules.study_secrets import StudySecrets
from peer.run.context import Later, StudyRun
from peer.run.exchanges import Exchanges
from peer.store.records import ConsentedStudy, LeavingStudy


async def enrol(run: StudyRun, exchanges: Exchanges, study: ConsentedStudy) -> None:
    """Deliver the stored enrolment, and draw when to fetch the closed roster."""
    word = await exchanges.word(run.tools.client(study).enrol(study.enrolment))
    if word == ACCEPTED:
        table = study.manifest.timetable
        due = draw_fetch_time(table.enrol_closes, table.settled, run.now(), run.tools.random_bytes)
        run.store.record_enrolled(study.study, due)
    elif word == BUSY:
        raise Later
    else:
        run.store.end(study.study, Event.ENROLMENT_REFUSED, say("not admitted; {answer}", answer=reply_sentence(word)))


async def withdraw(run: StudyRun, exchanges: Exchanges, study: LeavingStudy) -> None:
    """Deliver the withdrawal, as long as enrolment is open."""
    if run.now() >= study.manifest.timetable.enrol_closes:
        return run.store.settle_withdrawal(study.study, say("you left; enrolment had closed, nothing is sent"))
    word = await exchanges.word(run.tools.client(study).withdraw(study.withdrawal))
    if word == BUSY:
        raise Later
    reason = say("you left") if word == WITHDRAWN else say("you left; {answer}", answer=reply_sentence(word))
    return run.store.settle_withdrawal(study.study, reason)


def sealed_enrolment(manifest: Manifest, secrets: StudySecrets) -> bytes:
    """Signed by the study key and sealed to the aggregator's, as it is stored and sent."""
    study = manifest.study_id
    enrolment = Enrolment(
        study,
        bytes(secrets.signing_key.verify_key),
        secrets.contribution,
        secrets.commitment.commitment_with_proof,
        invite_hash(study, secrets.invite_code),
    )
    return posts.sealed_enrolment(manifest, sign_enrolment(enrolment, secrets.signing_key))
