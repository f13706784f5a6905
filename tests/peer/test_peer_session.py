"""A whole study of one peer against the aggregator in memory."""

from pathlib import Path

import pytest

from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from tests.support.fake_aggregator import BINNED, DECLARED, PAPER, FakeAggregator, peer, stored
from tests.support.whole_lives import life


@pytest.mark.parametrize(("text", "packets"), [(DECLARED, 1), (BINNED, 1), (PAPER, 3)])
async def test_every_slot_is_sent_once_and_found_in_the_transcript(
    tmp_path: Path, text: str, packets: int
) -> None:
    aggregator = FakeAggregator.with_study(text)
    app = peer(tmp_path, aggregator)
    await life(app, aggregator)
    (status,) = app.status()
    assert status.state is State.FINISHED, status.reason
    assert [slot.status for slot in status.slots] == [Status.INCLUDED] * packets
    assert len(aggregator.sent("packets")) == packets
    assert status.reserved == 0
    assert status.spent == sum(slot.epsilon for slot in status.slots) > 0
    assert all(slot.sealed is None and slot.digest is None for slot in status.slots)
    assert stored(app, aggregator.study, "secrets") is None
