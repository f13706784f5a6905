"""A restored aggregator is not served beside the one it was copied from without staff knowing."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aggregator.app import AggregatorApp
from aggregator.cli.main import app as commands
from aggregator.store.duplicate_home import RestoredWord, demand_silent
from aggregator.store.home import backup, restore
from anon.errors import Refused
from anon.storage.home import RESTORED
from tests.support.clock import Clock
from tests.support.routes import Status
from tests.support.world import begin, make_app, study_text


async def _home(folder: Path) -> Clock:
    clock = Clock()
    async with make_app(folder, clock) as app:
        await begin(app, clock, study_text())
    return clock


async def _serves(app: AggregatorApp, restored: int = RestoredWord.NOTHING) -> bool:
    opened = asyncio.Event()
    serving = asyncio.create_task(app.serve("127.0.0.1", 0, lambda _port: opened.set(), restored))
    waiting = asyncio.create_task(opened.wait())
    await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if serving.done():
        await serving  # raises
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    return opened.is_set()


async def _home_and_twin(folder: Path) -> Clock:
    """A home whose study enrols, and beside it what comes out of its backup."""
    clock = await _home(folder / "home")
    backup(folder / "home", folder / "file")
    restore(folder / "file", folder / "twin")
    return clock


async def test_a_restored_home_is_served_only_by_those_who_know(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = await _home_and_twin(tmp_path)
    async with make_app(tmp_path / "home", clock) as app:
        assert await _serves(app), "the original is not in doubt"
    async with make_app(tmp_path / "twin", clock) as app:
        with pytest.raises(Refused, match=r"another copy of this aggregator may be alive.*--restored"):
            await _serves(app)
        assert await _serves(app, restored=True)
        assert any(
            "another copy must never be served" in one.getMessage()
            for one in caplog.records
            if one.levelno >= logging.WARNING
        )
        assert await _serves(app), "once is enough"


async def test_a_home_restored_in_the_middle_of_a_study_goes_on_only_by_a_second_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It would publish a result without what came after the backup, and every audit would find it right."""
    clock = await _home_and_twin(tmp_path)
    async with make_app(tmp_path / "twin", clock) as app:
        (live,) = app.studies()
        clock.seconds = float(live.manifest.surveys[0].window.closes)
        named = live.study.hex()[:8]
        for _ in range(2):
            with pytest.raises(Refused, match=rf"{named}.*lost.*publish these studies anew.*--incomplete"):
                await _serves(app, restored=RestoredWord.ALONE)
        assert live.phase == "enrolling", "nothing was carried on"
        assert await _serves(app, restored=RestoredWord.INCOMPLETE)
    assert any("missing in their results" in one.getMessage() for one in caplog.records)


async def test_a_final_backup_closes_its_home_and_its_copy_is_not_in_doubt(tmp_path: Path) -> None:
    clock = await _home(tmp_path / "home")
    ran = CliRunner().invoke(commands, ["backup", str(tmp_path / "file"), "--final", "--home", str(tmp_path / "home")])
    assert ran.exit_code == 0 and "this home is closed" in ran.output.replace("\n", " ")
    async with make_app(tmp_path / "home", clock) as app:
        with pytest.raises(Refused, match="moved elsewhere"):
            await _serves(app, restored=True)
        assert (await app.status())[0].documents == 1, "what it published can still be read"
    ran = CliRunner().invoke(commands, ["restore", str(tmp_path / "file"), "--home", str(tmp_path / "new")])
    assert ran.exit_code == 0 and "may be alive" not in ran.output
    async with make_app(tmp_path / "new", clock) as app:
        assert await _serves(app)


async def test_restoring_says_it_loudly(tmp_path: Path) -> None:
    await _home(tmp_path / "home")
    backup(tmp_path / "home", tmp_path / "file")
    ran = CliRunner().invoke(commands, ["restore", str(tmp_path / "file"), "--home", str(tmp_path / "new")])
    assert "Another copy of this aggregator may be alive" in ran.output.replace("\n", " ")
    assert (tmp_path / "new" / RESTORED).exists()


async def test_a_final_backup_is_refused_while_the_home_is_served(tmp_path: Path) -> None:
    clock = await _home(tmp_path / "home")
    async with make_app(tmp_path / "home", clock) as app:
        held = app.home.lock()
        with pytest.raises(Refused, match="another process"):
            backup(tmp_path / "home", tmp_path / "file", final=True)
        held.close()
        backup(tmp_path / "home", tmp_path / "other")
        assert await _serves(app), "nothing was closed"


@pytest.mark.parametrize(("status", "said"), [(200, "serves the same studies"), (404, "answers")])
async def test_another_copy_that_answers_at_the_address_is_seen(status: int, said: str) -> None:
    network = Status(status)
    with pytest.raises(Refused, match=f"another copy of this aggregator {said} at x.onion:80"):
        await demand_silent("x.onion:80", [bytes(32)], network)
    assert network.asked == [f"x.onion:80/v1/{bytes(32).hex()}/heads"]


async def test_silence_at_the_address_lets_it_be_served() -> None:
    await demand_silent("x.onion:80", [bytes(32)], Status())
