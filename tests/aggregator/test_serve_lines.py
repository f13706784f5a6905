"""The lines of `serve`: one for a phase, and while people enrol one more from time to time."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve

from aggregator.cli import serve
from aggregator.cli.serve import ServeReporter, Serving
from aggregator.rules.counters import Count
from anon.kit.terminal import logs
from tests.support.world import in_memory, study_text


async def test_a_count_that_moved_is_said_again_but_not_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr(serve.time, "monotonic", lambda: clock[0])
    async with in_memory(tmp_path / "home", study_text()) as running:
        (status,) = await running.app.status()
        for as_json in (False, True):
            asked = Serving(tmp_path / "home", "127.0.0.1", 0, False, False, 0, False, as_json)
            teller, grown = ServeReporter(running.app, asked), evolve(status, enrolled=Count.shown(50, final=False))
            assert teller.is_news(status) and not teller.is_news(status)
            assert not teller.is_news(grown), "at most one line in five seconds"
            clock[0] += serve.REPEATED
            assert not teller.is_news(status) and teller.is_news(grown) is not as_json


async def test_a_line_has_its_second_and_a_count_that_moved_its_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody's enrolment moves it: what the line says of that must not become exact by its time."""
    steady = [100.0]
    monkeypatch.setattr(serve.time, "monotonic", lambda: steady[0])
    monkeypatch.setattr(logs.time, "time", lambda: 1_800_000_000.9)
    async with in_memory(tmp_path / "home", study_text()) as running:
        (status,) = await running.app.status()
        for as_json in (False, True):
            asked = Serving(tmp_path / "home", "127.0.0.1", 0, False, False, 0, False, as_json)
            teller = ServeReporter(running.app, asked)
            teller.listening("127.0.0.1:8750")
            teller.say("tor has ended")
            for changed in ({}, {"enrolled": Count.shown(50, final=False)}, {"phase": "settling"}):
                await teller._tell(evolve(status, **changed))
                steady[0] += serve.REPEATED
            said = capsys.readouterr()
            if as_json:
                assert [line[0] for line in said.out.splitlines()] == ["{"] * 3 and not said.err
                continue
            begins = [line.partition(" ")[0] for line in said.out.splitlines()]
            assert begins == [*["2027-01-15T08:00:00Z"] * 4, "2027-01-15T08Z", "2027-01-15T08:00:00Z"]
            assert said.err == "2027-01-15T08:00:00Z tor has ended\n"


@pytest.mark.parametrize("as_json", [False, True])
def test_the_last_line_says_that_it_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    async def stopped(*_: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()

    monkeypatch.setattr(serve, "_serve", stopped)
    monkeypatch.setattr(serve, "wiring_of", lambda _: None)
    monkeypatch.setattr(logs.time, "time", lambda: 1_800_000_000.0)
    serve.serve(SimpleNamespace(), tmp_path, None, None, as_json=as_json)  # type: ignore[arg-type]
    assert capsys.readouterr().out == ("" if as_json else "2027-01-15T08:00:00Z stopped; nothing is lost\n")
