"""Faults that were planted in the peer once and went unnoticed: one test for each."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from attrs import evolve, frozen

from anon.credential import Credential
from anon.errors import Conflict, Refused
from anon.ldp import NanoEpsilon, RawCategory
from anon.protocols.contract import DocumentArrived
from anon.protocols.outgoing import SurveyAnswer
from anon.route import Response
from anon.study.manifest import EXACT
from anon.transparency.closing import Bodies
from anon.wire.packets import SealedPacket
from peer import release as releasing
from peer.app import PeerApp
from peer.data.evaluate import at_once
from peer.protocols.contract import part_of
from peer.release import ReleasedPacket, random_sizes
from peer.rules.bucket_checks import check_membership
from peer.rules.consent import Policy, decide
from peer.rules.ledger import Entry, Ledger
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import PacketEvent
from peer.rules.schedule import draw_backoff, draw_wait
from peer.rules.study_secrets import StudySecrets, fresh
from peer.run.packets.making import PacketInputs
from peer.run.taking_back import Choice
from peer.store.backup.archive import backup, restore
from peer.store.backup.restored import may_have_released
from peer.store.home import PeerHome
from peer.store.outbox import ScheduledPacket
from peer.store.records import PacketKey
from tests.peer.test_peer_release import collecting, window
from tests.support.fake_aggregator import BINNED, FakeAggregator, advance, peer, reopened, until_closed
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
    drawn = window(aggregator).opens + aggregator.manifest.timetable.margin + 60.0
    app.store.redraw(aggregator.study, PacketKey(0, 0), drawn)
    app._route_factory = lambda: SlowToBeReady(aggregator, 600.0)
    for _ in range(20):
        (packet,) = app.store.outbox_entries(aggregator.study)
        if aggregator.sent("packets") or packet.send_at != drawn:
            break
        due = await app.step(aggregator.study)
        assert due is not None
        aggregator.clock.seconds = max(aggregator.clock.seconds, due)
    assert aggregator.sent("packets") == []
    assert packet.send_at > drawn + 600.0 <= aggregator.clock() and packet.attempts == 0


async def test_no_log_of_writes_beside_a_restored_store_changes_it(tmp_path: Path) -> None:
    aggregator, other = FakeAggregator.with_study(), FakeAggregator.with_study()
    app = peer(tmp_path / "old", aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    app.close()
    await backup(PeerHome(tmp_path / "old"), tmp_path / "backup", evaluate=at_once)
    strange = peer(tmp_path / "strange", other)
    await strange.join(other.invite, other.manifest.epsilon)
    strange.close()
    with closing(sqlite3.connect(tmp_path / "strange" / "peer.sqlite")) as writing:
        writing.execute("UPDATE studies SET minimum_cohort = minimum_cohort + 1")
        writing.commit()
        log = (tmp_path / "strange" / "peer.sqlite-wal").read_bytes()
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
    from peer.run.packets.making import PacketInputs

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


# Two copies of a home never share randomness, unless they send the same packet


def _inputs(aggregator: FakeAggregator, secrets: StudySecrets) -> PacketInputs:
    credential = Credential(b"issuer", b"header", b"signature", b"base", b"blind", ())
    documents = (DocumentArrived("counts", 0, b"counts"), DocumentArrived("model", 0, b"model"))
    documents += (DocumentArrived("edges", 0, b"edges"),)
    return PacketInputs(aggregator.manifest, secrets, credential, b"seed", [(0, 0)], documents)


@pytest.mark.parametrize("other", ["seed", "header", "issuer", "survey", "answers"])
def test_another_story_is_answered_with_other_noise(other: str) -> None:
    """Each of these alone parts the random bytes of two copies that were told it differently."""
    aggregator = FakeAggregator.with_study(BINNED)
    one = _inputs(aggregator, fresh(random_sizes(aggregator.manifest), "", os.urandom))
    told = one
    if other == "seed":
        told = evolve(one, seed=b"another")
    elif other in ("header", "issuer"):
        field = {"header": "header", "issuer": "public_key"}[other]
        told = evolve(one, credential=evolve(one.credential, **{field: b"another"}))
    survey, answers = (1 if other == "survey" else 0), (b"b" if other == "answers" else b"a")
    assert one.drawn(0, 0, b"a")(16) == one.drawn(0, 0, b"a")(16)
    assert told.drawn(0, survey, answers)(16) != one.drawn(0, 0, b"a")(16)
    assert (told.drawn(0, survey)(16) != one.drawn(0, 0)(16)) == (other != "answers"), (
        "nor does a missing answer share them"
    )


def test_a_document_that_the_survey_needs_parts_the_noise_and_no_other_does(monkeypatch: pytest.MonkeyPatch) -> None:
    aggregator = FakeAggregator.with_study(BINNED)
    one = _inputs(aggregator, fresh(random_sizes(aggregator.manifest), "", os.urandom))
    monkeypatch.setattr(type(part_of(aggregator.manifest)), "needs", lambda *_: (("counts", 0),))
    needed, model, _edges = one.documents
    other_counts = evolve(one, documents=(evolve(needed, body=b"others"), model))
    other_model = evolve(one, documents=(needed, evolve(model, body=b"others")))
    assert other_counts.drawn(0, 0, b"a")(16) != one.drawn(0, 0, b"a")(16)
    assert other_model.drawn(0, 0, b"a")(16) == one.drawn(0, 0, b"a")(16)


# Nothing is decided twice


async def test_a_slot_that_is_decided_twice_keeps_its_first_packet(tmp_path: Path) -> None:
    """The second costs nothing, so that no budget refuses it in place of the journal."""
    aggregator = FakeAggregator.with_study()
    app = await collecting(tmp_path, aggregator)
    before = (app.store.outbox(aggregator.study), app.store.ledger())
    (drawn,) = app.store.study(aggregator.study).draws
    again = ScheduledPacket(ReleasedPacket(0, drawn, NanoEpsilon(0), SealedPacket(b"other"), b"d"), 0.0)
    with pytest.raises(Conflict, match="nothing is sent twice"):
        app.store.journal(aggregator.study, [again], [])
    assert (app.store.outbox(aggregator.study), app.store.ledger()) == before
    with pytest.raises(Conflict, match="evaluated before"):
        app.store.record_evaluated(aggregator.study, b"snapshot", [], [])
    assert (app.store.outbox(aggregator.study), app.store.ledger()) == before
    app.close()


async def test_an_answer_to_a_survey_that_was_not_drawn_is_not_journalled(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study(BINNED)
    app = await collecting(tmp_path, aggregator)
    (drawn,) = app.store.study(aggregator.study).draws
    with closing(sqlite3.connect(tmp_path / "peer.sqlite")) as connection, connection:
        connection.execute("DELETE FROM outbox")
    for slot, survey in ((0, drawn + 1), (1, drawn), (-1, drawn)):
        other = ScheduledPacket(ReleasedPacket(slot, survey, NanoEpsilon(0), SealedPacket(b"other"), b"d"), 0.0)
        with pytest.raises(Conflict, match="drew another survey"):
            app.store.journal(aggregator.study, [other], [])
    app.close()


# Erased answers


async def test_no_erased_answer_stays_in_the_log_and_what_stays_is_told(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    canary = b"canary" * 40
    with closing(sqlite3.connect(tmp_path / "peer.sqlite")) as other:
        with other:
            other.execute("UPDATE studies SET snapshot = ?", (canary,))
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM studies").fetchone()  # a reader that holds the log
        app.store.blank({aggregator.study: b"missing"})
        with app.taking_back() as mine:
            mine.store._connection.execute("PRAGMA busy_timeout = 0")
            assert not mine.store.compact()
            with pytest.raises(Refused, match="still holds traces"):
                mine._rewrite()
        other.rollback()
    with app.taking_back() as mine:
        assert mine.store.compact()
        mine._rewrite()
    assert not any(canary in path.read_bytes() for path in tmp_path.glob("peer.sqlite*"))
    assert (tmp_path / "peer.sqlite-wal").stat().st_size == 0
    app.close()


class _Full:
    """A connection of a disk that is full."""

    def execute(self, _statement: str) -> None:
        raise sqlite3.OperationalError("database or disk is full")


async def test_a_store_that_cannot_be_written_anew_says_so_and_no_answer_is_invented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    app.store.blank({aggregator.study: b"missing"})
    assert app.store.study(aggregator.study).snapshot is None, "a study without answers has none still"
    with monkeypatch.context() as full:
        full.setattr(type(app.store), "_connection", property(lambda _store: _Full()))
        assert not app.store.compact()
    assert app.store.compact()
    app.close()


@pytest.mark.parametrize(("count", "minimum"), [(19, 20), (1, 2), (1_000_001, 2)])
async def test_a_roster_of_too_few_or_too_many_is_refused_before_a_bucket_is_fetched(
    tmp_path: Path, count: int, minimum: int
) -> None:
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path, aggregator)
    app.set_policy(evolve(app.policy(), minimum_cohort=minimum))
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await until_closed(app, aggregator)
    made = {number: evolve(aggregator.made[number].document, count=count).to_bytes() for number in (1, 3)}
    bodies, kinds = aggregator.bodies[1:], [one.head.kind for one in aggregator.chain[1:]]
    del aggregator.chain[1:], aggregator.bodies[1:]
    for number, (kind, body) in enumerate(zip(kinds, bodies, strict=True), 1):
        aggregator.publish(kind, made.get(number, body))
    aggregator.gets.clear()
    assert await advance(app, aggregator) is None
    assert app.status()[0].state is State.STOPPED and not aggregator.sent("packets")
    assert not [what for what, _at in aggregator.gets if what.startswith("buckets/")]
    app.close()


async def test_a_packet_leaves_within_the_clock_margins_alone() -> None:
    from peer.rules.schedule import draw_send_time, in_time, making_allowance

    manifest = FakeAggregator.with_study().manifest
    window, margin = manifest.windows[0], manifest.timetable.margin
    assert margin > 0
    drawn = [draw_send_time(window, margin, 0.0, lambda size, one=one: one * size) for one in (b"\x00", b"\xff")]
    assert drawn == [window.opens + margin, pytest.approx(window.closes - margin)]
    assert draw_send_time(window, margin, window.closes - margin, os.urandom) is None
    assert not in_time(manifest, window, window.closes - margin) and in_time(
        manifest, window, window.closes - margin - 1
    )
    assert 1.0 <= making_allowance(manifest, window) <= 60.0


async def test_deleting_says_so_when_traces_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from peer.data.importing import import_rows
    from peer.store.store import Store

    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path, aggregator)
    import_rows(tmp_path / "data.sqlite", "person", ("age", "cups", "tired"), [(30, 2, 1)])
    monkeypatch.setattr(Store, "compact", lambda _store: False)
    with app.taking_back() as mine:
        with pytest.raises(Refused, match="still holds traces"):
            mine.delete_table("person", Choice.MISSING)
        with pytest.raises(Refused, match="still holds traces"):
            mine.erase(tell=False)
    app.close()


# Times come with chance


def test_no_wait_is_a_pattern() -> None:
    """Over all random bytes a wait is spread by half each way; near an end by a quarter of what is left."""
    def least(size: int) -> bytes:
        return bytes(size)

    def most(size: int) -> bytes:
        return b"\xff" * size

    assert draw_backoff(2, 10.0, least) == 20.0
    assert draw_backoff(2, 10.0, most) == pytest.approx(60.0)
    waits = [draw_wait(9, 60.0, 1000.0, 0.0, bytes_of) for bytes_of in (least, most)]
    assert waits == [pytest.approx(125.0), pytest.approx(375.0)]


# Second lines: each would hold alone


def test_a_study_that_costs_more_than_was_consented_is_refused_before_anything_is_read() -> None:
    manifest = FakeAggregator.with_study().manifest
    secrets = fresh(random_sizes(manifest), "", os.urandom)
    documents = (Bodies(b"", b"", b""), {}, ())
    with pytest.raises(Refused, match="was consented"):
        check_membership(manifest.to_bytes(), manifest, *documents, secrets, 2, manifest.epsilon - 1, os.urandom)


def test_an_answer_never_stands_where_a_vector_belongs_nor_a_vector_where_an_answer_does() -> None:
    """Whatever the manifest's own checks took: the exit has its own."""
    manifest = FakeAggregator.with_study().manifest
    exact = evolve(manifest.surveys[0], mechanism=EXACT, p=0, q=0, size=8)
    credential = Credential(b"", b"", b"", b"", b"", ())
    answer = SurveyAnswer(0, 0, RawCategory(0, manifest.surveys[0].m))
    with pytest.raises(ValueError, match="no form in which"):
        releasing._protected(manifest, exact, answer, credential, os.urandom)
