"""The calls to one teller over HTTP (`anon.sharing.exchange`), each repeated a few times while nothing answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from attrs import field, frozen

from anon.crypto.nacl import SigningKey
from anon.errors import Unreachable
from anon.route import Route
from anon.sharing import exchange
from anon.sharing.arrangement import Arrangement, TellerEntry
from anon.sharing.exchange import TellerCall
from anon.wire.packets import Occasion

T = TypeVar("T")
PAUSES = (1.0, 4.0)
"""Seconds before a call is made again. After the last one the study waits, and begins the step anew."""
TELLER_SECONDS = 300.0
"""For one call: a batch of packets through a slow circuit, and the teller's check of it."""


@frozen
class HttpLink:
    """One teller at `address`. `key`: its lasting one, empty while only its entry is asked for; `signing`: the
    aggregator's. See `TellerLink`."""

    route: Route = field(repr=False)
    address: str
    signing: SigningKey = field(repr=False)
    key: bytes = b""
    arrangement: Arrangement | None = field(default=None, repr=False)
    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep, repr=False)

    async def entry(self, name: str, address: str) -> TellerEntry:
        """See `TellerLink`."""
        return await self._answered(exchange.ask_entry(name, address))

    async def countersign(self, manifest: bytes) -> bytes:
        """See `TellerLink`."""
        return await self._answered(exchange.ask_countersign(manifest))

    async def key_shares(self, study: bytes) -> Mapping[int, bytes]:
        """See `TellerLink`."""
        return await self._answered(exchange.ask_key_shares(study))

    async def key_share(self, study: bytes, sender: int, sealed: bytes) -> None:
        """See `TellerLink`."""
        await self._answered(exchange.ask_key_share(study, sender, sealed))

    async def roll(
        self, study: bytes, heads: bytes, roster: bytes, seed: bytes, credentials: bytes, beside: Sequence[bytes]
    ) -> None:
        """See `TellerLink`."""
        await self._answered(exchange.ask_roll(study, heads, roster, seed, credentials, beside))

    async def admit(self, occasion: Occasion, items: Sequence[bytes]) -> tuple[bytes, Mapping[str, int]]:
        """See `TellerLink`."""
        return await self._answered(exchange.ask_admit(occasion, items))

    async def settle(self, occasion: Occasion, statements: Sequence[bytes]) -> frozenset[bytes]:
        """See `TellerLink`."""
        return await self._answered(exchange.ask_settle(occasion, statements))

    async def accepted(self, occasion: Occasion) -> frozenset[bytes]:
        """See `TellerLink`."""
        return await self._answered(exchange.ask_accepted(occasion))

    async def sign_list(self, occasion: Occasion, body: bytes) -> bytes:
        """See `TellerLink`."""
        return await self._answered(exchange.ask_list(occasion, body))

    async def noise(self, occasion: Occasion, signatures: Sequence[bytes]) -> bytes:
        """See `TellerLink`."""
        return await self._answered(exchange.ask_noise(occasion, signatures))

    async def finish(self, study: bytes) -> None:
        """See `TellerLink`."""
        await self._answered(exchange.ask_finish(study))

    async def _answered(self, asked: TellerCall[T]) -> T:
        for pause in PAUSES:
            try:
                return await self._once(asked)
            except Unreachable:
                await self.sleep(pause)
        return await self._once(asked)

    async def _once(self, asked: TellerCall[T]) -> T:
        body = asked.body(self.signing, self.key)
        answer = await self.route.post(self.address, asked.path, body, asked.most_reply)
        return asked.answered(answer.status, answer.body, self.arrangement)
