"""Data of more than can be copied for an evaluation: all values are missing then, and the owner is told before the
yes."""

from __future__ import annotations

from pathlib import Path

import pytest

from anon.study.features import Table
from peer.data import readiness
from peer.data.importing import import_rows
from peer.data.readiness import own_data

READ = [Table("log", ("place", "note"))]


def filled(folder: Path) -> Path:
    """3,000 rows, the later the longer: 0.9 MB in the column `note`, as much in one that no study reads."""
    database = folder / "data.sqlite"
    rows = [(number, "x" * (number // 5), "y" * (number // 5)) for number in range(3000)]
    import_rows(database, "log", ("place", "note", "diary"), rows)
    return database


@pytest.mark.parametrize(("limit", "told"), [(700_000, True), (1_200_000, False), (2**31, False)])
def test_columns_that_hold_more_than_can_be_copied_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, told: bool
) -> None:
    monkeypatch.setattr(readiness, "COPY_MEMORY", limit)
    own = own_data(filled(tmp_path), READ)
    assert bool(own.too_large) == told == bool(own.warnings)
    if told:
        assert 800_000 < own.too_large < 1_100_000
        assert "GB cannot be looked at" in own.warnings[-1] and "anonml peer import" in own.warnings[-1]


def test_what_cannot_be_measured_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It never raises: no file, a table that is not there or is empty, and a file that is no database."""
    monkeypatch.setattr(readiness, "COPY_MEMORY", 0)
    database = filled(tmp_path)
    import_rows(database, "log", ("place", "note"), [])
    for file in (database, tmp_path / "none"):
        assert own_data(file, [*READ, Table("other", ("x",))]).too_large == 0
    (tmp_path / "broken").write_bytes(b"no database" * 1000)
    assert own_data(tmp_path / "broken", READ).too_large == 0
