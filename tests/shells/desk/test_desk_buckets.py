"""The desk of a study whose documents are in buckets: its audit reads them, and its archive has them."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path

import pytest

from aggregator.audit import audit
from aggregator.audit.exporting import export_study
from aggregator.desk.archive import archive
from aggregator.desk.views import studies
from aggregator.intake.workers import Workers
from anon.transparency import buckets
from tests.support.world import in_memory, study_text


@pytest.mark.slow
async def test_a_study_in_buckets_is_audited_and_archived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buckets, "THRESHOLD", 4)
    monkeypatch.setattr(buckets, "MEAN", 2)
    async with in_memory(tmp_path / "home", study_text()) as world:
        await world.collected(6)
        await world.go_to(world.closes)
        assert world.live.rostered >= 4
        assert "everything published fits together" in await studies._audit(world.live, Workers(0))
        await export_study(world.live, tmp_path / "out")
    with tempfile.TemporaryFile() as packed:
        archive(tmp_path / "out", packed)
        with zipfile.ZipFile(packed) as found:
            assert [name for name in found.namelist() if name.startswith("contents/")] == [
                f"contents/{number}/{bucket}" for number in (1, 3, 4) for bucket in range(2)
            ]
            found.extractall(tmp_path / "again")
    assert audit(tmp_path / "again").ok
