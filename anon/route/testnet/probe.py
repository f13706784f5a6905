"""Whether a network carries onion services: one of ours, on the client, asked through the client."""

from __future__ import annotations

import asyncio
import time

from anon.errors import Unreachable
from anon.route.http import SocksRoute
from anon.route.tor.control import Controller

PATIENCE = 30.0
EACH = 6.0
PAUSE = 0.2
BODY = b"here"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(BODY), BODY)


async def first_answer(controller: Controller, socks: tuple[str, int], patience: float = PATIENCE) -> None:
    """Until a new onion service has answered a request through three relays to the rendezvous and three from it.

    Raises `Unreachable` when none came within `patience` seconds.
    """
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        onion = await controller.add_onion("NEW:ED25519-V3", [f"80,127.0.0.1:{port}"], proof_of_work=False)
        await _ask(f"{onion.service_id}.onion:80", SocksRoute(*socks, timeout=EACH), patience)
        await controller.del_onion(onion.service_id)
    finally:
        server.close()


async def _ask(address: str, route: SocksRoute, patience: float) -> None:
    deadline = time.monotonic() + patience
    while True:
        try:
            answer = await route.get(address, "/", len(BODY))
        except Unreachable:
            if time.monotonic() > deadline:
                raise Unreachable("the private network stands, but its onion service does not answer") from None
            await asyncio.sleep(PAUSE)
        else:
            if answer.body == BODY:
                return
            raise Unreachable("another service answered in place of the private network's probe")


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER)
        await writer.drain()
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        pass
    finally:
        writer.close()
