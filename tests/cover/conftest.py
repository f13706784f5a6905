"""Makes `town` importable by the tests of this folder, and does not let them wait for held answers."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "aggregator"))


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aggregator.door.ANSWER_SECONDS", 0.0)
