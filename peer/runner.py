"""One study on one peer: what is due next, and doing it. All waiting and fetching is in its parts; the rules elsewhere.

A step does one due thing and is safe to be killed in: whatever matters was committed before, and what was not
committed did not leave. Times that only spread load or hide a pattern are drawn again after a restart.
"""

from __future__ import annotations

from functools import partial

from anon.errors import Conflict, Unreachable
from peer.checking import Checking
from peer.checks import (
    Distrust,
    Equivocation,
    check_address,
)
from peer.collecting import Collecting
from peer.enrolling import Enrolling
from peer.errands import WITHDRAW, Job, Later
from peer.inclusion import Inclusion
from peer.records import Study
from peer.session import LAST, Event, State, Unlisted


class StudyRunner(Enrolling, Checking, Collecting, Inclusion):
    """Steps one study."""

    async def step(self) -> float | None:
        """Do what is due, one thing at most; the unix time when the next is, or None when the study is over.

        While the study or the home is paused nothing is done, and the next is due at the pause's end."""
        study = self._tools.store.study(self._study)
        if study.state in LAST:
            return None
        try:
            check_address(study.manifest, study.address)
        except Distrust as fault:
            leaving = study.state is State.LEAVING
            event = Event.WITHDRAWAL_SETTLED if leaving else Event.CHECK_FAILED
            self._tools.store.end(self._study, event, str(fault))
            return self._tools.now()
        until = self._tools.store.paused_until(self._study)
        if until > self._tools.now() and study.state is not State.LEAVING:  # a withdrawal is the owner's word too
            return until
        job = min(self._jobs(study), key=lambda one: one.due)
        now = self._tools.now()
        if job.due > now:
            return job.due
        try:
            await job.action()
            self._failures.pop(job.name, None)
        except (Later, Unreachable):
            self._postpone(job.name, study.manifest)
        except Equivocation as caught:
            self._tools.store.end(self._study, Event.CHECK_FAILED, str(caught), caught.evidence())
        except Distrust as fault:
            self._tools.store.end(self._study, Event.CHECK_FAILED, str(fault))
        except (Unlisted, Conflict):
            if self._tools.store.study(self._study).state is study.state:
                raise
        return self._tools.now()

    def _jobs(self, study: Study) -> list[Job]:
        if study.state is State.CONSENTED and self._tools.now() < study.manifest.timetable.enrol_closes:
            return [self._job("enrol", study.due, partial(self._enrol, study))]
        if study.state in (State.CONSENTED, State.ENROLLED):
            return [self._job("verify", self._fetch_time(study), partial(self._verify, study))]
        if study.state is State.LEAVING:
            return [self._job(WITHDRAW, 0.0, partial(self._withdraw, study))]
        if study.state is State.CHECKED:
            return self._collecting_jobs(study)
        return [self._job("include", self._inclusion_time(study), partial(self._include, study))]
