"""The context of a study's jobs: the tools of this peer, and what is known of the study while it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import field

from anon.credential import Credential
from anon.protocols.sortition import has_letters
from anon.study.manifest import Manifest
from anon.transparency.closing import CheckedLists
from anon.values import frozen
from peer.data.evaluate import Evaluate
from peer.network.client import AggregatorClient
from peer.rules.checks import check_credential
from peer.rules.lifecycle import Event
from peer.rules.study_secrets import StudySecrets, Vault
from peer.run.clock import SteadyClock, StudyClock
from peer.run.departures import DepartureTimes
from peer.run.jobs import RunnerMemory
from peer.run.plan import PlanInputs
from peer.store.home import Settings
from peer.store.records import MemberStudy, OpenStudy, OutboxEntry, Study
from peer.store.store import Store


@frozen
class RunContext:
    """The tools of a runner."""

    store: Store
    data_path: Path
    evaluate: Evaluate
    vault: Vault
    settings: Settings
    client: Callable[[Study], AggregatorClient]
    now: Callable[[], float]
    random_bytes: Callable[[int], bytes]
    clock: SteadyClock | None = None
    """The clock that `now` reads, where it watches for jumps."""
    checked: CheckedLists = field(factory=CheckedLists)


class Later(Exception):
    """The other side has not published or answered yet; the job is tried again after a random while."""


class StudyRun:
    """One study while it runs. Holds nothing that may not be lost."""

    def __init__(self, study: bytes, tools: RunContext) -> None:
        clock = tools.clock
        self.study = study
        self.tools = tools
        self.memory = RunnerMemory()
        self.now = StudyClock(tools.now, lambda: 0.0 if clock is None else clock.corrected)
        self.listed: dict[int, frozenset[bytes]] = {}
        """The digests of own packets in the transcripts that were fetched, by slot."""

    @property
    def store(self) -> Store:
        """The peer's store."""
        return self.tools.store

    def inputs(self, outbox: Sequence[OutboxEntry]) -> PlanInputs:
        """Everything that the plan asks for, beside the study."""
        return PlanInputs(outbox, self.memory, self.now(), self.tools.settings)

    def departure_times(self, manifest: Manifest, since: float | None = None) -> DepartureTimes:
        """Draws times at which packets leave, from now or from a later instant on."""
        now = self.now() if since is None else since
        return DepartureTimes(manifest, now, self.now.behind, self.tools.random_bytes)

    def secrets(self, study: OpenStudy) -> StudySecrets:
        """The study's secrets, opened."""
        return StudySecrets.from_bytes(self.tools.vault.open(study.secrets))

    def settled_events(self) -> tuple[Event, ...]:
        """The events of a study when every slot is decided and nothing is queued."""
        if self.tools.settings.check_inclusion or has_letters(self.store.study(self.study).manifest):
            return (Event.SLOTS_SETTLED,)
        return (Event.SLOTS_SETTLED, Event.INCLUSION_SETTLED)


def credential_of(study: MemberStudy, secrets: StudySecrets) -> Credential:
    """The credential that the checks accepted, checked anew."""
    return check_credential(study.study, study.manifest, study.roster_digest, study.seed, study.credential, secrets)
