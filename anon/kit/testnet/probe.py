"""A test of whether a network carries onion services: one of ours, asked through a client until it has answered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anon.errors import Unreachable
from anon.route import Route
from anon.route.direct_and_socks import SocksRoute
from anon.route.tor import Controller
from anon.values import frozen

PATIENCE = 30.0
EACH = 6.0
PAUSE = 0.2
BODY = b"here"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(BODY), BODY)


@frozen
class Probe:
    """An onion service with a tiny HTTP answer behind it."""

    address: str

    async def answered(self, route: Route, patience: float = PATIENCE) -> None:
        """Until it has answered a request. Raises `Unreachable` when it did not within `patience` seconds."""
        deadline = time.monotonic() + patience
        while True:
            try:
                answer = await route.get(self.address, "/", len(BODY))
            except Unreachable:
                if time.monotonic() > deadline:
                    raise Unreachable("the private network stands, but its onion service does not answer") from None
                await asyncio.sleep(PAUSE)
            else:
                if answer.body == BODY:
                    return
                raise Unreachable("another service answered in place of the private network's probe")


@asynccontextmanager
async def serving(controller: Controller) -> AsyncIterator[Probe]:
    """A probe on this tor: a new address each time, gone with the block."""
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    try:
        port = server.sockets[0].getsockname()[1]
        onion = await controller.add_onion("NEW:ED25519-V3", [f"80,127.0.0.1:{port}"], proof_of_work=False)
        yield Probe(f"{onion.service_id}.onion:80")
        await controller.del_onion(onion.service_id)
    finally:
        server.close()


async def first_answer(controller: Controller, socks: tuple[str, int]) -> None:
    """Until a service on this tor has answered through its own SOCKS port: three relays to the meeting point, and three
    from it."""
    async with serving(controller) as probe:
        await probe.answered(SocksRoute(*socks, timeout=EACH))


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER)
        await writer.drain()
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        pass
    finally:
        writer.close()
