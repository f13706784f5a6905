"""Requests over a few connections that stay open: a driver in place of peers has no reason to open one for each.

An aggregator closes a connection after a while. A request that was under way on it is sent again on a new one.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from attrs import define, field

from anon.wire.replies import parse_reply

MOST_TRIES = 3


@define
class Connection:
    """One, to a port of this machine; opened when it is first used."""

    port: int
    _reader: asyncio.StreamReader | None = field(default=None, init=False)
    _writer: asyncio.StreamWriter | None = field(default=None, init=False)

    async def get(self, path: str) -> bytes:
        """The body. Raises `RuntimeError` for an answer other than 200."""
        return await self._exchange(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())

    async def post(self, path: str, body: bytes) -> str:
        """The answer's word."""
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n"
        return parse_reply(await self._exchange(head.encode() + body))

    def close(self) -> None:
        """Nothing is open afterwards."""
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None

    async def _exchange(self, request: bytes) -> bytes:
        for tried in range(1, MOST_TRIES + 1):
            try:
                return await self._once(request)
            except (OSError, asyncio.IncompleteReadError):
                self.close()
                if tried == MOST_TRIES:
                    raise
        raise AssertionError("unreachable")

    async def _once(self, request: bytes) -> bytes:
        if self._reader is None or self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self.port)
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        status, *lines = head.lower().split(b"\r\n")
        if status.split()[1] != b"200":
            raise RuntimeError(f"answered {status!r}")
        lengths = [int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:")]
        return await self._reader.readexactly(lengths[0])


async def post_all(
    port: int, path: str, bodies: Iterable[bytes], at_once: int, twice: Callable[[int], bool] = lambda _number: False
) -> Counter[str]:
    """Post each body, `at_once` of them at a time, some of them again after their answer; how often each word came."""
    words: Counter[str] = Counter()
    numbered = enumerate(bodies)

    async def work() -> None:
        connection = Connection(port)
        try:
            for number, body in _taken(numbered):
                for _ in range(2 if twice(number) else 1):
                    words[await connection.post(path, body)] += 1
        finally:
            connection.close()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(at_once):
            tasks.create_task(work())
    return words


def _taken(numbered: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """The next ones; workers that share an iterator divide it among them."""
    yield from numbered
