"""A user whose configuration is a temporary folder: what these tests write reaches no real home."""

from __future__ import annotations

from pathlib import Path

import pytest


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
