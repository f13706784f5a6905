"""Faults of the store and of taking data back that were planted once and went unnoticed: one test for each."""

from __future__ import annotations

from pathlib import Path

import pytest

from anon.errors import Conflict, Refused
from anon.wire.packets import SealedPacket
from peer.data.importing import import_rows
from peer.rules.lifecycle import Event, State
from peer.rules.packet_lifecycle import PacketEvent, Status
from peer.run.taking_back import Choice
from peer.store import rows
from peer.store.database.integrity import write_digest
from peer.store.outbox import Covering
from peer.store.records import AnsweringStudy, EvaluatingStudy, Evaluation, PacketKey
from tests.support.fake_aggregator import DECLARED, PAPER, FakeAggregator, peer
from tests.support.stored_member import StoredMember

COVER = Covering(SealedPacket(b"cover"), 0, 50.0)


def member(folder: Path, text: str = PAPER) -> StoredMember:
    """A member that draws the first survey of every slot."""
    aggregator = FakeAggregator.with_study(text)
    return StoredMember.checked(folder, aggregator, tuple(slot.rows[0].survey for slot in aggregator.manifest.slots))


# The outbox


@pytest.mark.parametrize("round_number", [0, 1, 2])
def test_the_fate_of_a_packet_is_that_of_its_own_round(tmp_path: Path, round_number: int) -> None:
    """A slot may be asked in every round of a study, and is another packet in each."""
    stored = member(tmp_path)
    study = stored.aggregator.study
    with stored.store._writing("test") as connection:
        for one in range(3):
            known = {"study": study, "round": one, "slot": 0, "survey": 0, "epsilon": 0, "packet": b"x", "send_at": 1.0}
            rows.insert(connection, "outbox", {**known, "status": Status.QUEUED})
    key = PacketKey(round_number, 0)
    stored.store.attempt(study, key, 9.0)
    stored.store.record_reply(study, key, PacketEvent.ACCEPTED, "accepted")
    others = [(one.status, one.attempts, one.send_at, one.word) for one in stored.packets if one.key != key]
    assert others == [(Status.QUEUED, 0, 1.0, "")] * 2
    (own,) = [one for one in stored.packets if one.key == key]
    assert (own.status, own.attempts, own.send_at, own.word) == (Status.DELIVERED, 1, 9.0, "accepted")


def test_making_the_packets_of_a_window_is_begun_once(tmp_path: Path) -> None:
    """Another beginning would answer from the same data with other times."""
    stored = member(tmp_path).evaluated()
    first, second = Evaluation(1.0, {0: 2.0}, b"first"), Evaluation(3.0, {1: 4.0}, b"second")
    stored.store.record_answering(stored.aggregator.study, first, [COVER])
    with pytest.raises(Conflict, match="nothing is evaluated twice"):
        stored.store.record_answering(stored.aggregator.study, second, [COVER])
    study = stored.study
    assert isinstance(study, EvaluatingStudy) and study.evaluation == first
    assert [one.sealed for one in stored.packets] == [COVER.sealed]


def test_answers_and_packets_are_stored_together_or_neither(tmp_path: Path) -> None:
    """A packet beyond the reservation leaves the making as it was begun."""
    stored = member(tmp_path)
    before = stored.study, stored.store.ledger()
    assert isinstance(before[0], EvaluatingStudy)
    dear = stored.packet(1.0, epsilon=stored.aggregator.manifest.epsilon + 1)
    with pytest.raises(Refused, match="nothing is sent"):
        stored.evaluated(dear)
    assert (stored.study, stored.store.ledger()) == before and stored.packets == []
    stored.evaluated(stored.packet(1.0, epsilon=1))
    after = stored.study
    assert isinstance(after, AnsweringStudy) and after.snapshot == b"answers" and len(stored.packets) == 1


@pytest.mark.parametrize("event", [Event.CHECK_FAILED, Event.OWNER_STOPPED])
@pytest.mark.parametrize("begun", [True, False])
def test_a_study_that_was_ended_meanwhile_journals_nothing(tmp_path: Path, event: Event, begun: bool) -> None:
    """Another process ended it while this one made its packets."""
    stored = member(tmp_path) if begun else member(tmp_path).evaluated()
    study, packet, ledger = stored.aggregator.study, stored.packet(1.0), stored.store.ledger()
    stored.store.end(study, event, "ended")
    ended = stored.store.study(study), stored.store.ledger()
    assert ended[1] != ledger, "the rest came back"
    for late in (
        lambda: stored.store.journal(study, [packet], []),
        lambda: stored.store.journal(study, [], [0]),
        lambda: stored.store.journal(study, [], [], cover=[COVER]),
        lambda: stored.store.record_evaluated(study, b"late", [packet], []),
        lambda: stored.store.record_answering(study, Evaluation(1.0, {}, b"late"), [COVER]),
    ):
        with pytest.raises(Conflict, match="ended meanwhile"):
            late()
    assert stored.packets == [] and (stored.store.study(study), stored.store.ledger()) == ended


# Taking back


@pytest.mark.parametrize(("retired", "state"), [(False, State.LEAVING), (True, State.WITHDRAWN)])
async def test_a_home_that_was_moved_elsewhere_owes_nobody_a_withdrawal(
    tmp_path: Path, retired: bool, state: State
) -> None:
    """The home that was restored from it is still a member."""
    aggregator = FakeAggregator.with_study(DECLARED)
    app = peer(tmp_path, aggregator)
    import_rows(tmp_path / "data.sqlite", "person", ("age", "cups", "tired"), [(30, 2, 1)])
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await app.step(aggregator.study)
    if retired:
        app.store._connection.execute("UPDATE meta SET value = '1' WHERE key = 'retired'")
        write_digest(app.store._connection)
    with app.taking_back() as mine:
        assert [one.study for one in mine.delete_table("person", Choice.LEAVE)] == [aggregator.study]
    assert app.store.state(aggregator.study) is state
    app.close()
