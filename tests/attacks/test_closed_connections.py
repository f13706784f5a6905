"""Connections that come and go leave nothing behind: no timer, no handler, no copy of a document."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from aggregator.network import http
from anon.serving import quiet_http
from tests.support.clock import Clock
from tests.support.world import World, begin, make_app, study_text

CONNECTIONS = 300


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[World]:
    clock = Clock()
    async with make_app(tmp_path / "home", clock) as app:
        yield await begin(app, clock, study_text())


def _live_timers() -> int:
    loop: Any = asyncio.get_running_loop()
    return sum(not handle.cancelled() for handle in loop._scheduled)


def _handlers() -> int:
    gc.collect()
    return sum(isinstance(one, quiet_http._Quiet) for one in gc.get_objects())


async def _come_and_go(port: int, said: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(said)
    await writer.drain()
    if said:
        await reader.read()
    writer.close()
    await writer.wait_closed()


@pytest.mark.slow
async def test_closed_connections_leave_no_timer_and_no_handler(running: World) -> None:
    runner, port = await http.start({running.live.study: running.live}, "127.0.0.1", 0)
    before = _live_timers()
    asked = f"GET /v1/{running.live.study.hex()}/heads HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
    try:
        for said in (b"", asked, b"nonsense\r\n\r\n"):
            for _ in range(CONNECTIONS // 3):
                await _come_and_go(port, said)
        for _ in range(200):
            if not runner.server or not runner.server.connections:
                break
            await asyncio.sleep(0.05)
        assert _live_timers() <= before + 5
        assert _handlers() <= 5
    finally:
        await runner.cleanup()


async def test_slow_readers_share_one_copy_of_a_document_that_is_not_kept(
    running: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2,048 connections that read nothing each held a copy of what they had asked for, up to 64 MiB."""
    monkeypatch.setattr("aggregator.study.live._KEPT_BYTES", 0)
    readers = await asyncio.gather(*(running.live.served(0) for _ in range(20)))
    copies = len({id(body.obj) for body in readers if body is not None})
    del readers
    await asyncio.sleep(0)  # the loop holds what woke this test
    gc.collect()
    assert copies == 1
    assert len(running.live._lent) == 0, "nothing is kept for nobody"
