"""Faults of sending that were planted once and went unnoticed: a packet that leaves, waits or ends as it should not."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import define

from anon.study.manifest import Window
from peer.rules.packet_lifecycle import Status
from peer.rules.schedule import MAX_ATTEMPTS, TOLERANCE
from peer.run.jobs import CheckBefore, CheckHeads, Send
from peer.run.send import check_before, put_off, send
from peer.store.records import OutboxEntry, PacketKey
from tests.support.fake_aggregator import DECLARED, FakeAggregator
from tests.support.stored_member import StoredMember

KEY = PacketKey(0, 0)


@define
class Starting(FakeAggregator):
    """An aggregator whose route must get ready; `gets` notes that too."""

    async def ready(self, _address: str) -> None:
        self.gets.append(("ready", self.clock()))


def member(folder: Path, after: float) -> tuple[StoredMember, Window, float]:
    """A member whose one packet is due so long after its window opened, which is now; its window, and that time."""
    aggregator = Starting.with_study(DECLARED)
    aggregator.says["packets"] = "accepted"
    (window, *_), stored = aggregator.manifest.windows, StoredMember.checked(folder, aggregator)
    aggregator.clock.seconds = send_at = window.opens + after
    return stored.evaluated(stored.packet(send_at)), window, send_at


async def sent(stored: StoredMember) -> OutboxEntry:
    """The fate of the packet, once its time was taken for come."""
    (packet,) = stored.packets
    await send(stored.run, stored.exchanges, stored.study, Send(0, packet.send_at))
    (packet,) = stored.packets
    return packet


async def test_a_packet_gets_another_time_while_a_planned_look_was_not_answered(tmp_path: Path) -> None:
    stored, window, send_at = member(tmp_path, 1000.0)
    look = CheckHeads(window, 0)
    stored.run.memory = stored.run.memory.with_time(look, send_at - 1.0)
    packet = await sent(stored)
    assert (packet.status, packet.attempts) == (Status.QUEUED, 0) and packet.send_at > send_at
    assert stored.aggregator.sent("packets") == []
    stored.run.memory = stored.run.memory.with_done(look)
    stored.aggregator.clock.seconds = packet.send_at
    assert (await sent(stored)).status is Status.DELIVERED
    assert stored.aggregator.sent("packets") == [b"sealed 0"]


async def test_a_packet_whose_look_was_not_answered_gets_another_time_and_another_look(tmp_path: Path) -> None:
    stored, window, send_at = member(tmp_path, 1000.0)
    stored.aggregator.deaf.add("heads")
    await check_before(stored.run, stored.exchanges, stored.study, look := CheckBefore(0, send_at))
    (packet,) = stored.packets
    assert send_at < packet.send_at < window.closes and look not in stored.run.memory.done
    stored.aggregator.deaf.clear()
    await check_before(stored.run, stored.exchanges, stored.study, again := CheckBefore(0, packet.send_at))
    assert again in stored.run.memory.done and stored.packets == [packet]


@pytest.mark.parametrize(("word", "status", "kept"), [
    ("accepted", Status.DELIVERED, "accepted"),
    ("window-not-open", Status.QUEUED, ""),
    ("busy", Status.QUEUED, ""),
    ("tag-spent", Status.REFUSED, "tag-spent"),
])
async def test_a_word_settles_a_packet_as_it_says(tmp_path: Path, word: str, status: Status, kept: str) -> None:
    """A window that is not open by the aggregator's clock will be."""
    stored, window, send_at = member(tmp_path, 1000.0)
    stored.aggregator.says["packets"] = word
    packet = await sent(stored)
    assert (packet.status, packet.word, packet.attempts) == (status, kept, 1)
    assert send_at < packet.send_at < window.closes, "the retry was drawn before the first byte left"


HINDRANCES = {
    "early": (0.0, 0.0, 0, Status.QUEUED, ""),
    "late": (1000.0, TOLERANCE + 1.0, 0, Status.QUEUED, ""),
    "behind its window": (3599.0, 0.0, 0, Status.GIVEN_UP, "its window passed"),
    "often": (1000.0, 0.0, MAX_ATTEMPTS, Status.GIVEN_UP, "never acknowledged"),
}


@pytest.mark.parametrize("why", HINDRANCES)
@pytest.mark.parametrize("job", [CheckBefore, Send])
async def test_a_packet_that_is_hindered_is_neither_looked_for_nor_sent(tmp_path: Path, why: str, job: type) -> None:
    after, waited, attempts, status, word = HINDRANCES[why]
    stored, window, send_at = member(tmp_path, after)
    for _ in range(attempts):
        stored.store.attempt(stored.aggregator.study, KEY, send_at)
    stored.aggregator.clock.seconds += waited
    do = send if job is Send else check_before
    await do(stored.run, stored.exchanges, stored.study, job(0, send_at))
    (packet,) = stored.packets
    assert stored.aggregator.posts == [] == stored.aggregator.gets
    assert (packet.status, packet.word, packet.attempts) == (status, word, attempts)
    margin = stored.aggregator.manifest.timetable.margin
    assert status is not Status.QUEUED or max(send_at, window.opens + margin) < packet.send_at < window.closes - margin


@pytest.mark.parametrize("job", [CheckBefore, Send])
def test_a_packet_that_is_held_up_gets_another_time(tmp_path: Path, job: type) -> None:
    """Its own would tie it to the end of the job that was under way."""
    stored, window, send_at = member(tmp_path, 1000.0)
    times = list[float]()
    for _ in range(5):
        (packet,) = stored.packets
        put_off(stored.run, stored.study, job(0, packet.send_at))
        times += [one.send_at for one in stored.packets]
    assert len({send_at, *times}) == 6 and all(send_at < time < window.closes for time in times)


@pytest.mark.parametrize(("why", "status"), [("often", Status.GIVEN_UP), ("behind its window", Status.GIVEN_UP)])
def test_a_packet_that_is_held_up_for_good_is_given_up(tmp_path: Path, why: str, status: Status) -> None:
    after, _waited, attempts, _status, word = HINDRANCES[why]
    stored, _window, send_at = member(tmp_path, after)
    for _ in range(attempts):
        stored.store.attempt(stored.aggregator.study, KEY, send_at)
    put_off(stored.run, stored.study, Send(0, send_at))
    (packet,) = stored.packets
    assert (packet.status, packet.word) == (status, word)
