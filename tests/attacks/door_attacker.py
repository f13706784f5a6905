"""A stranger who holds connections to a server of this machine open and renews those that it closes: bounded in count,
rate and time.

    python -m tests.attacks.door_attacker KIND SOCKET PATH HELD RATE SECONDS

HELD connections at once, at most RATE new ones each second. SOCKET is a socket file: nothing else can be attacked. It
prints how many connections it made.
"""

from __future__ import annotations

import asyncio
import resource
import sys
import time
from collections.abc import Callable
from contextlib import suppress

MOST_HELD, MOST_RATE, MOST_SECONDS = 12_000, 5_000, 300.0
HEAD = "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n"
DRIBBLE_SECONDS = 1.0

Begin = Callable[[str], bytes]
KINDS: dict[str, Begin] = {
    "partial posts": lambda path: HEAD.format(path=path, size=200).encode() + b"x",
    "dribbled posts": lambda path: HEAD.format(path=path, size=200).encode(),
    "half heads": lambda path: HEAD.format(path=path, size=200).encode()[:20],
    "other heads": lambda path: f"POST {path} HTTP/1.1\r\nHost: x\r\nX: y\r\nContent-Length: 200\r\n\r\nx".encode(),
    "slow readers": lambda path: f"GET {path.rpartition('/')[0]}/documents/0 HTTP/1.1\r\nHost: x\r\n\r\n".encode(),
    "silence": lambda path: b"",
}


class Held(asyncio.Protocol):
    """One connection of the attacker. `gone` is called when the server has closed it."""

    def __init__(self, begin: bytes, gone: Callable[[Held], None]) -> None:
        self._begin, self._gone = begin, gone
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.pause_reading()  # reads nothing, but is told when the other side aborts
        if self._begin:
            transport.write(self._begin)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._gone(self)


async def attack(kind: str, socket: str, path: str, most: int, rate: int, seconds: float) -> int:
    """The number of connections that were made."""
    loop, held, made, began = asyncio.get_running_loop(), set[Held](), 0, time.monotonic()
    begin, dribbled = KINDS[kind](path), began
    while (now := time.monotonic()) - began < seconds:
        allowed = int((now - began) * rate) - made
        for _ in range(max(0, min(allowed, most - len(held), 200))):
            with suppress(OSError):
                _, one = await loop.create_unix_connection(lambda: Held(begin, held.discard), socket)
                held.add(one)
            made += 1
        if now - dribbled > DRIBBLE_SECONDS:
            dribbled = now
            for one in list(held):
                assert one.transport is not None
                if kind == "dribbled posts":
                    one.transport.write(b"x")
                elif kind != "slow readers":
                    one.transport.resume_reading()  # notices an end
        await asyncio.sleep(0.01)
    return made


if __name__ == "__main__":
    kind, socket, path, most, rate, seconds = sys.argv[1:]
    bounds = min(int(most), MOST_HELD), min(int(rate), MOST_RATE), min(float(seconds), MOST_SECONDS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    print(asyncio.run(attack(kind, socket, path, *bounds)), flush=True)
