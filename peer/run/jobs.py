"""The jobs of a study as values, and what a runner remembers of them. Pure; `peer.run.plan` says when each is due."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import evolve, field

from anon.study.manifest import Window
from anon.transparency.buckets import BucketDocument
from anon.transparency.closing import Bodies, BucketPair, ClosingDocuments
from anon.transparency.documents import Head, SignedHead
from anon.values import frozen
from peer.rules.schedule import RandomBytes
from peer.store.records import PacketKey


@frozen
class Enrol:
    """Deliver the stored enrolment."""


@frozen
class Withdraw:
    """Deliver the withdrawal. It may not wait long: it is due before enrolment closes."""


@frozen
class Verify:
    """Fetch the closed roster, have everything checked, and evaluate the features."""


@frozen
class FetchMembers:
    """Fetch one bucket of the roster, and that of the same number of the credentials."""

    number: int


@frozen
class Begin:
    """Have the buckets of roster and credentials checked, and evaluate the features; or fetch again what did not come.
    """


@frozen
class Look:
    """Look for a roster before it can be there: whoever finds one has a clock that is behind (`peer.run.clock`)."""


@frozen
class GoOnWithout:
    """Make the first packets of an evaluation that was broken off: what is not known counts as missing."""


@frozen
class Answer:
    """Fetch what any survey of the window needs, and journal packets and what fills the window up."""

    window: Window


@frozen
class Miss:
    """Journal that the window passed before its packets could be made."""

    window: Window


@frozen
class CheckHeads:
    """One of the looks at the heads between the checks and the first packet of a window."""

    window: Window
    number: int


@frozen
class CheckBefore:
    """The look at the heads before a packet leaves at this time."""

    slot: int
    send_at: float
    round: int = 0

    @property
    def key(self) -> PacketKey:
        """The packet's place within its study."""
        return PacketKey(self.round, self.slot)


@frozen
class Send:
    """Let a packet leave, at the time that was drawn for it."""

    slot: int
    send_at: float
    round: int = 0

    @property
    def key(self) -> PacketKey:
        """The packet's place within its study."""
        return PacketKey(self.round, self.slot)


@frozen
class Settle:
    """Every slot is decided, and none is queued."""


@frozen
class ChooseTranscripts:
    """See which transcripts are published, fetch them, and look for the own packets; draw when buckets are fetched."""


@frozen
class FetchDigests:
    """Fetch one bucket of a slot's transcript. `own`: it is that of the own tag, not a decoy."""

    head: Head
    document: BucketDocument
    bucket: int
    own: bool


@frozen
class Receive:
    """Read the whole board once more, for the results that are this member's alone."""


@frozen
class Conclude:
    """All transcripts are here, or of each the buckets that were drawn."""


@frozen
class GiveUpTranscripts:
    """The transcripts were not published in time."""


Job = (
    Enrol | Withdraw | Verify | FetchMembers | Begin | Look | GoOnWithout | Answer | Miss
    | CheckHeads | CheckBefore | Send | Settle
    | ChooseTranscripts | FetchDigests | Receive | Conclude | GiveUpTranscripts
)
YIELDING = (
    Verify, FetchMembers, Begin, Look, Answer, CheckHeads, CheckBefore, Send,
    ChooseTranscripts, FetchDigests, Receive,
)  # fmt: skip
"""Jobs at random times of their own, which are drawn again when they fell due while another job was under way."""


@frozen
class BucketOpening:
    """The end of an enrolment. `numbers`: the own bucket and its decoys;
    `opened`: those that are here. `begins`: the time at which the peer goes on if all are, drawn before their fetches.
    """

    chain: tuple[SignedHead, ...]
    bodies: Bodies
    documents: ClosingDocuments
    numbers: tuple[int, ...]
    begins: float
    opened: Mapping[int, BucketPair] = field(factory=dict)

    @property
    def lacking(self) -> list[int]:
        """The numbers of those that are not here yet."""
        return [number for number in self.numbers if number not in self.opened]


@frozen
class Retry:
    """How often a job brought nothing, and when it is tried again at the earliest."""

    failures: int
    not_before: float


@frozen
class RunnerMemory:
    """The memory of a runner about a study. All of it may be lost: times are drawn anew, checks made again.

    `drawn`: random times. `done`: looks and fetches that succeeded. `digests`: the buckets of transcripts to fetch,
    once their documents are here; None before. `opening`: those of roster and credentials, where there are several.
    `last`, `ended`: the last job and its end. `ready`: the end of the evaluation's allowance.
    """

    drawn: Mapping[Job, float] = field(factory=dict)
    retries: Mapping[Job, Retry] = field(factory=dict)
    done: frozenset[Job] = frozenset()
    digests: tuple[FetchDigests, ...] | None = None
    opening: BucketOpening | None = None
    last: Job | None = None
    ended: float = 0.0
    ready: float = 0.0

    def with_time(self, job: Job, time: float) -> RunnerMemory:
        """The time of a job is drawn."""
        return evolve(self, drawn={**self.drawn, job: time})

    def without_time(self, job: Job) -> RunnerMemory:
        """The next time of a job is drawn anew."""
        return evolve(self, drawn={known: time for known, time in self.drawn.items() if known != job})

    def with_done(self, job: Job) -> RunnerMemory:
        """The look or fetch brought what it was for."""
        return evolve(self, done=self.done | {job})

    def with_end(self, job: Job, ended: float) -> RunnerMemory:
        """A job was under way until now."""
        return evolve(self, last=job, ended=ended)

    def with_success(self, job: Job) -> RunnerMemory:
        """A job's failures are forgotten."""
        if job not in self.retries:
            return self
        return evolve(self, retries={known: retry for known, retry in self.retries.items() if known != job})

    def with_failure(self, job: Job, not_before: float) -> RunnerMemory:
        """A job brought nothing, and is tried again."""
        return evolve(self, retries={**self.retries, job: Retry(self.failures(job) + 1, not_before)})

    def failures(self, job: Job) -> int:
        """How often the job brought nothing since it last brought something."""
        return self.retries[job].failures if job in self.retries else 0


@frozen
class DueJob:
    """A job and when it is due. `held_up`: it fell due while another was under way, and is not done but drawn again."""

    job: Job
    due: float
    held_up: bool = False


@frozen
class TimeDraw:
    """A random time that a job still lacks; `draw` gives it."""

    job: Job
    draw: Callable[[RandomBytes], float]
