"""A member of a study in a store of its own, as if all checks had passed: no exchange, no query, no signature."""

from __future__ import annotations

from pathlib import Path
from random import Random

from attrs import define, evolve, field

from anon.credential import Credential
from anon.queries.process import Work
from anon.wire.packets import SealedPacket
from peer.network.client import AggregatorClient
from peer.release import ReleasedPacket, random_sizes
from peer.rules.consent import Policy
from peer.rules.ledger import Entry
from peer.rules.packet_lifecycle import PacketEvent, Status
from peer.rules.study_secrets import StudySecrets, Vault, fresh
from peer.run.context import RunContext, StudyRun
from peer.run.exchanges import Exchanges
from peer.store.home import Settings
from peer.store.outbox import ScheduledPacket
from peer.store.records import Evaluation, Joining, MemberStudy, OutboxEntry, VerifiedEnrolment
from peer.store.store import Store
from tests.support.fake_aggregator import FakeAggregator

CREDENTIAL = Credential(b"issuer", b"header", b"signature", b"base", b"blind", ())
"""The checks would not pass it: a test that needs one puts it in the place of `credential_of`."""


async def no_work(work: Work, seconds: float) -> bytes:
    """Of a peer that may not begin to work anything out."""
    raise AssertionError("nothing is worked out")


@define
class StoredMember:
    """One peer's store, its run of one study, and what that run needs to speak to the aggregator."""

    aggregator: FakeAggregator
    store: Store
    secrets: StudySecrets
    run: StudyRun
    exchanges: Exchanges = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.exchanges = Exchanges(self.run)

    @classmethod
    def checked(cls, folder: Path, aggregator: FakeAggregator, draws: tuple[int, ...] = (0,)) -> StoredMember:
        """Making the first packets is begun, and the missing answer is empty."""
        manifest, random_bytes = aggregator.manifest, Random(1).randbytes
        store, vault = Store(folder / "peer.sqlite", random_bytes, Policy(minimum_cohort=3)), Vault(None, random_bytes)
        secrets = fresh(random_sizes(manifest), "", random_bytes)
        entry = Entry(manifest.study_id, "", manifest.aggregator_key, "", reserved=manifest.epsilon)
        stored = vault.close(secrets.to_bytes())
        joining = Joining(entry, aggregator.invite, manifest.to_bytes(), 3, stored, b"enrolment", 0.0, b"")
        store.join(joining, lambda _policy, _ledger: None)
        verified = VerifiedEnrolment(tuple(aggregator.chain), bytes(32), b"seed", b"credential", draws)
        store.record_verified(manifest.study_id, verified, Evaluation(0.0, {}, b""))

        def client(_study: object) -> AggregatorClient:
            return AggregatorClient(aggregator.invite, aggregator, random_bytes)

        tools = RunContext(
            store, folder / "data.sqlite", no_work, vault, Settings(), client, aggregator.clock, random_bytes
        )
        return cls(aggregator, store, secrets, StudyRun(manifest.study_id, tools))

    @property
    def study(self) -> MemberStudy:
        """As it is stored."""
        found = self.store.study(self.aggregator.study)
        assert isinstance(found, MemberStudy)
        return found

    @property
    def packets(self) -> list[OutboxEntry]:
        """As they are stored."""
        return self.store.outbox_entries(self.aggregator.study)

    def evaluated(self, *packets: ScheduledPacket) -> StoredMember:
        """The same, once these packets were made of some answers."""
        self.store.record_evaluated(self.aggregator.study, b"answers", packets, [])
        return self

    def packet(self, send_at: float, slot: int = 0, epsilon: int = 0) -> ScheduledPacket:
        """A packet of the survey that the slot drew."""
        survey = self.aggregator.manifest.survey(self.study.draws[slot])
        sealed, digest = SealedPacket(b"sealed %d" % slot), bytes([slot]) * 32
        return ScheduledPacket(ReleasedPacket(slot, survey.survey, epsilon, sealed, digest, survey.round), send_at)  # type: ignore[arg-type]

    def delivered(self) -> StoredMember:
        """The same, once every queued packet was acknowledged."""
        for packet in self.packets:
            if packet.status is Status.QUEUED:
                self.store.record_reply(self.aggregator.study, packet.key, PacketEvent.ACCEPTED, "accepted")
        return self

    def working(self, evaluate: object) -> StoredMember:
        """The same peer, with another way to have work done."""
        self.run.tools = evolve(self.run.tools, evaluate=evaluate)
        return self
