"""Calls that are given up: asyncio reports no fault of theirs as forgotten, a line that an owner would see."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from unittest.mock import AsyncMock, Mock

import pytest

from anon.errors import Unreachable
from anon.route import DirectRoute
from anon.route.tor.control import Controller


@pytest.fixture(autouse=True)
async def forgotten() -> AsyncIterator[list[object]]:
    """The faults that asyncio reports; there is none at the end."""
    found = list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: found.append(context))
    yield found
    await asyncio.sleep(0.01)
    gc.collect()
    assert not found


async def test_an_exchange_at_any_moment() -> None:
    """Cancelled after each number of turns of the loop, that of making the connection included."""
    server = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0)
    address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        for turns in range(12):
            asked = asyncio.create_task(DirectRoute().get(address, "/", 10))
            for _ in range(turns):
                await asyncio.sleep(0)
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
            del asked
            await asyncio.sleep(0.01)


async def test_a_command_to_tor_that_cannot_be_written() -> None:
    writer = Mock(drain=AsyncMock(side_effect=ConnectionResetError), wait_closed=AsyncMock())
    control = Controller(asyncio.StreamReader(), writer)
    with pytest.raises(Unreachable, match="control port closed"):
        await control.command("GETINFO version")
    await control.close()
