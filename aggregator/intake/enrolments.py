"""Enrolment as it happens: a batch is opened and proven off the event loop, then decided in one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from aggregator.intake.batcher import Batcher
from aggregator.intake.enrolment_jobs import open_enrolments
from aggregator.intake.workers import Workers
from aggregator.rules.enrol import Applicant, decide_enrolment, decide_withdrawal, demand_size, open_withdrawal
from aggregator.rules.enrolled import KnownEnrolments
from aggregator.rules.lengths import largest_cohort
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
        self._batcher: Batcher[tuple[bytes, float], str] = Batcher(self._decide)
        self.taken = False
        self._most: int | None = None

    async def enrol(self, sealed_untrusted: bytes) -> str:
        """The answer's word."""
        arrived = self._now()
        try:
            demand_size(sealed_untrusted, self._manifest.packets)
            return await self._batcher.submit((sealed_untrusted, arrived))
        except PacketRefused as turned:
            return turned.word

    async def withdraw(self, sealed_untrusted: bytes) -> str:
        """The answer's word."""
        arrived = self._now()
        try:
            key = open_withdrawal(sealed_untrusted, self._opener, self._study, self._manifest.packets)
            async with self._store.change(self._study, "withdrawal") as change:
                standing = (await change.known({key}, ())).standing(key, b"")
                await self._look_at_the_end(change)
                if decide_withdrawal(standing, self._closed(arrived), await change.withdrawn()):
                    await change.withdraw(key)
        except PacketRefused as turned:
            return turned.word
        return WITHDRAWN

    async def close(self) -> None:
        """Answer everybody who came in time; afterwards nobody is admitted or leaves, whatever the clock says."""
        await self._batcher.drain()
        # First those who came in time; then, refused, those who came while these were answered.
        self.taken = True
        await self._batcher.drain()

    async def stop(self) -> None:
        """End the batcher's tasks."""
        await self._batcher.close()

    async def _look_at_the_end(self, change: EnrolTransaction) -> None:
        """Another process may have taken the roster."""
        self.taken = self.taken or await change.frozen_until() >= self._manifest.timetable.enrol_closes

    def _closed(self, arrived: float) -> bool:
        return self.taken or arrived >= self._manifest.timetable.enrol_closes

    async def _decide(self, batch: Sequence[tuple[bytes, float]]) -> list[str]:
        posts = [sealed for sealed, _ in batch]
        opener, packets = self._opener, self._manifest.packets
        opened = await self._workers.run(open_enrolments, opener.secret, self._study, packets, posts)
        proven = [applicant.enrolment for applicant in opened if isinstance(applicant, Applicant)]
        if not proven:
            return [str(word) for word in opened]
        if self._most is None:
            self._most = await asyncio.to_thread(largest_cohort, self._manifest)
        most = self._most
        async with self._store.change(self._study, "enrolments") as change:
            await self._look_at_the_end(change)
            keys, invites = {enrolment.key for enrolment in proven}, {enrolment.invite for enrolment in proven}
            known = await change.known(keys, invites)
            words = [
                applicant if isinstance(applicant, str) else self._decide_one(known, most, applicant, arrived)
                for applicant, (_, arrived) in zip(opened, batch, strict=True)
            ]
            await change.store(known.fresh)
        return words

    def _decide_one(self, known: KnownEnrolments, most: int, applicant: Applicant, arrived: float) -> str:
        enrolment = applicant.enrolment
        standing = known.standing(enrolment.key, enrolment.invite)
        try:
            fresh = decide_enrolment(applicant, standing, self._manifest.cohort, most, self._closed(arrived))
        except PacketRefused as turned:
            return turned.word
        if fresh:
            known.admit(applicant.stored)
        return ACCEPTED
