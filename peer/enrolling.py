"""Writing an enrolment, and delivering the stored one, or the withdrawal."""

from __future__ import annotations

from anon.answers import ACCEPTED, BUSY, WITHDRAWN
from anon.invite import invite_hash
from anon.messages import Enrolment, seal, sign_enrolment
from anon.study.manifest import Manifest
from peer.errands import Errands, Later
from peer.records import Study
from peer.schedule import (
    draw_fetch_time,
)
from peer.secrets import StudySecrets
from peer.session import Event
from peer.words import said


class Enrolling(Errands):
    """Errands before the roster closes."""

    async def _enrol(self, study: Study) -> None:
        assert study.enrolment is not None
        word = await self._word(self._tools.client(study).enrol(study.enrolment))
        if word == ACCEPTED:
            table = study.manifest.timetable
            due = draw_fetch_time(table.enrol_closes, table.settled, self._tools.now(), self._tools.random_bytes)
            self._tools.store.enrolled(self._study, due)
        elif word == BUSY:
            raise Later
        else:
            self._tools.store.end(self._study, Event.ENROLMENT_REFUSED, f"not admitted; {said(word)}")

    async def _withdraw(self, study: Study) -> None:
        closes = study.manifest.timetable.enrol_closes
        if study.withdrawal is None or self._tools.now() >= closes:
            return self._tools.store.settle_withdrawal(self._study, "left; enrolment had closed, nothing is sent")
        word = await self._word(self._tools.client(study).withdraw(study.withdrawal))
        if word == BUSY:
            raise Later
        reason = "left" if word == WITHDRAWN else f"left; {said(word)}"
        return self._tools.store.settle_withdrawal(self._study, reason)


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
    return seal(sign_enrolment(enrolment, secrets.signing_key), manifest.sealing_key)
