"""The door of a server: accepts connections, watches how they stand, and ends those that `giving_way` names.

It takes the place of asyncio's own server, which repeats a failed accept at once and logs each, and which knows no
limit. Nothing here decides, and nothing is logged.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from typing import Protocol, cast

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from anon.serving.giving_way import (
    ConnectionStanding,
    Limits,
    RequestStage,
    bodies_give_way,
    callers_give_way,
    give_way,
    overdue,
    places,
    slowest_readers,
)
from anon.serving.open_files import open_files

BACKLOG = 4096
TICK = 1.0
"""Seconds between two looks for connections that have had their time."""
PAUSE = 0.1
"""Seconds before the next accept, after one failed because no file was free."""
LATE = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
PAGE_PLACES = 32
_TOGETHER = 64
"""So many connections are accepted before the loop goes on with other work."""
_SENT_BUFFER = 2**16
_NO_FILE = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class Telling(Protocol):
    """A handler that says itself how far its request has come."""

    def stage(self) -> RequestStage:
        """READING is not told here: the door sees it."""

    def brought(self) -> int:
        """Bytes of the body that came."""

    def caller(self) -> bytes:
        """The key of a caller who proved who it is; empty for a stranger."""


class Guest(asyncio.Protocol):
    """Stands between a connection and its handler, and notes what moves."""

    __slots__ = ("_bytes", "_door", "_handler", "_loop", "_telling", "_waits", "standing", "transport")

    def __init__(self, door: Door, handler: RequestHandler, loop: asyncio.AbstractEventLoop) -> None:
        self._door, self._handler, self._loop = door, handler, loop
        self._telling = cast(Telling, handler) if hasattr(handler, "brought") else None
        self._bytes = 0
        self._waits = False
        self.standing = ConnectionStanding(loop.time())
        self.transport: asyncio.Transport | None = None

    @property
    def held(self) -> int:
        """Bytes that came of a request which is not whole."""
        return self._bytes

    def forget(self) -> None:
        """Its request is whole: from now on it is work, and gives way to no body."""
        self._bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Hand it on. One that gave way before it was made ends here."""
        self.transport = cast(asyncio.Transport, transport)
        self._handler.connection_made(transport)
        if not self._door.knows(self):
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Hand it on, and note how the request stands then."""
        self._bytes += len(data)
        self._door.holds(self, len(data))
        if not self._door.knows(self):  # it gave way to itself: its handler is gone
            return
        self._handler.data_received(data)
        self._note(len(data))
        if self.standing.stage not in (RequestStage.ASKING, RequestStage.BODY):
            self._door.frees(self)

    def _note(self, size: int) -> None:
        standing = self.look()
        if self._telling is None:
            standing.brought += size if standing.stage is RequestStage.BODY else 0
            return
        standing.brought = self._telling.brought()
        caller = self._telling.caller()
        if caller and not standing.caller:
            self._door.proven(self, caller)

    def eof_received(self) -> bool | None:
        """Hand it on."""
        return self._handler.eof_received()  # type: ignore[func-returns-value]

    def pause_writing(self) -> None:
        """More of the answer waits to be read than is kept ready."""
        self._waits = True
        self.standing.reading_since = min(self.standing.reading_since, self._loop.time())
        self._handler.pause_writing()
        self._door.waits(self, True)

    def resume_writing(self) -> None:
        """It was read."""
        self._waits = False
        self.standing.read += _SENT_BUFFER
        self._door.waits(self, False)
        self._handler.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Hand it on; nothing of it is kept."""
        self._door.left(self)
        self._handler.connection_lost(exc)

    def look(self) -> ConnectionStanding:
        """How it stands now."""
        told = self._telling.stage() if self._telling is not None else stage_of(self._handler)
        if told is RequestStage.BODY:
            self.standing.body_since = min(self.standing.body_since, self._loop.time())
        self.standing.stage = RequestStage.READING if self._waits else told
        return self.standing

    def end(self, late: bool = False) -> None:
        """Close it at once. One whose body is `late` is told so."""
        if self.transport is None:
            return
        if late and self.standing.stage is RequestStage.BODY and not self.transport.is_closing():
            self.transport.write(LATE)
            self.transport.close()
        elif late and self.standing.stage is RequestStage.ASKING:
            self.transport.close()
        else:
            self.transport.abort()


def stage_of(handler: RequestHandler) -> RequestStage:
    """How far aiohttp has come with the request of a connection."""
    if handler._current_request is not None:
        content = handler._current_request.content
    elif handler._messages:
        content = handler._messages[0][1]
    else:
        return RequestStage.ASKING
    return RequestStage.WORK if content.is_eof() else RequestStage.BODY


