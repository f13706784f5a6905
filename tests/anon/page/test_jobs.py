"""Jobs of pages: one of a name at a time, and nothing of a failed one reaches a log."""

from __future__ import annotations

import asyncio
import gc
import logging

import pytest

from anon.errors import Refused
from anon.kit.page.jobs import Jobs, Outcome
from tests.support.patience import PATIENCE


async def number(value: int, until: asyncio.Event | None = None) -> int:
    if until is not None:
        await until.wait()
    return value


async def test_a_job_is_begun_once_and_kept_until_it_is_forgotten_or_begun_anew() -> None:
    jobs, until = Jobs(), asyncio.Event()
    first = jobs.begin("a", lambda: number(1, until))
    assert jobs.begin("a", lambda: number(2)) is jobs.begin_anew("a", lambda: number(3)) is first
    assert jobs.outcome("a") == Outcome("running") and jobs.unfinished("a") == ["a"] and jobs.unfinished("b") == []
    until.set()
    assert await first == 1 and jobs.outcome("a") == Outcome("done", 1)
    assert await jobs.begin("a", lambda: number(4)) == 1, "its result is kept"
    assert await jobs.begin_anew("a", lambda: number(5)) == 5
    jobs.forget("a")
    assert jobs.get("a") is None and jobs.outcome("a") is None


async def test_closing_ends_what_is_under_way() -> None:
    jobs = Jobs()
    task = jobs.begin("a", lambda: number(1, asyncio.Event()))
    await asyncio.wait_for(jobs.close(), PATIENCE)
    assert task.cancelled() and jobs.names() == []


async def test_a_failed_job_that_nobody_looks_at_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def fails(error: Exception) -> None:
        raise error

    jobs = Jobs()
    with caplog.at_level(logging.DEBUG):
        jobs.begin("refused", lambda: fails(Refused("no room")))
        jobs.begin("crashed", lambda: fails(ValueError("somebody's data")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert jobs.outcome("refused") == Outcome("failed", fault="no room")
        jobs.begin_anew("crashed", lambda: number(1))
        gc.collect()
    assert "somebody's data" not in caplog.text
    assert await jobs.begin("crashed", lambda: number(2)) == 1
