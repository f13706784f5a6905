"""Routes of tests: a kind of route has one method, `exchange`, for gets and posts alike."""

from __future__ import annotations

from abc import ABC, abstractmethod

from attrs import define, field, frozen

from anon.errors import Unreachable
from anon.route import Response, Route


@frozen
class Ask:
    """One exchange as it leaves; a get has no body. `limit` bounds the answer, in bytes."""

    address: str
    path: str
    body: bytes | None
    limit: int

    @property
    def what(self) -> str:
        """The path below the study: `heads`, `packets`, `documents/0-3`."""
        return self.path.split("/", 3)[-1]

    @property
    def kind(self) -> str:
        return "get" if self.body is None else "post"


class Exchanges(ABC):
    """A route whose gets and posts are alike."""

    @abstractmethod
    async def exchange(self, ask: Ask) -> Response:
        """The answer to one exchange."""

    async def get(self, address: str, path: str, limit: int) -> Response:
        return await self.exchange(Ask(address, path, None, limit))

    async def post(self, address: str, path: str, body: bytes, limit: int) -> Response:
        return await self.exchange(Ask(address, path, body, limit))


async def onward(route: Route, ask: Ask, address: str = "") -> Response:
    """The same exchange over another route, to another address if one is named."""
    place = address or ask.address
    if ask.body is None:
        return await route.get(place, ask.path, ask.limit)
    return await route.post(place, ask.path, ask.body, ask.limit)


@define
class Status(Exchanges):
    """A route to an aggregator without any study of ours: every path gets one status, and with 0 nobody is there.
    `asked` is what was fetched; nothing may be sent."""

    status: int = 0
    asked: list[str] = field(factory=list)

    async def exchange(self, ask: Ask) -> Response:
        if ask.body is not None:
            raise AssertionError("nothing is sent")
        self.asked.append(f"{ask.address}{ask.path}")
        if not self.status:
            raise Unreachable("nobody is there")
        return Response(self.status, b"")
