"""An exchange is one connection, however the other side ends it. An aggregator that hung up had every fetch repeated at
once: it chose when a peer's machine connects, as often again as the peer had drawn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from anon.errors import Unreachable
from anon.route import DirectRoute
from tests.support.patience import turns

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd"
ENDS = {
    "before the request": (False, b""),
    "after the request": (True, b""),
    "after an empty line": (True, b"\r\n\r\n"),
    "in the head": (True, ANSWER[:20]),
    "in the body": (True, ANSWER[:-2]),
    "with a redirect": (True, b"HTTP/1.1 307 x\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n"),
    "by nothing that is HTTP": (True, b"\x00\xff" * 50),
}


@asynccontextmanager
async def listening(reads: bool, says: bytes) -> AsyncIterator[tuple[str, list[int]]]:
    """An aggregator that ends every exchange so: its address, and an entry for each connection."""
    connected: list[int] = []

    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected.append(len(connected))
        if reads:
            await reader.readuntil(b"\r\n\r\n")
        writer.write(says)
        writer.close()

    async with await asyncio.start_server(exchange, "127.0.0.1", 0) as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", connected


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("method", ["get", "post"])
async def test_an_exchange_that_is_cut_off_is_not_repeated(method: str, end: str) -> None:
    route = DirectRoute(timeout=20.0)
    async with listening(*ENDS[end]) as (address, connected):
        try:
            exchange = route.get(address, "/x", 100) if method == "get" else route.post(address, "/x", b"b" * 9000, 100)
            answer = await exchange
        except Unreachable:
            answer = None
        await turns()
        assert len(connected) == 1
        assert answer is None or answer.status == 307
