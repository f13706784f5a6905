"""Faults that were planted in the peer once and went unnoticed: one test for each."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from attrs import evolve, frozen

from anon.errors import Conflict, Refused
from anon.ldp import NanoEpsilon
from anon.route import Response
from peer.app import PeerApp
from peer.data.evaluate import at_once
from peer.rules.consent import Policy, decide
from peer.rules.ledger import Entry, Ledger
from peer.rules.packet_lifecycle import PacketEvent
from peer.store.backup.archive import backup, restore
from peer.store.backup.restored import may_have_released
from peer.store.home import PeerHome
from peer.store.records import PacketKey
from tests.peer.test_peer_release import collecting, window
from tests.support.fake_aggregator import FakeAggregator, peer, reopened, until_closed
from tests.support.routes import Ask, Exchanges, onward

NANO = 10**9


async def test_an_answered_packet_is_not_attempted_again(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = await collecting(tmp_path, aggregator)
    app.store.record_reply(aggregator.study, PacketKey(0, 0), PacketEvent.ACCEPTED, "accepted")
    (before,) = app.store.outbox_entries(aggregator.study)
    with pytest.raises(Conflict, match="nothing was sent"):
        app.store.attempt(aggregator.study, PacketKey(0, 0), 1e12)
    (after,) = app.store.outbox_entries(aggregator.study)
    assert (after.attempts, after.send_at) == (before.attempts, before.send_at)


@frozen
class SlowToBeReady(Exchanges):
    """A route that takes so long to be ready that a packet's time has passed."""

    aggregator: FakeAggregator
    seconds: float

    async def ready(self, address: str) -> None:
        self.aggregator.clock.seconds += self.seconds

    async def exchange(self, ask: Ask) -> Response:
        return await onward(self.aggregator, ask)