class Door:
    """Lets connections in at listening sockets, for as long as it is open."""

    def __init__(self, server: Callable[[], RequestHandler], sockets: Sequence[socket.socket], limits: Limits) -> None:
        self.sockets, self._server, self._limits = list(sockets), server, limits
        self._loop = asyncio.get_running_loop()
        self._guests: dict[ConnectionStanding, Guest] = {}
        self._waiting: dict[ConnectionStanding, Guest] = {}
        self._held = Counter[bool]()
        self._entering: set[asyncio.Task[None]] = set()
        self._ticking: asyncio.TimerHandle | None = None
        self._accepting = [self._loop.create_task(self._accept(listening)) for listening in self.sockets]

    def close(self) -> None:
        """Let nobody in any more. Connections that are in stay."""
        for task in (*self._accepting, *self._entering):
            task.cancel()
        for listening in self.sockets:  # the loop lets go of its descriptor first, which another socket may get at once
            self._loop.call_soon(listening.close)
        self.sockets = []

    async def _accept(self, listening: socket.socket) -> None:
        together = 0
        while True:
            try:
                connection, _ = await self._loop.sock_accept(listening)
            except OSError as error:
                if error.errno in _NO_FILE:
                    self._make_room()
                await asyncio.sleep(PAUSE if error.errno in _NO_FILE else 0)
                continue
            full = len(self._guests) >= self._limits.connections
            if not full or self._make_room():
                self._let_in(connection)
            else:
                connection.close()
            together += 1
            if full or together % _TOGETHER == 0:
                await asyncio.sleep(0)  # files of those that gave way are closed meanwhile

    def _let_in(self, connection: socket.socket) -> None:
        guest = Guest(self, self._server(), self._loop)
        self._guests[guest.standing] = guest
        task = self._loop.create_task(self._enter(connection, guest))
        self._entering.add(task)
        task.add_done_callback(self._entering.discard)
        self._tick_later()

    async def _enter(self, connection: socket.socket, guest: Guest) -> None:
        try:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SENT_BUFFER)
            await self._loop.connect_accepted_socket(lambda: guest, connection)
        except (OSError, asyncio.CancelledError):
            connection.close()
            self.left(guest)

    def _make_room(self) -> bool:
        """True if somebody gave way."""
        standings = [guest.look() for guest in self._guests.values()]
        leaving = give_way(standings, self._loop.time(), self._limits.at_once)
        self._end(leaving)
        return bool(leaving)

    def _end(self, leaving: Sequence[ConnectionStanding]) -> None:
        for standing in leaving:
            guest = self._guests[standing]
            self.left(guest)
            guest.end()

    def knows(self, guest: Guest) -> bool:
        """True unless it is gone."""
        return guest.standing in self._guests

    def left(self, guest: Guest) -> None:
        """It is gone, or as good as gone. May be told twice."""
        if self._guests.pop(guest.standing, None) is not None:
            self._held[bool(guest.standing.caller)] -= guest.held
        self._waiting.pop(guest.standing, None)

    def holds(self, guest: Guest, size: int) -> None:
        """So many bytes came of it."""
        if guest.standing not in self._guests:
            return
        proven = bool(guest.standing.caller)
        self._held[proven] += size
        while self._held[proven] > self._limits.held and guest.standing in self._guests:
            standings = [inside.look() for inside in self._guests.values()]
            self._end([bodies_give_way(standings, self._loop.time(), guest.standing)])

    def frees(self, guest: Guest) -> None:
        """Its request is whole. So bytes of requests that were answered displace no body."""
        if guest.standing in self._guests:
            self._held[bool(guest.standing.caller)] -= guest.held
            guest.forget()

    def proven(self, guest: Guest, caller: bytes) -> None:
        """It proved who it is."""
        if guest.standing not in self._guests:
            return
        guest.standing.caller = caller
        self._held[False] -= guest.held
        self._held[True] += guest.held
        standings = [inside.look() for inside in self._guests.values()]
        self._end(callers_give_way(standings, self._loop.time(), guest.standing, self._limits))

    def waits(self, guest: Guest, waits: bool) -> None:
        """Its answer waits to be read, or no longer."""
        if not waits:
            self._waiting.pop(guest.standing, None)
        elif guest.standing in self._guests:
            self._waiting[guest.standing] = guest
            if len(self._waiting) > self._limits.readers:
                standings = [waiting.look() for waiting in self._waiting.values()]
                self._end(slowest_readers(standings, self._loop.time(), self._limits.at_once))

    def _tick_later(self) -> None:
        if self._ticking is None:
            self._ticking = self._loop.call_later(TICK, self._tick)

    def _tick(self) -> None:
        now = self._loop.time()
        for guest in list(self._guests.values()):
            if overdue(guest.look(), now, self._limits):
                guest.end(late=now - guest.standing.came <= self._limits.longest)
        self._ticking = None
        if self._guests:
            self._tick_later()


class DoorSite(web.BaseSite):
    """The place where a runner's server listens, behind a `Door`."""

    def __init__(self, runner: web.BaseRunner, sockets: Sequence[socket.socket], limits: Limits) -> None:
        super().__init__(runner)
        self._sockets, self._limits = sockets, limits

    @property
    def name(self) -> str:
        """For aiohttp."""
        return "door"

    async def start(self) -> None:
        """Listen."""
        await super().start()
        for listening in self._sockets:
            listening.setblocking(False)
            listening.listen(BACKLOG)
        server = self._runner.server
        assert server is not None
        self._server = cast(asyncio.AbstractServer, Door(server, self._sockets, self._limits))


def private_socket(path: Path) -> socket.socket:
    """A socket file, of mode 0600 from its first instant. One that an earlier life left there is replaced."""
    path.unlink(missing_ok=True)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        bound.bind(os.fspath(path))
    except BaseException:
        bound.close()
        raise
    finally:
        os.umask(before)
    return bound


def open_to_all(body_seconds: float = 60.0) -> Limits:
    """Of a server that strangers reach. Raises this process's soft limit of open files."""
    return Limits(places(open_files()), body_seconds=body_seconds)


def for_owner() -> Limits:
    """Of a page for one person: large files may come, for as long as they do."""
    return Limits(PAGE_PLACES, inf, head_seconds=inf, body_seconds=inf, longest=inf, least_rate=0)
