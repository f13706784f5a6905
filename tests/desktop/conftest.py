"""Makes the peer's own test folders importable, and gives a user whose configuration is a temporary folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parents[1] / "peer_cli"), str(Path(__file__).parents[1] / "peer")]

from peer_command import Command, Served, serving  # noqa: E402


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's own folder, with a space, a per cent sign, a dollar and a letter beyond ASCII in its name."""
    folder = tmp_path / "Zoë %h $HOME"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.delenv("ANONML_TOR", raising=False)
    monkeypatch.delenv("ANONML_TORRC", raising=False)
    return folder


@pytest.fixture
def command(user: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("ANONML_PASSPHRASE", raising=False)
    return Command(user / "home", capsys, monkeypatch)


@pytest.fixture
def served() -> Iterator[Served]:
    with serving() as found:
        yield found