async def test_a_packet_whose_time_passed_while_the_route_got_ready_gets_another_time(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = await collecting(tmp_path, aggregator, head_checks=0)
    app.store.redraw(aggregator.study, PacketKey(0, 0), window(aggregator).opens + 60.0)
    app._route_factory = lambda: SlowToBeReady(aggregator, 600.0)
    drawn = window(aggregator).opens + 60.0
    for _ in range(20):
        (packet,) = app.store.outbox_entries(aggregator.study)
        if aggregator.sent("packets") or packet.send_at != drawn:
            break
        due = await app.step(aggregator.study)
        assert due is not None
        aggregator.clock.seconds = max(aggregator.clock.seconds, due)
    assert aggregator.sent("packets") == []
    assert packet.send_at > drawn and packet.attempts == 0


async def test_no_log_of_writes_beside_a_restored_store_changes_it(tmp_path: Path) -> None:
    aggregator, other = FakeAggregator.with_study(), FakeAggregator.with_study()
    app = peer(tmp_path / "old", aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    app.close()
    await backup(PeerHome(tmp_path / "old"), tmp_path / "backup", evaluate=at_once)
    strange = peer(tmp_path / "strange", other)
    await strange.join(other.invite, other.manifest.epsilon)
    log = (tmp_path / "strange" / "peer.sqlite-wal").read_bytes()
    strange.close()
    assert log
    home = PeerHome(tmp_path / "new")
    home.prepare()
    for name in ("peer.sqlite-wal", "data.sqlite-wal"):
        (home.path / name).write_bytes(log)
    restore(home, tmp_path / "backup", aggregator.clock())
    with closing(sqlite3.connect(home.store_path)) as connection:
        assert connection.execute("SELECT study FROM studies").fetchall() == [(aggregator.study,)]


async def test_the_store_is_put_last_so_that_an_interrupted_restore_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path / "old", aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    app.close()
    (tmp_path / "old" / "data.sqlite").touch()
    with closing(sqlite3.connect(tmp_path / "old" / "data.sqlite")) as connection:
        connection.execute("CREATE TABLE person (age)")
    await backup(PeerHome(tmp_path / "old"), tmp_path / "backup", evaluate=at_once)
    home, put = PeerHome(tmp_path / "new"), Path.replace

    def killed_after_the_first(self: Path, target: Path) -> Path:
        if target.parent == home.path and any((home.path / name).exists() for name in ("peer.sqlite", "data.sqlite")):
            raise KeyboardInterrupt
        return put(self, target)

    monkeypatch.setattr(Path, "replace", killed_after_the_first)
    with pytest.raises(KeyboardInterrupt):
        restore(home, tmp_path / "backup", aggregator.clock())
    monkeypatch.undo()
    assert not home.store_path.exists()
    restore(home, tmp_path / "backup", aggregator.clock())
    assert reopened(home, aggregator).status()[0].study == aggregator.study


def test_the_last_billionth_of_the_budget_can_be_reserved_and_no_more() -> None:
    ledger = Ledger(2 * NANO)
    assert ledger.reserve(Entry(b"a" * 32, "", b"", "", reserved=2 * NANO)).available == 0
    with pytest.raises(Refused):
        ledger.reserve(Entry(b"a" * 32, "", b"", "", reserved=2 * NANO + 1))


def test_a_study_that_costs_exactly_the_limit_may_be_asked_and_a_billionth_more_may_not() -> None:
    aggregator = FakeAggregator.with_study()
    cost, now = aggregator.manifest.epsilon, aggregator.clock()
    policy = Policy(lifetime=NanoEpsilon(10 * cost), max_epsilon=NanoEpsilon(cost), minimum_cohort=3)
    assert decide(aggregator.manifest, policy, Ledger(10 * cost), cost, now).epsilon == cost
    with pytest.raises(Refused, match="allowed for one study"):
        decide(aggregator.manifest, evolve(policy, max_epsilon=NanoEpsilon(cost - 1)), Ledger(10 * cost), cost, now)
    assert decide(aggregator.manifest, policy, Ledger(cost), cost, now).epsilon == cost
    with pytest.raises(Refused, match="lifetime budget"):
        decide(aggregator.manifest, policy, Ledger(cost - 1), cost, now)


async def test_packets_may_have_left_from_the_instant_at_which_the_first_window_could_open(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    study, settled = app.store.study(aggregator.study), aggregator.manifest.timetable.settled
    assert not may_have_released(study, 0, settled - 1)
    assert may_have_released(study, 0, settled)
    app.close()


async def test_other_values_are_perturbed_by_other_noise(tmp_path: Path) -> None:
    """Two copies of one home whose values differ never use the same noise: their difference would be plain."""
    aggregator = FakeAggregator.with_study()
    app = await _checked_with(tmp_path / "a", aggregator, 44)
    drawn = [await _noise(app, age) for age in (44, 44, 45)]
    assert drawn[0] == drawn[1] != drawn[2]


async def _checked_with(folder: Path, aggregator: FakeAggregator, age: int) -> PeerApp:
    app = peer(folder, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await until_closed(app, aggregator)
    return app


async def _noise(app: PeerApp, age: int) -> bytes:
    """The first bytes that a slot's noise begins with, for a home with this value."""
    from anon.credential import finalize, signer_nym_entropy
    from anon.transparency.documents import body_digest
    from anon.wire.messages import credential_header
    from peer.rules.study_secrets import StudySecrets
    from peer.run.make_packets import PacketInputs

    aggregator = app._route_factory()
    assert isinstance(aggregator, FakeAggregator)
    study = app.store.study(aggregator.study)
    secrets = StudySecrets.from_bytes(app._tools.vault.open(study.secrets))
    roster = aggregator.roster()
    key = bytes(secrets.signing_key.verify_key)
    place = sorted(aggregator.enrolments).index(key)
    seed = aggregator.seed(roster)
    credential = finalize(
        aggregator.manifest.credential_key, credential_header(aggregator.study, body_digest(roster)),
        aggregator.signatures(roster)[place], signer_nym_entropy(seed, key), secrets.commitment,
    )
    return PacketInputs(aggregator.manifest, secrets, credential, seed, [(0, 0)]).drawn(0, 0, bytes([age]) * 27)(16)
