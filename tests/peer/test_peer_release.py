"""The journal: charge and packet together, the same bytes on every retry, nothing twice, nothing in a bunch."""

import asyncio
import threading
from pathlib import Path

import pytest
from attrs import evolve

from anon.errors import Conflict, Refused
from anon.ldp import RawCategory
from anon.protocols.outgoing import SurveyAnswer
from anon.wire.packets import SealedPacket
from peer.app import PeerApp
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from peer.store.home import PeerHome
from peer.store.records import PacketKey
from tests.support.fake_aggregator import (
    BINNED,
    DECLARED,
    PAPER,
    FakeAggregator,
    advance,
    peer,
    reopened,
    stored,
    until_closed,
)


async def collecting(tmp_path: Path, aggregator: FakeAggregator, **settings: object) -> PeerApp:
    """A peer whose packets are journalled, with the clock before the first window."""
    app = peer(tmp_path, aggregator, **settings)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await until_closed(app, aggregator)
    await advance(app, aggregator, aggregator.manifest.timetable.settled - 1)
    return app


def window(aggregator: FakeAggregator):
    return max((survey.window for survey in aggregator.manifest.surveys), key=lambda one: one.closes)


async def test_charge_and_packet_are_there_before_the_first_byte_leaves(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = await collecting(tmp_path, aggregator)
    (status,) = app.status()
    (slot,) = status.slots
    assert aggregator.sent("packets") == []
    assert isinstance(slot.sealed, SealedPacket)
    assert status.spent == slot.epsilon == aggregator.manifest.surveys[slot.survey].epsilon
    assert window(aggregator).opens < slot.send_at < window(aggregator).closes
    assert stored(app, aggregator.study, "snapshot") is None  # erased: nothing more derives from it


@pytest.mark.parametrize("failure", ["deaf", "busy"])
async def test_retries_send_the_same_bytes_at_most_four_times_and_the_charge_stays(
    tmp_path: Path, failure: str
) -> None:
    aggregator = FakeAggregator.with_study()
    app = await collecting(tmp_path, aggregator, check_inclusion=False)
    if failure == "deaf":
        aggregator.deaf.add("packets")
    else:
        aggregator.says["packets"] = "busy"
    assert await advance(app, aggregator) is None
    sent = aggregator.sent("packets")
    assert 1 <= len(sent) <= 4
    assert len(set(sent)) == 1
    times = [at for path, _body, at in aggregator.posts if path == "packets"]
    assert all(window(aggregator).opens < at < window(aggregator).closes for at in times)
    (status,) = app.status()
    assert [slot.status for slot in status.slots] == [Status.GIVEN_UP]
    assert status.spent > 0
    assert status.reserved == 0


async def test_an_attempt_that_was_cut_off_is_drawn_anew_and_not_repeated_at_once(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = await collecting(tmp_path, aggregator)
    # So that the retry lies within the window too.
    app.store.redraw(aggregator.study, PacketKey(0, 0), window(aggregator).opens + 600.0)
    (slot,) = app.store.outbox(aggregator.study)
    aggregator.clock.seconds = slot.send_at
    app.store.attempt(aggregator.study, PacketKey(0, 0), slot.send_at + 500)  # killed right after this commit
    app.close()
    app = reopened(PeerHome(tmp_path), aggregator)
    due = await app.step(aggregator.study)
    assert aggregator.sent("packets") == []
    assert due is not None
    await advance(app, aggregator, slot.send_at + 499 - 30)
    assert aggregator.sent("packets") == []
    await advance(app, aggregator, window(aggregator).closes)
    assert aggregator.sent("packets") == [slot.sealed.ciphertext]


async def test_a_slot_in_the_journal_is_never_perturbed_again(tmp_path: Path) -> None:
    from peer.release import ReleasedPacket
    from peer.store.outbox import ScheduledPacket

    aggregator = FakeAggregator.with_study()
    app = await collecting(tmp_path, aggregator)
    before = (app.store.outbox(aggregator.study), app.store.ledger())
    again = ScheduledPacket(ReleasedPacket(0, 0, 1, SealedPacket(b"other"), b"d"), 0.0)
    with pytest.raises((Conflict, Refused)):
        app.store.journal(aggregator.study, [again], [])
    assert (app.store.outbox(aggregator.study), app.store.ledger()) == before


async def test_a_charge_beyond_the_reservation_stores_nothing(tmp_path: Path) -> None:
    from peer.release import ReleasedPacket
    from peer.store.outbox import ScheduledPacket

    aggregator = FakeAggregator.with_study(PAPER)
    app = await collecting(tmp_path, aggregator)
    before = (app.store.outbox(aggregator.study), app.store.ledger())
    free = next(slot for slot in range(aggregator.manifest.packets) if slot not in {one.slot for one in before[0]})
    dear = ScheduledPacket(ReleasedPacket(free, 0, aggregator.manifest.epsilon + 1, SealedPacket(b"x"), b"d"), 0.0)
    with pytest.raises(Refused, match="nothing is sent"):
        app.store.journal(aggregator.study, [dear], [])
    assert (app.store.outbox(aggregator.study), app.store.ledger()) == before


def test_only_a_perturbed_report_can_become_a_packet() -> None:
    from peer.release import _signed

    aggregator = FakeAggregator.with_study()
    raw = RawCategory(1, aggregator.manifest.surveys[0].m)
    with pytest.raises((TypeError, AttributeError)):
        _signed(aggregator.study, SurveyAnswer(0, 0, raw), raw, None, lambda count: bytes(count))


async def test_after_sleeping_packets_are_drawn_again_one_by_one_and_never_flushed(tmp_path: Path) -> None:
    """Both histogram packets of the paper's design are overdue on waking; each gets a time of its own."""
    aggregator = FakeAggregator.with_study(PAPER.replace("bins = 2", "cuts = [40]"))
    app = await collecting(tmp_path, aggregator)
    for slot in (0, 1):
        app.store.redraw(aggregator.study, PacketKey(0, slot), window(aggregator).opens + 400 + 100 * slot)
    first = app.store.outbox(aggregator.study)
    assert len(first) == 2
    aggregator.clock.seconds = woken = window(aggregator).opens + 600.0
    while (due := await app.step(aggregator.study)) is not None and due <= woken:
        pass
    second = app.store.outbox(aggregator.study)
    assert aggregator.sent("packets") == []
    assert all(one.send_at > woken for one in second)
    assert second[0].send_at != second[1].send_at
    assert [one.sealed for one in second] == [one.sealed for one in first]
    await advance(app, aggregator, window(aggregator).closes)
    assert sorted(aggregator.sent("packets")) == sorted(one.sealed.ciphertext for one in first)


async def test_a_window_missed_after_journalling_keeps_the_charge_and_sends_nothing(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = await collecting(tmp_path, aggregator)
    aggregator.clock.seconds = window(aggregator).closes + 86400
    aggregator.transcribe()
    assert await advance(app, aggregator) is None
    (status,) = app.status()
    assert aggregator.sent("packets") == []
    assert [slot.status for slot in status.slots] == [Status.GIVEN_UP]
    assert status.spent > 0


async def test_a_window_missed_before_journalling_returns_everything(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await until_closed(app, aggregator)
    aggregator.clock.seconds = window(aggregator).closes + 86400
    assert await advance(app, aggregator) is None
    (status,) = app.status()
    assert status.state is State.ABANDONED
    assert aggregator.sent("packets") == []
    assert (status.reserved, status.spent) == (0, 0)


async def test_days_offline_within_the_window_still_send_once(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await until_closed(app, aggregator)
    aggregator.clock.seconds = window(aggregator).opens + 1000
    await advance(app, aggregator, window(aggregator).closes)
    assert len(aggregator.sent("packets")) == 1


async def test_edges_that_never_come_miss_the_slot_and_charge_nothing(tmp_path: Path) -> None:
    text = BINNED.replace("binning_share = 0.5", 'binning_share = 0.01\nsubsets = [["age"]]')
    for turn in range(5):  # the tag draws the survey that needs edges 99 times in 100
        aggregator = FakeAggregator.with_study(text)
        app = await collecting(tmp_path / str(turn), aggregator)
        if aggregator.manifest.surveys[app.store.study(aggregator.study).draws[0]].kind == "histogram":
            break
    aggregator.transcribe()
    assert await advance(app, aggregator) is None
    (status,) = app.status()
    assert aggregator.sent("packets") == []
    assert [slot.status for slot in status.slots] == [Status.MISSED]
    assert (status.reserved, status.spent) == (0, 0)


# Budget, leaving, abandoning


async def test_too_few_enrol_nothing_is_sent_nobody_is_charged(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await advance(app, aggregator, aggregator.manifest.timetable.enrol_closes - 1)
    aggregator.abandon()
    assert await advance(app, aggregator) is None
    (status,) = app.status()
    assert status.state is State.ABANDONED
    assert aggregator.sent("packets") == []
    assert app.budget().available == app.budget().lifetime


async def test_leaving_before_closing_withdraws_and_returns_the_reservation(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await advance(app, aggregator, aggregator.clock.seconds + 1)
    assert len(aggregator.enrolments) == 1
    await app.leave(aggregator.study)
    assert app.budget().available == app.budget().lifetime
    assert await advance(app, aggregator) is None
    assert app.status()[0].state is State.WITHDRAWN
    assert aggregator.enrolments == {}
    await app.join(aggregator.invite, aggregator.manifest.epsilon)  # and may come back
    assert app.status()[0].state is State.CONSENTED


async def test_stopping_later_keeps_the_charge_and_sends_nothing_more(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = await collecting(tmp_path, aggregator)
    await app.leave(aggregator.study)
    assert await advance(app, aggregator) is None
    (status,) = app.status()
    assert (status.state, [slot.status for slot in status.slots]) == (State.WITHDRAWN, [Status.STOPPED])
    assert aggregator.sent("packets") == []
    assert status.spent > 0
    with pytest.raises(Refused, match="over for you"):
        await app.leave(aggregator.study)


async def test_enrolment_is_repeated_byte_for_byte_until_it_is_acknowledged(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    aggregator.deaf.add("enrol")
    for _ in range(4):
        due = await app.step(aggregator.study)
        aggregator.clock.seconds = max(aggregator.clock.seconds, due or 0)
    app.close()
    aggregator.deaf.clear()
    app = reopened(PeerHome(tmp_path), aggregator)
    await advance(app, aggregator, aggregator.clock.seconds + 1)
    assert app.status()[0].state is State.ENROLLED
    sent = aggregator.sent("enrol")
    assert len(sent) >= 3
    assert len(set(sent)) == 1
    assert len(aggregator.enrolments) == 1


async def test_an_enrolment_whose_answer_was_lost_takes_part_all_the_same(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    aggregator.deaf.add("enrol")
    await app.step(aggregator.study)
    aggregator.crowd(5)
    aggregator.clock.seconds = aggregator.manifest.timetable.enrol_closes
    aggregator.close()
    await advance(app, aggregator, window(aggregator).closes)
    assert len(aggregator.sent("packets")) == 1


async def test_a_refused_enrolment_returns_the_budget_and_keeps_the_reason(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    aggregator.says["enrol"] = "invite-spent"
    assert await advance(app, aggregator) is None
    (status,) = app.status()
    assert status.state is State.REFUSED
    assert "invite-spent" in status.reason
    assert app.budget().available == app.budget().lifetime


async def test_joining_twice_is_a_conflict(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    with pytest.raises(Conflict):
        await app.join(aggregator.invite, aggregator.manifest.epsilon)


def test_two_studies_consented_at_once_cannot_overrun_the_budget(tmp_path: Path) -> None:
    """Two apps on one home, as two processes would have; the budget covers one of the two studies."""
    for turn in range(5):
        aggregators = [FakeAggregator.with_study(), FakeAggregator.with_study()]
        apps = [peer(tmp_path / str(turn), aggregator) for aggregator in aggregators]
        cost = aggregators[0].manifest.epsilon
        apps[0].set_policy(evolve(apps[0].policy(), lifetime=cost + cost // 2))
        for app, aggregator in zip(apps, aggregators, strict=True):
            asyncio.run(app.look(aggregator.invite))
        outcomes: list[str] = []
        gate = threading.Barrier(2)

        def consent(
            aggregator: FakeAggregator, home: Path = tmp_path / str(turn), gate=gate, outcomes=outcomes
        ) -> None:
            app = reopened(PeerHome(home), aggregator)
            gate.wait()
            try:
                asyncio.run(app.join(aggregator.invite, aggregator.manifest.epsilon))
                outcomes.append("joined")
            except Refused:
                outcomes.append("refused")
            app.close()

        threads = [threading.Thread(target=consent, args=(aggregator,)) for aggregator in aggregators]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == ["joined", "refused"]
        assert apps[0].budget().held == cost


async def test_a_packet_missing_from_the_transcript_is_noticed(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = await collecting(tmp_path, aggregator)
    await advance(app, aggregator, window(aggregator).closes)
    aggregator.accepted.clear()
    aggregator.transcribe()
    assert await advance(app, aggregator) is None
    assert [slot.status for slot in app.status()[0].slots] == [Status.NOT_INCLUDED]


async def test_an_unpublished_transcript_ends_in_erasure_all_the_same(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = await collecting(tmp_path, aggregator, inclusion_patience=1000.0)
    assert await advance(app, aggregator) is None
    (status,) = app.status()
    assert status.state is State.FINISHED
    assert "not published" in status.reason
    assert all(slot.sealed is None for slot in status.slots)


async def test_run_follows_all_studies_to_their_end(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study(DECLARED)
    app = peer(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await app.run(once=True)
    assert app.status()[0].state is State.ENROLLED
    aggregator.crowd(5)
    aggregator.close()
    await app.run(once=True, max_seconds=4 * 3600)
    assert len(aggregator.sent("packets")) == 1
    aggregator.transcribe()
    await app.run(once=True, max_seconds=30 * 86400)
    assert app.status()[0].state is State.FINISHED


async def test_heads_are_fetched_again_at_random_times_the_last_shortly_before_sending(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = await collecting(tmp_path, aggregator, head_checks=3)
    await advance(app, aggregator, window(aggregator).closes)
    (sent_at,) = [at for path, _body, at in aggregator.posts if path == "packets"]
    heads = [
        at
        for path, at in aggregator.gets
        if path.startswith("heads") and at >= aggregator.manifest.timetable.enrol_closes
    ]
    before = [at for at in heads if at <= sent_at]
    assert len(before) == 4
    assert sent_at - before[-1] <= 30


async def test_a_policy_that_changes_while_the_owner_decides_is_asked_again(tmp_path: Path) -> None:
    """The yes is checked once more inside the transaction that reserves."""
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path, aggregator)
    await app.look(aggregator.invite)
    strict = evolve(app.policy(), max_epsilon=1)
    join = app.store.join

    def overtaken(joining, permit):
        app.set_policy(strict)
        join(joining, permit)

    app.store.join = overtaken
    with pytest.raises(Refused, match="allowed for one study"):
        await app.join(aggregator.invite, aggregator.manifest.epsilon)
    assert app.status() == []
    assert app.budget().held == 0


async def test_a_chain_shorter_than_was_seen_checks_nothing_so_nothing_leaves(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = await collecting(tmp_path, aggregator, check_inclusion=False)
    aggregator.chain = aggregator.chain[:1]
    await advance(app, aggregator, window(aggregator).closes - aggregator.manifest.timetable.margin - 1)
    checks = sum(path == "heads" for path, _at in aggregator.gets)
    assert checks < 60, "they grow rarer with the time left, never a burst"
    aggregator.clock.seconds = window(aggregator).closes
    await advance(app, aggregator)
    assert aggregator.sent("packets") == []
    assert [slot.status for one in app.status() for slot in one.slots] == [Status.GIVEN_UP]


async def test_what_is_erased_is_in_no_file_any_more(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path, aggregator, check_inclusion=False)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    secrets = stored(app, aggregator.study, "secrets")
    assert isinstance(secrets, bytes) and any(secrets in path.read_bytes() for path in tmp_path.glob("peer.sqlite*"))
    await until_closed(app, aggregator)
    assert await advance(app, aggregator) is None
    assert stored(app, aggregator.study, "secrets") is None
    assert not any(secrets in path.read_bytes() for path in tmp_path.glob("peer.sqlite*"))
