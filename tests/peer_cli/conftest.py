"""Makes `village` and `peer_command` importable by the tests of this folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "peer")]

from peer_command import Command, Served, serving  # noqa: E402


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("ANONML_PASSPHRASE", raising=False)
    return Command(tmp_path / "home", capsys, monkeypatch)


@pytest.fixture
def served() -> Iterator[Served]:
    with serving() as found:
        yield found
