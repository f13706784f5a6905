"""A recording wire between one peer and the aggregator: every byte that left, and every answer that came back."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from attrs import define, field

from anon.errors import Malformed
from anon.wire.replies import REPLY_BYTES, parse_reply

_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")


@define
class Exchange:
    """One request: the last part of its path, its body, and the answer's body once it was handed back whole."""

    what: str
    body: bytes = field(repr=False)
    answer: bytes | None = field(default=None, repr=False)

    @property
    def word(self) -> str | None:
        """The aggregator's word that the peer was given, if any."""
        if self.answer is None or len(self.answer) != REPLY_BYTES:
            return None
        try:
            return parse_reply(self.answer)
        except Malformed:
            return None


class Wire:
    """Listens where the peer's invite points, and passes on to wherever the aggregator listens now.

    `deaf` names requests that are not answered: the connection is closed.
    """

    def __init__(self, upstream: Callable[[], int | None]) -> None:
        self._upstream = upstream
        self.exchanges: list[Exchange] = []
        self.deaf: set[str] = set()
        self.address = ""
        self._server: asyncio.Server | None = None

    async def open(self) -> Wire:
        """Listen at a free port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    def close(self) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.close()

    def bodies(self, what: str) -> list[bytes]:
        """The bodies of this kind that were sent, in order."""
        return [one.body for one in self.exchanges if one.what == what]

    def acknowledged(self, what: str = "packets") -> list[bytes]:
        """The bodies that the peer was told are accepted."""
        return [one.body for one in self.exchanges if one.what == what and one.word == "accepted"]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._pass_on(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        body = await reader.readexactly(int(length[1])) if length else b""
        exchange = Exchange(head.split(b" ", 2)[1].decode().split("/", 3)[3], body)
        self.exchanges.append(exchange)
        port = self._upstream()
        if port is None or self.deaf & {exchange.what, exchange.what.partition("/")[0]}:
            return
        answer = await _answer(port, head + body)
        writer.write(answer)
        await writer.drain()
        exchange.answer = answer.partition(b"\r\n\r\n")[2] or None


async def _answer(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        return await reader.read()
    finally:
        writer.close()
