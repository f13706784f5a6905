"""The village's study texts and typed commands serve here too."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "peer"), str(HERE.parent / "peer_cli")]

from peer_command import Command  # noqa: E402


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("ANONML_PASSPHRASE", raising=False)
    return Command(tmp_path / "home", capsys, monkeypatch)
