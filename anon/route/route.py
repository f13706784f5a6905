"""The contract of a route."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from anon.values import frozen


@frozen
class Response:
    """An HTTP status and the whole body."""

    status: int
    body: bytes


class Route(Protocol):
    """Carries one request over one fresh connection: no cookie, no keep-alive, no identifying header, no redirect.

    `address` is host:port; names are never resolved by anything but the route's proxy. Raises `Unreachable` when no
    whole answer of at most `limit` bytes arrives in the route's time limit.
    """

    async def get(self, address: str, path: str, limit: int) -> Response:
        """Fetch a document."""

    async def post(self, address: str, path: str, body: bytes, limit: int) -> Response:
        """Send one body."""


@runtime_checkable
class Starting(Protocol):
    """The further part of a route that must start something of its own first, a tor; other routes are always ready."""

    async def ready(self, address: str) -> None:
        """Return once a request to this address could be carried; nothing of one leaves here.

        Raises `Unreachable` when nothing can be started now, `Refused` for an address that is not this route's.
        """
