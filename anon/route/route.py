"""The contract of a route."""

from __future__ import annotations

from typing import Protocol

from attrs import frozen


@frozen
class Answer:
    """An HTTP status and the whole body."""

    status: int
    body: bytes


class Route(Protocol):
    """Carries one request over one fresh connection: no cookie, no keep-alive, no identifying header, no redirect.

    `address` is host:port; names are never resolved by anything but the route's proxy. Raises `Unreachable` when no
    whole answer of at most `limit` bytes arrives in the route's time limit.
    """

    async def get(self, address: str, path: str, limit: int) -> Answer:
        """Fetch a document."""

    async def post(self, address: str, path: str, body: bytes, limit: int) -> Answer:
        """Send one body."""
