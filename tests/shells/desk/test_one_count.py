"""Desk, `status`, `serve` and `--json` show the same counts by one rule: in steps of 50 while they grow (design section
8)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aggregator.cli.main import app as commands
from aggregator.cli.serve import ServeReporter, Serving
from aggregator.desk.study_view import facts_of
from aggregator.opening import study_status
from aggregator.rules.counters import STEP, Count
from tests.support.desk_browser import opened, words_of
from tests.support.world import World, in_memory, study_text

PEOPLE = 5


async def _lines(running: World, home: Path, capsys: pytest.CaptureFixture[str]) -> str:
    asked = Serving(home, "127.0.0.1", 0, False, False, 0, False, False)
    (status,) = await running.app.status()
    ServeReporter(running.app, asked)._phase(status)
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
async def test_five_who_enrolled_are_as_many_on_every_surface(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    async with in_memory(home, study_text()) as running:
        peers = await running.enrol(PEOPLE)
        async with opened(running.app, running) as desk:
            page = words_of((await desk.get(f"/studies/{running.live.study.hex()}")).text)
            (status,) = await running.app.status()
            facts = await facts_of(running.live)
            assert "enrolled fewer than 50" in page and "2 (reached)" in page
            assert (str(status.enrolled), status.enough) == ("fewer than 50", True)
            assert (facts.enrolled, facts.accepted, facts.enrolment_answers) == (status.enrolled, status.accepted, {})
            assert status.enrolment_answers == {}
            assert "enrolling, fewer than 50 enrolled, the minimum is reached" in await _lines(running, home, capsys)
            told = study_status(status)
            assert (told["enrolled"], told["enrolled_exact"], told["enough"]) == (0, False, True)
            await running.close_enrolment(peers)
            (status,) = await running.app.status()
            assert f"enrolled {PEOPLE} minimum" in words_of(
                (await desk.get(f"/studies/{running.live.study.hex()}")).text
            )
            assert str(status.enrolled) == str(PEOPLE) and status.enrolment_answers == {"accepted": PEOPLE}
            assert f"{PEOPLE} enrolled" in await _lines(running, home, capsys)


@pytest.mark.parametrize(("number", "final", "said"), [
    (0, False, "fewer than 50"), (STEP - 1, False, "fewer than 50"), (STEP, False, "50 or more"),
    (149, False, "100 or more"),
    (0, True, "0"), (49, True, "49"), (149, True, "149"),
])
def test_a_count_that_grows_moves_in_steps(number: int, final: bool, said: str) -> None:
    assert str(Count.shown(number, final)) == said


@pytest.mark.slow
async def test_the_table_of_status_says_it_in_words(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "home", study_text()) as running:
        await running.enrol(PEOPLE)
    asked, wide = ["status", "--home", str(tmp_path / "home")], {"COLUMNS": "200"}
    ran = await asyncio.to_thread(CliRunner().invoke, commands, asked, env=wide, catch_exceptions=False)
    assert "fewer than 50" in ran.stdout and "2 (reached)" in ran.stdout
