"""A SOCKS5 server (RFC 1928, 1929) as small as tor's door looks from outside, which records every byte of its
client."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from attrs import define, field


@define
class Heard:
    """One connection: the greeting and the request of SOCKS as sent, the credentials, then all that followed."""

    greeting: bytes = b""
    user: bytes = b""
    password: bytes = b""
    asked: bytes = b""
    request: bytearray = field(factory=bytearray, repr=False)

    @property
    def head(self) -> bytes:
        """The HTTP request's first line and headers, with the empty line."""
        head, mark, _body = bytes(self.request).partition(b"\r\n\r\n")
        return head + mark

    @property
    def body(self) -> bytes:
        """The bytes that followed the headers."""
        return bytes(self.request).partition(b"\r\n\r\n")[2]

    @property
    def kind(self) -> str:
        """The method and the last part of the path: all that may differ between requests of one study."""
        method, path, _version = self.head.split(b"\r\n", 1)[0].decode().split(" ")
        return f"{method} {path.split('/', 3)[3]}"


class SocksRecorder:
    """Listens at a port of its own and connects every request, whatever its name, to `upstream` on this machine."""

    def __init__(self, upstream: int) -> None:
        self._upstream = upstream
        self._server: asyncio.Server | None = None
        self.heard: list[Heard] = []
        self.port = 0

    async def open(self) -> SocksRecorder:
        """Listen."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def close(self) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard = Heard()
        try:
            await self._greet(heard, reader, writer)
            self.heard.append(heard)
            await self._relay(heard, reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _greet(self, heard: Heard, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        start = await reader.readexactly(2)
        heard.greeting = start + await reader.readexactly(start[1])
        writer.write(b"\x05\x02")
        await reader.readexactly(1)
        heard.user = await reader.readexactly((await reader.readexactly(1))[0])
        heard.password = await reader.readexactly((await reader.readexactly(1))[0])
        writer.write(b"\x01\x00")
        asked = await reader.readexactly(5)
        sizes = {1: 4 - 1 + 2, 3: asked[4] + 2, 4: 16 - 1 + 2}
        heard.asked = asked + await reader.readexactly(sizes[asked[3]])
        writer.write(b"\x05\x00\x00\x01" + bytes(6))

    async def _relay(self, heard: Heard, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, out = await asyncio.open_connection("127.0.0.1", self._upstream)
        try:
            back = asyncio.create_task(_copy(there, writer))
            while chunk := await reader.read(65536):
                heard.request += chunk
                out.write(chunk)
                await out.drain()
            await back
        finally:
            out.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()
