"""Fixtures of the desk's tests: an aggregator with a study, its desk, and a browser of few abilities."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "aggregator"))

from desk_browser import Desk, opened
from network import Clock, begin, make_app, study_text


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """A desk beside an aggregator with one study that enrols."""
    clock = Clock()
    async with make_app(tmp_path / "home", clock) as app:
        running = await begin(app, clock, study_text())
        async with opened(app, running) as found:
            yield found
