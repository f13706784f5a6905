"""An aggregator that shows a peer alone a document before its time, so that its packets come at times of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from peer.app import PeerApp
from peer.store.records import PacketKey
from tests.attacks.test_silence import Machine, sent_at
from tests.support.fake_aggregator import DECLARED, FakeAggregator

DAY = DECLARED.replace('enrol = "1h"', 'enrol = "1d"')


async def enrolled(folder: Path, text: str) -> tuple[Machine, PeerApp]:
    aggregator = FakeAggregator.with_study(text)
    aggregator.clock.seconds += 600.0
    machine = Machine(aggregator)  # its clock is right
    app = machine.started(folder)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    aggregator.crowd(4)
    await app.step(aggregator.study)
    return machine, app


@pytest.mark.parametrize("collect", ["1h", "2d"])
async def test_a_roster_shown_early_makes_no_packet_leave_before_its_window(tmp_path: Path, collect: str) -> None:
    """The aggregator closes the roster within, and shows it to whoever looks first. That peer's clock is right, and no
    other packet comes before the window opens: an early one would be known for that peer's, and so would its next."""
    machine, app = await enrolled(tmp_path, DAY.replace('collect = "1h"', f'collect = "{collect}"'))
    aggregator = machine.aggregator
    aggregator.close(early=True)
    window, margin = aggregator.manifest.windows[0], aggregator.manifest.timetable.margin
    await machine.live(app, window.closes)
    assert "behind" in app.store.troubles(aggregator.study).told()
    assert [at for at in sent_at(aggregator) if not window.opens + margin <= at <= window.closes - margin] == []
    assert len(sent_at(aggregator)) == (collect == "2d")
    app.close()


async def test_a_document_shown_early_once_packets_wait_sends_none_before_its_window(tmp_path: Path) -> None:
    """The packet was drawn by the right clock, and only then a look brings what seems to come from later."""
    machine, app = await enrolled(tmp_path, DAY.replace('collect = "1h"', 'collect = "2d"'))
    aggregator = machine.aggregator
    table, window = aggregator.manifest.timetable, aggregator.manifest.windows[0]
    await machine.live(app, table.enrol_closes)
    aggregator.close(early=True)
    await machine.live(app, table.settled)
    runner = app._following.runner(aggregator.study)
    # As a transcript's head would have it.
    runner._run.now._behind = window.closes - table.margin - 60 - aggregator.clock()
    app.store.redraw(aggregator.study, PacketKey(0, 0), window.closes - table.margin - 30)
    await machine.live(app, window.closes)
    assert [at for at in sent_at(aggregator) if at < window.opens + table.margin] == []
    app.close()
