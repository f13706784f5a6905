"""One study's fault stops neither the run nor the others, and its text, which may quote data, is not logged."""

import logging
from pathlib import Path

import pytest

from peer.run.runner import StudyRunner
from tests.support.fake_aggregator import DECLARED, FakeAggregator, peer


async def test_a_fault_in_one_study_does_not_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    aggregator = FakeAggregator.with_study(DECLARED)
    app = peer(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)

    async def broken(self: StudyRunner) -> float | None:
        raise ZeroDivisionError("the owner's age is 41")

    monkeypatch.setattr(StudyRunner, "step", broken)
    with caplog.at_level(logging.ERROR):
        await app.run(once=True)
    assert "ZeroDivisionError" in caplog.text
    assert "owner" not in caplog.text
