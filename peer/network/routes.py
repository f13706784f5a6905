"""The way of an exchange, chosen by the aggregator's address. Onion addresses go through a tor of this home, this
machine's own addresses directly. Nothing else is reached unless the owner names a proxy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from anon.errors import Refused
from anon.route import DirectRoute, Response, Route, SocksRoute, Starting
from anon.text.foreign import whole_place
from anon.text.sentences import say
from anon.wire.addresses import is_loopback
from anon.wire.onion_address import is_onion

if TYPE_CHECKING:
    from anon.route.tor import TorKeeper, TorRoute

EXPECTED = "auto, tor, direct or socks://HOST:PORT"


class Routes(Route):
    """The routes of one command or run; itself the route of every exchange. Belongs to one event loop: `close` it.

    `name` is what `--route` takes; `folder` holds this home's tor, which is started at the first exchange that needs
    it; `say` hears how far it has got. Raises `Refused` for another name.
    """

    def __init__(self, name: str, folder: Path, say: Callable[[str], None] = lambda line: None) -> None:
        self._name = name
        self._say = say
        self._folder = folder
        self._onions: tuple[TorKeeper, TorRoute] | None = None
        self._direct = DirectRoute()
        self._socks = None if name in ("auto", "tor", "direct") else _socks(name)

    async def ready(self, address: str) -> None:
        """See `Starting.ready`."""
        if isinstance(route := await self._started(address), Starting):
            await route.ready(address)

    async def get(self, address: str, path: str, limit: int) -> Response:
        """See `Route.get`. Raises `Refused` for an address that this route does not lead to."""
        return await (await self._started(address)).get(address, path, limit)

    async def post(self, address: str, path: str, body: bytes, limit: int) -> Response:
        """See `Route.post`. Raises `Refused` for an address that this route does not lead to."""
        return await (await self._started(address)).post(address, path, body, limit)

    async def prepare(self, addresses: Iterable[str]) -> None:
        """Connect to Tor now if any of these will need it. Raises `Unreachable` or `Refused` with one next action."""
        for address in addresses:
            await self._started(address)

    async def close(self) -> None:
        """End this home's tor, if these routes started it."""
        if self._onions is not None:
            await self._onions[0].close()

    async def _started(self, address: str) -> Route:
        route = self._leading_to(address)
        if self._onions is not None and route is self._onions[1]:
            keeper = self._onions[0]
            if keeper.tor is None or not keeper.tor.alive:
                from anon.route.tor.following import telling

                await telling(keeper.socks(), lambda: keeper.tor.state.progress if keeper.tor else None, self._say)
        return route

    def _by_tor(self) -> Route:
        """Loaded by who goes there: a study on this machine needs nothing of it."""
        if self._onions is None:
            from anon.route.tor import TorKeeper, TorRoute

            keeper = TorKeeper(self._folder)
            self._onions = keeper, TorRoute(keeper)
        return self._onions[1]

    def _leading_to(self, address: str) -> Route:
        if self._socks is not None:
            return self._socks
        if self._name == "direct":
            return self._direct
        if self._name == "tor" or is_onion(address.rpartition(":")[0]):
            return self._by_tor()
        if is_loopback(address):
            return self._direct
        raise Refused(
            say(
                "{address} is neither an onion address nor one of this machine; ask staff for a link with an onion "
                "address, or name a proxy: --route socks://HOST:PORT",
                address=whole_place(address),
            )
        )


def _socks(text: str) -> SocksRoute:
    scheme, _, rest = text.partition("://")
    host, _, port = rest.rpartition(":")
    if scheme not in ("socks", "socks5", "socks5h") or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise Refused(f"--route: expected {EXPECTED}")
    return SocksRoute(host, int(port))
