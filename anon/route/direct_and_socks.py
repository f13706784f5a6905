"""The routes `direct` and `socks`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from attrs import field

from anon.errors import Refused
from anon.route.far_side import FarSide
from anon.route.http import HttpRoute
from anon.text.foreign import whole_place
from anon.text.sentences import say
from anon.values import frozen
from anon.wire.addresses import is_loopback

if TYPE_CHECKING:
    from anon.route.exchange import Dial

DEFAULT_TIMEOUT = 60.0


@frozen
class DirectRoute(HttpRoute):
    """Straight to a loopback address, for tests, demos and two terminals on one machine. It hides nothing.

    Raises `Refused` for any other address: a packet that leaves this machine must go through a proxy.
    """

    timeout: float = DEFAULT_TIMEOUT
    far_side: FarSide = FarSide.AGGREGATOR

    async def _dial(self, address: str) -> Dial:
        if address.rpartition(":")[0].lower() == "localhost":
            raise Refused(say(
                "direct route: localhost is a name, and names are not looked up; use 127.0.0.1 in its place",
            ))
        if not is_loopback(address):
            raise Refused(say(
                "direct route: {address} is not a loopback address; use --route socks://HOST:PORT",
                address=whole_place(address),
            ))
        from anon.route.exchange import straight

        return straight(self)


@frozen
class SocksRoute(HttpRoute):
    """Through a SOCKS5 proxy such as tor's. Every exchange has a fresh random user and password, so tor isolates it on
    its own circuit. The proxy resolves names, never this machine."""

    host: str
    port: int
    timeout: float = DEFAULT_TIMEOUT
    random_bytes: Callable[[int], bytes] = field(default=os.urandom, repr=False)
    far_side: FarSide = FarSide.AGGREGATOR

    async def _dial(self, address: str) -> Dial:
        from anon.route.exchange import isolated

        return isolated(self, self.host, self.port, self.random_bytes)
