"""The common part of the routes over HTTP/1.1. `anon.route.exchange` does an exchange, and is imported at the first."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from anon.errors import Unreachable, because
from anon.route.far_side import FarSide
from anon.route.route import Response
from anon.text.sentences import say

if TYPE_CHECKING:
    from anon.route.exchange import Dial


class HttpRoute(ABC):
    """The part that every route over HTTP/1.1 has in common; a route adds how its connection is made and what a proxy's
    no means."""

    timeout: float
    far_side: FarSide

    @abstractmethod
    async def _dial(self, address: str) -> Dial:
        """How a connection to this address is made. Raises `Refused` for an address that is not this route's."""

    def proxy_gone(self, error: Exception) -> Unreachable:
        """The fault where the proxy itself does not answer."""
        return Unreachable(
            say(
                "the proxy did not answer{error}; nothing is lost, check that it runs where --route says, and try "
                "again",
                error=because(error),
            )
        )

    def proxy_refused(self, error: Exception) -> Unreachable:
        """The fault where the proxy answers with a no."""
        return Unreachable(self.far_side.behind_proxy(error))

    async def get(self, address: str, path: str, limit: int) -> Response:
        """See `Route.get`."""
        return await self._exchange("GET", address, path, None, limit)

    async def post(self, address: str, path: str, body: bytes, limit: int) -> Response:
        """See `Route.post`."""
        return await self._exchange("POST", address, path, body, limit)

    async def _exchange(self, method: str, address: str, path: str, body: bytes | None, limit: int) -> Response:
        from anon.route.exchange import exchange  # late: many a command has none

        return await exchange(self, await self._dial(address), method, address, path, body, limit)


def load() -> None:
    """Import now all that an exchange needs, so that the first one does not have to."""
    import anon.route.exchange  # noqa: F401
