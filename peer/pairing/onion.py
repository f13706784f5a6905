"""Pairing's place in Tor: a tor of its own, and one onion service that only phones with a key can find."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from anon.errors import Refused, Unreachable
from anon.route.tor import Events, Onion, TorProcess, extra_lines
from anon.route.tor.following import telling
from anon.route.tor.torrc import quiet_lines, quoted_path
from anon.wire.onion_address import SUFFIX
from peer.pairing.client_key import ClientKey

BOOTSTRAP_SECONDS = 120.0
PUBLISH_SECONDS = 180.0
_PORT = 80
_NEW = "NEW:ED25519-V3"


def torrc_of_pairing(data: Path, extra: Sequence[str]) -> str:
    """The torrc of a tor that carries one onion service and nobody's traffic: it has no SOCKS port."""
    lines = (f"DataDirectory {quoted_path(data.absolute())}", "SocksPort 0", "ClientOnly 1", *quiet_lines(), *extra, "")
    return "\n".join(lines)


class PhoneOnion:
    """One onion service whose key was drawn by tor for this time, and is kept in memory only.

    Without a client key it does not exist: an onion service without one would be open to whoever knows its address.
    """

    def __init__(self, tor: TorProcess, socket: Path) -> None:
        self._tor = tor
        self._target = f"{_PORT},unix:{socket}"
        self._onion: Onion | None = None

    @classmethod
    async def start(cls, folder: Path, socket: Path, progress: Callable[[str], None] = lambda line: None) -> PhoneOnion:
        """A tor of its own in `folder`, connected, without a service yet. Requests will be handed to `socket`.

        Raises `Unreachable` with phase, reason and next action, `Refused` when there is no tor.
        """
        tor = await TorProcess.start(torrc_of_pairing(folder, extra_lines()), folder)
        try:
            await telling(tor.bootstrap(BOOTSTRAP_SECONDS), lambda: tor.state.progress, progress)
        except BaseException:
            await tor.stop()
            raise
        return cls(tor, socket)

    @property
    def alive(self) -> bool:
        """True if its tor runs."""
        return self._tor.alive

    @property
    def pid(self) -> int:
        """Of its tor."""
        return self._tor.pid

    async def open(self, keys: Sequence[ClientKey]) -> str:
        """Begin the service for these phones; its host, once tor has it. Raises `Unreachable` or `Refused`."""
        self._onion = await self._add(_NEW, keys)
        return self._onion.service_id + SUFFIX

    async def narrow(self, keys: Sequence[ClientKey]) -> None:
        """Let only these phones find the service from now on; with none of them it ends.

        Tor cannot take a key from a running service. The service is ended and begun again under the same address, at
        new introduction points. A phone that remembers the old ones finds nobody there.
        """
        if self._onion is None:
            return
        await self._tor.controller.del_onion(self._onion.service_id)
        if not keys:
            self._onion = None
            return
        self._onion = await self._add(self._onion.private_key, keys)

    async def _add(self, key: str, keys: Sequence[ClientKey]) -> Onion:
        if not keys:
            raise Refused("an onion service for nobody in particular would be open to everybody; name a phone")
        public = [held.public_text() for held in keys]
        return await self._tor.controller.add_onion(key, [self._target], proof_of_work=False, client_keys=public)

    async def opened(self, keys: Sequence[ClientKey], seconds: float = PUBLISH_SECONDS) -> str:
        """`open`, and wait until the first directory has the service's description, so that a phone can find it.

        Raises `Unreachable` when none takes it within `seconds`.
        """
        try:
            async with asyncio.timeout(seconds), self._tor.controller.watching("HS_DESC") as events:
                host = await self.open(keys)
                await _uploaded(events, host.removesuffix(SUFFIX))
                return host
        except TimeoutError:
            raise Unreachable(
                f"tor could not publish the onion address within {seconds:g} s; check that this machine is online and "
                "its clock is right, then start again"
            ) from None

    async def close(self) -> None:
        """End the service and its tor."""
        self._onion = None
        await self._tor.stop()


async def _uploaded(events: Events, service: str) -> None:
    async for event in events:
        if event.name == "HS_DESC" and event.text.split(" ")[:2] == ["UPLOADED", service]:
            return
    raise Unreachable("tor ended while the onion address was being published; start again")
