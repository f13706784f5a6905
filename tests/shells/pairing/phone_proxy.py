"""A SOCKS5 proxy (RFC 1928) in the place of a phone's tor: it hands every connection to pairing's socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

PORT = 80
"""The only one that the onion service has. Chromium first tries 443 for an address that is opened, then this."""
REFUSED = 5


@asynccontextmanager
async def phone_proxy(socket: Path) -> AsyncIterator[int]:
    """Its port on loopback. Hosts are told apart by the listener, not here."""
    tasks: set[asyncio.Task[None]] = set()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with suppress(OSError, asyncio.IncompleteReadError):
            await _greet(reader, writer)
            inner_reader, inner_writer = await asyncio.open_unix_connection(str(socket))
            await asyncio.gather(_pump(reader, inner_writer), _pump(inner_reader, writer))
        tasks.discard(task)

    server = await asyncio.start_server(carry, "127.0.0.1", 0)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    _, methods = await reader.readexactly(2)
    await reader.readexactly(methods)
    writer.write(b"\x05\x00")
    _, command, _, kind = await reader.readexactly(4)
    assert (command, kind) == (1, 3), "a browser of a phone names its host"
    [length] = await reader.readexactly(1)
    await reader.readexactly(length)
    served = int.from_bytes(await reader.readexactly(2)) == PORT
    writer.write(bytes([5, 0 if served else REFUSED, 0, 1]) + bytes(6))
    if not served:
        writer.close()
        raise ConnectionRefusedError


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    writer.close()
