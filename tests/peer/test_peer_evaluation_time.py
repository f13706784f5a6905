"""How long a query runs on somebody's data decides nothing that leaves: not whether, not when, not what it costs."""

from pathlib import Path
from typing import Any

import pytest
from test_peer_session import to_the_end
from village import DECLARED, Village, peer

from peer import checking
from peer.schedule import evaluation_allowance
from peer.session import State


@pytest.mark.parametrize("took", [0.0, 50.0], ids=["fast", "slow"])
async def test_packets_are_drawn_from_the_end_of_a_fixed_allowance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, took: float
) -> None:
    village = Village.found(DECLARED)
    started: list[float] = []
    drawn_from: list[float] = []
    evaluated, released = checking.evaluated, checking.Checking._released

    def slowly(*arguments: Any) -> Any:
        started.append(village.clock.seconds)
        village.clock.seconds += took
        return evaluated(*arguments)

    def noted(self: Any, grounds: Any, slots: Any, now: float) -> Any:
        drawn_from.append(now)
        return released(self, grounds, slots, now)

    monkeypatch.setattr(checking, "evaluated", slowly)
    monkeypatch.setattr(checking.Checking, "_released", noted)
    app = peer(tmp_path, village)
    await to_the_end(app, village)
    assert app.status()[0].state is State.FINISHED
    assert drawn_from[0] - started[0] == pytest.approx(evaluation_allowance(village.manifest.timetable), abs=1e-3)
