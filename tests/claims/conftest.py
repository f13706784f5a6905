"""Makes the peers' village, the aggregator's network and the browsers of both importable by the tests of this folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

_TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(_TESTS / name) for name in ("peer", "peer_cli", "web", "aggregator", "desk")]

from peer_command import Command  # noqa: E402


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("ANONML_PASSPHRASE", raising=False)
    return Command(tmp_path / "home", capsys, monkeypatch)
