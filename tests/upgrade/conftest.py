"""The homes that an older program left in the middle of two studies, unpacked anew for each test."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from left_homes import Left


@pytest.fixture
def left(tmp_path: Path) -> Left:
    folder = tmp_path / "homes"
    with zipfile.ZipFile(Path(__file__).parent / "homes.zip") as archive:
        archive.extractall(folder)
    return Left(folder, json.loads((folder / "clock.json").read_text()))
