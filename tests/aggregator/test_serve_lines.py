"""The lines of `serve`: one for a phase, and while people enrol one more from time to time."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from aggregator.cli import serve
from aggregator.cli.serve import ServeReporter, Serving
from aggregator.rules.counters import Count
from tests.support.world import in_memory, study_text


async def test_a_count_that_moved_is_said_again_but_not_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr(serve.time, "monotonic", lambda: clock[0])
    async with in_memory(tmp_path / "home", study_text()) as running:
        (status,) = await running.app.status()
        for as_json in (False, True):
            asked = Serving(tmp_path / "home", "127.0.0.1", 0, False, False, 0, False, as_json)
            teller, grown = ServeReporter(running.app, asked), evolve(status, enrolled=Count.shown(50, final=False))
            assert teller.is_news(status) and not teller.is_news(status)
            assert not teller.is_news(grown), "at most one line in five seconds"
            clock[0] += serve.REPEATED
            assert not teller.is_news(status) and teller.is_news(grown) is not as_json
