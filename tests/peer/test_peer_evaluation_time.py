"""How long a query runs on somebody's data decides nothing that leaves: not whether, not when, not what it costs."""

from pathlib import Path
from typing import Any

import pytest

from peer.data.evaluate import at_once
from peer.rules.lifecycle import State
from peer.rules.schedule import evaluation_allowance
from peer.run.departures import DepartureTimes
from tests.support.fake_aggregator import DECLARED, FakeAggregator, peer
from tests.support.whole_lives import life


@pytest.mark.parametrize("took", [0.0, 50.0], ids=["fast", "slow"])
async def test_packets_are_drawn_from_the_end_of_a_fixed_allowance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, took: float
) -> None:
    aggregator = FakeAggregator.with_study(DECLARED)
    started: list[float] = []
    drawn_from: list[float] = []
    times = DepartureTimes.times

    async def slowly(*arguments: Any) -> Any:
        started.append(aggregator.clock.seconds)
        aggregator.clock.seconds += took
        return await at_once(*arguments)

    def noted(departures: DepartureTimes, slots: Any) -> Any:
        drawn_from.append(departures.now)
        return times(departures, slots)

    monkeypatch.setattr(DepartureTimes, "times", noted)
    monkeypatch.setattr("tests.support.fake_aggregator.at_once", slowly)
    app = peer(tmp_path, aggregator)
    await life(app, aggregator)
    assert app.status()[0].state is State.FINISHED
    assert drawn_from[0] - started[0] == pytest.approx(evaluation_allowance(aggregator.manifest.timetable), abs=1e-3)
