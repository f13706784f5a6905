"""Fixtures of the aggregator's tests."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from network import Clock, Running, begin, make_app, study_text


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    """An aggregator with a one-packet study with declared cuts."""
    clock = Clock()
    async with make_app(tmp_path / "home", clock) as app:
        yield await begin(app, clock, study_text())
