"""Which circuit of tor carried which packet, as tor itself reports it on its control port.

Tor names each stream's SOCKS user in its STREAM events, and each circuit's purpose in its CIRC and CIRC_MINOR events
(control-spec, sections 4.1.1, 4.1.2 and 4.1.16). A packet's exchange is known by the random user that it was given.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp_socks import ProxyConnector, ProxyType
from attrs import define, field

from anon.route import Response
from anon.route.tor import Controller, Events, TorEvent, TorKeeper, TorRoute

RENDEZVOUS = "HS_CLIENT_REND"
CONTROLS = 20
_SETTLING = 0.5


@define
class CircuitLog:
    """The events of tor about streams and circuits so far, and the users of the exchanges that carried packets."""

    packets: list[str] = field(factory=list)
    circuits: dict[str, set[str]] = field(factory=lambda: defaultdict(set))
    purposes: dict[str, str] = field(factory=dict)

    @asynccontextmanager
    async def following(self, controller: Controller) -> AsyncIterator[None]:
        """Note every stream and circuit of this tor inside the block."""
        async with controller.watching("STREAM", "CIRC", "CIRC_MINOR") as events:
            noting = asyncio.create_task(self._note(events))
            try:
                yield
            finally:
                noting.cancel()
                await asyncio.gather(noting, return_exceptions=True)

    async def _note(self, events: Events) -> None:
        async for event in events:
            self.heard(event)

    def heard(self, event: TorEvent) -> None:
        """Take one event."""
        words, pairs = event.arguments()
        if event.name == "STREAM" and words[1] in ("SENTCONNECT", "SUCCEEDED") and "SOCKS_USERNAME" in pairs:
            self.circuits[pairs["SOCKS_USERNAME"]].add(words[2])
        elif event.name in ("CIRC", "CIRC_MINOR") and "PURPOSE" in pairs:
            self.purposes[words[0]] = pairs["PURPOSE"]

    def of(self, users: list[str]) -> set[str]:
        """The rendezvous circuits that carried the exchanges of these users."""
        found = {circuit for user in users for circuit in self.circuits.get(user, ())}
        return {circuit for circuit in found if self.purposes.get(circuit) == RENDEZVOUS}

    async def figures(self) -> dict[str, int]:
        """Attempts at packets whose connection tor made, and the distinct circuits they went over."""
        await asyncio.sleep(_SETTLING)  # the last events
        carried = [user for user in self.packets if self.circuits.get(user)]
        return {"packet_connections": len(carried), "packet_circuits": len(self.of(carried))}


class WatchedRoute:
    """`TorRoute`, one for each exchange, that tells the log which user carried a packet. At most `gate` at once."""

    def __init__(self, keeper: TorKeeper, gate: asyncio.Semaphore, log: CircuitLog) -> None:
        self._keeper = keeper
        self._gate = gate
        self._log = log

    async def ready(self, address: str) -> None:
        """See `Starting.ready`."""
        await TorRoute(self._keeper).ready(address)

    async def get(self, address: str, path: str, limit: int) -> Response:
        """See `Route.get`."""
        async with self._gate:
            return await TorRoute(self._keeper).get(address, path, limit)

    async def post(self, address: str, path: str, body: bytes, limit: int) -> Response:
        """See `Route.post`."""
        async with self._gate:
            draw = self._noting() if path.endswith("/packets") else os.urandom
            return await TorRoute(self._keeper, random_bytes=draw).post(address, path, body, limit)

    def _noting(self) -> Callable[[int], bytes]:
        """The operating system's random bytes; the first drawn are the user."""
        drawn: list[bytes] = []

        def draw(size: int) -> bytes:
            drawn.append(os.urandom(size))
            if len(drawn) == 1:
                self._log.packets.append(drawn[0].hex())
            return drawn[-1]

        return draw


async def negative_control(keeper: TorKeeper, log: CircuitLog, address: str, path: str) -> dict[str, int]:
    """The log's record of 20 requests over one kept connection with one user: one circuit."""
    host, port = await keeper.socks()
    user = os.urandom(16).hex()
    proxy: Any = ProxyConnector(
        proxy_type=ProxyType.SOCKS5, host=host, port=port, username=user, password=user, rdns=True, limit=1
    )
    answered = 0
    async with aiohttp.ClientSession(connector=proxy, timeout=aiohttp.ClientTimeout(total=120)) as session:
        for _ in range(CONTROLS):
            async with session.get(f"http://{address}{path}") as response:
                await response.read()
                answered += response.status == 200
    await asyncio.sleep(_SETTLING)
    return {"control_requests": answered, "control_circuits": len(log.of([user]))}
