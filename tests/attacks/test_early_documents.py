"""An aggregator that shows a peer alone a document before its time, so that its packets come at times of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import define

from peer.app import PeerApp
from peer.store.records import PacketKey
from tests.attacks.test_silence import Machine, sent_at
from tests.support.documents import heads_answer
from tests.support.fake_aggregator import DECLARED, FakeAggregator

DAY = DECLARED.replace('enrol = "1h"', 'enrol = "1d"')


@define
class Ahead(FakeAggregator):
    """Tells whoever asks for the time one that is so many seconds ahead."""

    ahead: float = 0.0

    def heads(self, what: str) -> bytes:
        return heads_answer(what, self.chain, self.bodies, self.manifest, self.clock() + self.ahead)


async def enrolled(folder: Path, text: str) -> tuple[Machine, PeerApp]:
    aggregator = Ahead.with_study(text)
    aggregator.clock.seconds += 600.0
    machine = Machine(aggregator)  # its clock is right
    app = machine.started(folder)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    aggregator.crowd(4)
    await app.step(aggregator.study)
    return machine, app


@pytest.mark.parametrize(("collect", "ahead", "sent"), [("1h", 0.0, 1), ("1h", 7200.0, 0), ("2d", 7200.0, 1)])
async def test_a_roster_shown_early_makes_no_packet_leave_before_its_window(
    tmp_path: Path, collect: str, ahead: float, sent: int
) -> None:
    """The aggregator closes the roster within, shows it to whoever looks first, and lies about the time. That peer's
    clock is right, and no other packet comes before the window opens: an early one would be known for that peer's, and
    so would its next."""
    machine, app = await enrolled(tmp_path, DAY.replace('collect = "1h"', f'collect = "{collect}"'))
    aggregator = machine.aggregator
    aggregator.ahead = ahead
    aggregator.close(early=True)
    window, margin = aggregator.manifest.windows[0], aggregator.manifest.timetable.margin
    await machine.live(app, window.closes)
    assert "behind" in app.store.troubles(aggregator.study).told()
    assert [at for at in sent_at(aggregator) if not window.opens + margin <= at <= window.closes - margin] == []
    assert len(sent_at(aggregator)) == sent
    app.close()


async def test_a_time_that_no_early_roster_proves_moves_nothing(tmp_path: Path) -> None:
    machine, app = await enrolled(tmp_path, DAY)
    aggregator = machine.aggregator
    clock = app._following.runner(aggregator.study)._run.now
    before = clock()
    clock.compare(aggregator.manifest, aggregator.chain, before + 86400.0)
    assert (clock(), clock.behind) == (before, 0.0)
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
