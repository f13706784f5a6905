"""Enrolment as it happens: proofs are checked off the event loop, then a batch is decided in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from aggregator.intake.batcher import Batcher
from aggregator.intake.crypto_jobs import verify_commitments
from aggregator.intake.workers import Workers
from aggregator.rules.enrol import Applicant, decide_enrolment, decide_withdrawal, open_enrolment, open_withdrawal
from aggregator.rules.refusal import PacketRefused
from aggregator.rules.unseal import StudyOpener
from aggregator.store.enrolments import EnrolStore, EnrolTransaction
from aggregator.store.studies import Clock
from anon.study.manifest import Manifest
from anon.wire.replies import ACCEPTED, WITHDRAWN


class EnrolmentIntake:
    """One study's admissions. It closes by the manifest's clock, and for good once the roster was taken."""

    def __init__(
        self, study: bytes, manifest: Manifest, opener: StudyOpener, store: EnrolStore, workers: Workers, now: Clock
    ) -> None:
        self._study = study
        self._manifest = manifest
        self._opener = opener
        self._store = store
        self._workers = workers
        self._now = now
        self._batcher: Batcher[tuple[Applicant, float], str] = Batcher(self._decide)
        self.taken = False

    async def enrol(self, sealed_untrusted: bytes) -> str:
        """The answer's word."""
        arrived = self._now()
        try:
            applicant = open_enrolment(sealed_untrusted, self._opener, self._study, self._manifest.packets)
            return await self._batcher.submit((applicant, arrived))
        except PacketRefused as turned:
            return turned.word

    async def withdraw(self, sealed_untrusted: bytes) -> str:
        """The answer's word."""
        arrived = self._now()
        try:
            key = open_withdrawal(sealed_untrusted, self._opener, self._study, self._manifest.packets)
            async with self._store.change(self._study, "withdrawal") as change:
                standing = await change.standing(key, b"")
                if decide_withdrawal(standing, self._closed(arrived), await change.withdrawn()):
                    await change.withdraw(key)
        except PacketRefused as turned:
            return turned.word
        return WITHDRAWN

    async def close(self) -> None:
        """Answer everybody who came in time; afterwards nobody is admitted or leaves, whatever the clock says."""
        await self._batcher.drain()
        self.taken = True
        await self._batcher.drain()

    async def stop(self) -> None:
        """End the batcher's tasks."""
        await self._batcher.close()

    def _closed(self, arrived: float) -> bool:
        return self.taken or arrived >= self._manifest.timetable.enrol_closes

    async def _decide(self, batch: Sequence[tuple[Applicant, float]]) -> list[str]:
        commitments = [applicant.enrolment.commitment for applicant, _ in batch]
        proven = await self._workers.run(verify_commitments, commitments, self._manifest.packets)
        async with self._store.change(self._study, "enrolments") as change:
            return [
                await self._decide_one(change, applicant, arrived) if holds else "rejected-proof"
                for (applicant, arrived), holds in zip(batch, proven, strict=True)
            ]

    async def _decide_one(self, change: EnrolTransaction, applicant: Applicant, arrived: float) -> str:
        enrolment = applicant.enrolment
        standing = await change.standing(enrolment.key, enrolment.invite)
        try:
            fresh = decide_enrolment(applicant, standing, self._manifest.cohort, self._closed(arrived))
        except PacketRefused as turned:
            return turned.word
        if fresh:
            await change.admit(applicant.stored, enrolment.invite, applicant.digest)
        return ACCEPTED
