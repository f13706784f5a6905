"""One study on one peer: the job that is due next, and doing it. The plan says which (`peer.run.plan`).

A step does one due job and is safe to be killed in: whatever matters was committed before, and what was not committed
did not leave. Times that only spread load or hide a pattern are drawn again after a restart.
"""

from __future__ import annotations

from anon.errors import Conflict, NoRoom, Unreachable
from peer.rules.checks import check_address
from peer.rules.distrust import Distrust
from peer.rules.lifecycle import Event, Unlisted
from peer.run.context import Later, RunContext, StudyRun
from peer.run.enrol import enrol, withdraw
from peer.run.exchanges import Exchanges
from peer.run.inclusion import choose_transcripts, conclude, fetch_digests, give_up
from peer.run.jobs import (
    Answer,
    Begin,
    CheckBefore,
    CheckHeads,
    ChooseTranscripts,
    Conclude,
    DueJob,
    Enrol,
    FetchDigests,
    FetchMembers,
    GiveUpTranscripts,
    GoOnWithout,
    Job,
    Look,
    Miss,
    Receive,
    Send,
    Settle,
    Verify,
    Withdraw,
)
from peer.run.packets.making import answer, go_on_without, miss, settle_if_done
from peer.run.plan import next_job, retry_at
from peer.run.send import check_before, check_heads, put_off, send
from peer.run.verify import begin, fetch_again, fetch_members, look, verify
from peer.store.manifests import ManifestRefused
from peer.store.records import (
    ConsentedStudy,
    EndedStudy,
    EnrolledStudy,
    EvaluatingStudy,
    LeavingStudy,
    MemberStudy,
    SentStudy,
    Study,
)
from peer.threads import off_loop


class StudyRunner:
    """Steps one study."""

    def __init__(self, study: bytes, tools: RunContext) -> None:
        self._study = study
        self._tools = tools
        self._run = StudyRun(study, tools)
        self._exchanges = Exchanges(self._run)

    async def step(self) -> float | None:
        """Do what is due, one thing at most; the unix time when the next is, or None when the study is over.

        While the study or the home is paused nothing is done, and the next is due at the pause's end."""
        study = self._tools.store.study(self._study)
        if isinstance(study, EndedStudy):
            return None
        if not study.manifests.hold(self._study):
            # On the loop a long manifest would hold up the packets of other studies.
            await off_loop(study.manifests.of, self._study, study.manifest_bytes)
        try:
            check_address(study.manifest, study.address)
        except (Distrust, ManifestRefused) as fault:
            event = Event.WITHDRAWAL_SETTLED if isinstance(study, LeavingStudy) else Event.CHECK_FAILED
            self._tools.store.end(self._study, event, str(fault))
            return self._tools.now()
        until = self._tools.store.paused_until(self._study)
        if until > self._tools.now() and not isinstance(study, LeavingStudy):  # a withdrawal is the owner's word too
            return until
        self._exchanges.tell()
        due_job = self._next(study)
        due = due_job.due - self._run.now.behind  # by the home's clock, as all that the caller is told
        if due > self._tools.now():
            return due
        await self._do(study, due_job)
        return self._tools.now()

    def tell_fault(self, fault: str) -> None:
        """Keep for the owner what this study cannot go on for; empty when it goes on."""
        self._exchanges.tell_fault(fault)

    def _next(self, study: Study) -> DueJob:
        """The next job, once every random time that it hangs on is drawn."""
        outbox = self._tools.store.outbox_entries(self._study) if isinstance(study, MemberStudy) else []
        while isinstance(found := next_job(study, self._run.inputs(outbox)), tuple):
            for wish in found:
                self._run.memory = self._run.memory.with_time(wish.job, wish.draw(self._tools.random_bytes))
        return found

    async def _do(self, study: Study, due_job: DueJob) -> None:
        """Perform a job, and keep what came of it."""
        job = due_job.job
        try:
            await self._perform(study, due_job)
            self._run.memory = self._run.memory.with_success(job)
        except (Later, Unreachable):
            self._try_later(study, job)
        except NoRoom:  # what was exchanged is not kept: it is not asked for again at every look at the disk
            self._try_later(study, job)
            raise
        except Distrust as fault:
            self._tools.store.end(self._study, Event.CHECK_FAILED, str(fault), await off_loop(fault.evidence))
        except (Unlisted, Conflict):
            if self._tools.store.study(self._study).state is study.state:
                raise

    def _try_later(self, study: Study, job: Job) -> None:
        failures, now = self._run.memory.failures(job), self._run.now()
        not_before = retry_at(study.manifest, job, failures, now, self._tools.random_bytes)
        self._run.memory = self._run.memory.with_failure(job, not_before)

    async def _perform(self, study: Study, due_job: DueJob) -> None:
        """Do the job, or what is done in its place when it fell due while another one was under way."""
        job = due_job.job
        if due_job.held_up:
            if isinstance(job, CheckBefore | Send) and isinstance(study, MemberStudy):
                return put_off(self._run, study, job)
            if isinstance(job, Begin):
                return fetch_again(self._run, study)
            raise Later
        try:
            await perform(self._run, self._exchanges, study, job)
        finally:
            self._run.memory = self._run.memory.with_end(job, self._run.now())


async def perform(run: StudyRun, exchanges: Exchanges, study: Study, job: Job) -> None:
    """Do a job of the study's state. Raises `Later`, `Distrust`."""
    match job, study:
        case Enrol(), ConsentedStudy() as consented:
            await enrol(run, exchanges, consented)
        case Verify(), (ConsentedStudy() | EnrolledStudy()) as joined:
            await verify(run, exchanges, joined)
        case FetchMembers() as fetch, (ConsentedStudy() | EnrolledStudy()) as joined:
            await fetch_members(run, exchanges, joined, fetch)
        case Begin(), (ConsentedStudy() | EnrolledStudy()) as joined:
            await begin(run, joined)
        case Look(), EnrolledStudy() as enrolled:
            await look(run, exchanges, enrolled)
        case Withdraw(), LeavingStudy() as leaving:
            await withdraw(run, exchanges, leaving)
        case GoOnWithout(), EvaluatingStudy() as evaluating:
            await go_on_without(run, evaluating)
        case (Answer() | Miss() | CheckHeads() | CheckBefore() | Send() | Settle()) as due, MemberStudy() as member:
            await _collect(run, exchanges, member, due)
        case ChooseTranscripts(), SentStudy() as sent:
            await choose_transcripts(run, exchanges, sent)
        case FetchDigests() as fetch, SentStudy() as sent:
            await fetch_digests(run, exchanges, sent, fetch)
        case Receive(), SentStudy() as sent:
            from peer.run.packets.letters import receive  # late: studies without letters load nothing of them

            await receive(run, exchanges, sent)
        case Conclude(), SentStudy() as sent:
            conclude(run, sent, "")
        case GiveUpTranscripts(), SentStudy() as sent:
            give_up(run, sent)
        case _:
            raise Unlisted(f"{type(job).__name__} is no job of a study that is {study.state}")


async def _collect(
    run: StudyRun,
    exchanges: Exchanges,
    study: MemberStudy,
    job: Answer | Miss | CheckHeads | CheckBefore | Send | Settle,
) -> None:
    match job:
        case Answer():
            await answer(run, exchanges, study, job.window)
        case Miss():
            await miss(run, study, job.window)
        case CheckHeads():
            await check_heads(run, exchanges, study, job)
        case CheckBefore():
            await check_before(run, exchanges, study, job)
        case Send():
            await send(run, exchanges, study, job)
        case Settle():
            settle_if_done(run, study.study)
