"""Fetching what closed the enrolment, having it checked, and evaluating the features once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from anon.credential import pseudonym
from anon.documents import SignedHead, find
from anon.errors import Malformed, Refused, RejectedProof
from anon.protocols.histogram.tables import slot_context
from anon.study.manifest import Manifest
from peer.checks import (
    Bodies,
    NotEnrolled,
    check_membership,
    tables_of,
)
from peer.data.features import Snapshot, snapshot
from peer.errands import FETCH_FAULTS, Errands, Grounds, Later, documents_of, packets_in, surveys_in
from peer.protocols.registry import half_of
from peer.records import Study, Verified
from peer.schedule import (
    draw_fetch_time,
    evaluation_allowance,
)
from peer.secrets import StudySecrets
from peer.session import Event, State
from peer.store import Covering, Scheduled


class Checking(Errands):
    """Errands between closing and the first window."""

    def _fetch_time(self, study: Study) -> float:
        table = study.manifest.timetable
        if study.state is State.ENROLLED:
            return study.due
        return self._drawn(
            "verify",
            lambda: draw_fetch_time(table.enrol_closes, table.settled, self._tools.now(), self._tools.random_bytes),
        )

    async def _verify(self, study: Study) -> None:
        manifest = study.manifest
        if self._tools.now() >= last_chance(manifest):
            return self._tools.store.end(
                self._study, Event.WINDOWS_PASSED, "the windows passed before the checks could be made; nothing is sent"
            )
        chain = await self._chain(study)
        if find(chain, "abandoned") is not None:
            return self._tools.store.end(
                self._study, Event.STUDY_ABANDONED, "too few enrolled; nothing is sent, the budget is back"
            )
        bodies = await self._membership_bodies(study, chain)
        secrets = self._secrets(study)
        try:
            verified, packets, missed, record = await self._checked(study, chain, bodies, secrets)
            cover = self._first_dummies(manifest, verified.draws)
        except NotEnrolled as absent:
            event = Event.ENROLMENT_REFUSED if study.state is State.CONSENTED else Event.CHECK_FAILED
            return self._tools.store.end(self._study, event, str(absent))
        except (Malformed, Refused, RejectedProof) as fault:
            return self._tools.store.end(self._study, Event.CHECK_FAILED, str(fault))
        self._tools.store.verified(self._study, verified, record.to_bytes(), packets, missed, cover)
        return self._settle_if_done(self._tools.store.study(self._study))

    async def _membership_bodies(self, study: Study, chain: Sequence[SignedHead]) -> Bodies:
        heads = [find(chain, kind) for kind in ("roster", "seed", "credentials")]
        present = [head for head in heads if head is not None]
        if len(present) < len(heads):
            raise Later
        client = self._tools.client(study)
        try:
            return Bodies(*[await client.body(head) for head in present])
        except FETCH_FAULTS:
            raise Later from None

    async def _checked(
        self, study: Study, chain: tuple[SignedHead, ...], bodies: Bodies, secrets: StudySecrets
    ) -> tuple[Verified, list[Scheduled], list[int], Snapshot]:
        manifest = study.manifest
        demand_order(chain)
        member = check_membership(
            study.manifest_bytes, manifest, bodies, secrets, study.minimum_cohort, study.consented
        )
        tags = [
            pseudonym(member.credential, slot_context(study.study, number)) for number in range(manifest.packets)
        ]
        draws = half_of(manifest).drawn_surveys(manifest, member.seed, tags)
        verified = Verified(chain, member.roster_digest, member.seed, member.signature, draws)
        allowance = evaluation_allowance(manifest.timetable)
        ready = self._times["ready"] = self._tools.now() + allowance
        record = await self._evaluated(study, allowance)
        grounds = Grounds(manifest, secrets, member.credential, member.seed, record)
        asked = [(slot, survey) for slot, survey in enumerate(draws) if self._can_wait_for_none(manifest, survey)]
        packets, missed = self._released(grounds, asked, ready)
        return verified, packets, missed, record

    def _can_wait_for_none(self, manifest: Manifest, survey: int) -> bool:
        """With cover traffic a window is filled all at once, when the documents that anybody needs in it are there."""
        window = manifest.survey(survey).window
        return not manifest.cover.connections or not documents_of(manifest, surveys_in(manifest, window))

    def _first_dummies(self, manifest: Manifest, draws: Sequence[int]) -> list[Covering]:
        """The cover of every window that waits for no document."""
        return [
            one
            for window in manifest.windows
            if manifest.cover.connections and not documents_of(manifest, surveys_in(manifest, window))
            for one in self._dummies(manifest, window, packets_in(manifest, draws, window), self._times["ready"])
        ]

    async def _evaluated(self, study: Study, seconds: float) -> Snapshot:
        """All features at one instant, the study's own, unrelated to when packets leave: now, or when the first backup
        was taken, so that all copies of a home answer alike."""
        if study.snapshot is not None:
            return Snapshot.from_bytes(study.snapshot)
        return await asyncio.to_thread(evaluated, study.manifest, self._tools.data_path, seconds)


def evaluated(manifest: Manifest, data_path: Path, seconds: float) -> Snapshot:
    """Every feature and the label of a study, from the owner's tables as they are now. What is not known after
    `seconds` counts as missing."""
    as_of = manifest.timetable.enrol_closes
    return snapshot(data_path, manifest.features, manifest.label, as_of, tables=tables_of(manifest), seconds=seconds)


def last_chance(manifest: Manifest) -> float:
    """The last instant at which any packet of the study could still be made, in unix seconds."""
    return max(survey.window.closes for survey in manifest.surveys) - manifest.timetable.margin


def demand_order(chain: Sequence[SignedHead]) -> None:
    """The roster was signed before the seed was revealed, the seed before the credentials. Raises `Refused`."""
    numbers = [head.number for kind in ("roster", "seed", "credentials") if (head := find(chain, kind)) is not None]
    if numbers != sorted(numbers):
        raise Refused("the aggregator revealed its random value before it signed the roster; nothing is sent")
