"""The onion services of an aggregator: a tor of its own for each address, all before the same server.

Each is kept up by itself (`anon.serving.onion_service`): one that dies is started again with its key, and the others go
on meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from attrs import define, field

from aggregator.network import http
from aggregator.store.duplicate_home import demand_silent, settled
from anon.route import Route
from anon.serving.onion_key import OnionKey
from anon.serving.onion_service import OnionService, leave_socket, socket_of
from anon.storage.home import RESTORED

_LOOPBACK = "127.0.0.1"


@asynccontextmanager
async def server_behind(studies: http.Studies, home: Path, bound: Callable[[int], None] | None) -> AsyncIterator[str]:
    """A server for onion services alone, and its place as `OnionService` takes it.

    It is a socket file of the home. With `bound` it is a free port of this machine's loopback, which `bound` hears, and
    at which further processes listen too.
    """
    if bound is None:
        socket = socket_of(home)
        runner, target = await http.start_unix(studies, socket), f"unix:{socket}"
    else:
        socket = None
        runner, port = await http.start(studies, _LOOPBACK, 0, shared=True)
        target = f"{_LOOPBACK}:{port}"
        bound(port)
    try:
        yield target
    finally:
        await runner.cleanup()
        if socket is not None:
            leave_socket(socket)


@define
class Onions:
    """The services of these keys. `announce` hears their addresses, one space between two, once all have answered from
    outside; for the rest see `OnionService`. Of several, the lines name the one, and only the first tells how far its
    tor has got."""

    keys: tuple[OnionKey, ...]
    home: Path
    route_through: Callable[[str, int, float], Route]
    announce: Callable[[str], None]
    say: Callable[[str], None]
    progress: Callable[[str], None]
    _waiting: set[str] = field(factory=set, init=False)
    _unseen: set[str] = field(factory=set, init=False)

    @property
    def addresses(self) -> tuple[str, ...]:
        """Their addresses, in the order of the keys."""
        return tuple(key.address() for key in self.keys)

    async def run(self, target: str, studies: Iterable[bytes]) -> None:
        """Keep all of them up before the server at `target`, until cancelled.

        In a home that was restored each address is first asked for another copy, which would serve the `studies` too.
        Raises `Unreachable` or `Refused` when one of them never came up.
        """
        self._waiting, self._unseen = set(self.addresses), set(self.addresses)
        restored = (self.home / RESTORED).exists()
        services = [
            OnionService(
                key,
                target,
                self.home / ("tor" if number == 1 else f"tor-{number}"),
                self.route_through,
                self._answers,
                self._teller_of(number),
                self.progress if number == 1 else lambda line: None,
                self._look(key.address(), studies) if restored else None,
            )
            for number, key in enumerate(self.keys, 1)
        ]
        await _first_fault([service.run() for service in services])

    def _answers(self, address: str) -> None:
        self._waiting.discard(address)
        if not self._waiting:
            self.announce(" ".join(self.addresses))

    def _teller_of(self, number: int) -> Callable[[str], None]:
        if len(self.keys) == 1:
            return self.say
        return lambda line: self.say(f"onion address {number} of {len(self.keys)}: {line}")

    def _look(self, address: str, studies: Iterable[bytes]) -> Callable[[Route], Awaitable[None]]:
        async def look(route: Route) -> None:
            await demand_silent(address, studies, route)
            self._unseen.discard(address)
            if not self._unseen:
                settled(self.home)

        return look


async def _first_fault(services: list[Awaitable[None]]) -> None:
    """Run them until one fails; the others are ended, and its error alone is raised."""
    # A TaskGroup would raise a group of errors in place of the one.
    tasks = [asyncio.ensure_future(service) for service in services]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError, Exception):
                await task
