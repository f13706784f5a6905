"""An HTTP server that says nothing of itself: what every service of this program, reached over Tor, answers through.

No answer carries a clock, a version or anything of a malformed request; nothing about a connection is logged or kept.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

from aiohttp import ClientError, hdrs, web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestHandler

from anon.errors import AnonmlError
from anon.machine.clock import OF_ONE
from anon.serving.door import DoorSite, open_to_all, private_socket, stage_of
from anon.serving.giving_way import Limits, RequestStage
from anon.serving.short_posts import FindPost, RequestHead, ShortPost, answer_of, may_become_head, read_head

COLLECTED_AFTER = (20_000, 10, 10)
"""New objects from which on a serving process looks for those that hold each other. With Python's 700 it looks through
all open connections for every few that come: an eighth of a packet's time."""
_HEADER_BYTES = 8190
_LOG = logging.getLogger(__name__)

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class QuietStream(web.StreamResponse):
    """A response without Date, Server and Content-Type."""

    async def _prepare_headers(self) -> None:
        await super()._prepare_headers()
        for name in (hdrs.DATE, hdrs.SERVER, hdrs.CONTENT_TYPE):
            self._headers.popall(name, None)


class QuietResponse(web.Response, QuietStream):
    """One with a short body."""


class _Quiet(RequestHandler):
    """Answers every malformed request alike: 400 without a body, and nothing in the log.

    A short post is answered from its bytes. All else is left to aiohttp, from the first byte on.

    The time that a connection has, and its place among the others, are the door's to give (`anon.serving.door`).
    """

    __slots__ = ("_answering", "_brought", "_caller", "_came", "_find", "_head", "_post", "_refused", "_server")

    def __init__(self, server: QuietServer, **kwargs: Any) -> None:
        super().__init__(server, **kwargs)
        self._find, self._server = server.find, server
        self._came: bytearray | None = bytearray()
        self._head: RequestHead | None = None
        self._post: ShortPost | None = None
        self._brought = 0
        self._caller: bytes | None = None
        self._refused = False
        self._answering: asyncio.Task[None] | None = None

    def stage(self) -> RequestStage:
        """How far its request has come."""
        if self._answering is not None:
            return RequestStage.WORK
        if self._head is not None:
            return RequestStage.BODY
        return RequestStage.ASKING if self._came is not None else stage_of(self)

    def brought(self) -> int:
        """Bytes of a body that came."""
        return self._brought

    def caller(self) -> bytes:
        """The key of one who signed its body's beginning, which said what would follow."""
        return self._caller or b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A connection that asks for nothing needs no parser and no task."""
        self.transport = cast(asyncio.Transport, transport)
        if self._manager is not None:
            self._manager.connection_made(self, self.transport)

    def data_received(self, data: bytes) -> None:
        """Answer a short post as soon as it is whole."""
        if self._came is None:
            self._brought += len(data) if self.stage() is RequestStage.BODY else 0
            super().data_received(data)
            return
        if self._answering is not None or self._refused or self._close or self._force_close:
            return
        self._came += data
        if self._head is None and not self._read_head(self._came):
            return
        self._brought = len(self._came) - self._head.begins if self._head is not None else _beyond_head(self._came)
        if self._head is None or self._post is None or len(self._came) > self._head.ends:
            self._leave()
        elif self._admits(self._post, self._came, self._head) and len(self._came) == self._head.ends:
            self._answering = self._loop.create_task(self._answer(self._post, bytes(self._came[self._head.begins :])))

    def _admits(self, post: ShortPost, came: bytearray, head: RequestHead) -> bool:
        """True once the beginning of a body was let in. Of one that was refused nothing more is kept. It is read on,
        since a connection that is closed before would lose the answer."""
        if self._caller is None and len(came) >= min(head.begins + post.opening, head.ends):
            opening = bytes(came[head.begins : head.begins + post.opening])
            self._caller = post.admit(opening, head.ends - head.begins, self._refuse)
            self._refused = self._caller is None
        return self._caller is not None

    def _refuse(self, status: int, body: bytes) -> None:
        self._came = bytearray()
        if self.transport is not None:
            self.transport.write(answer_of(status, body))
            self.transport.write_eof()

    def _read_head(self, came: bytearray) -> bool:
        """True unless more of a head has to come. Leaves no head where it is not that of a short post."""
        head = read_head(came)
        if head is None:
            return not may_become_head(came)
        self._post = self._find(head.path)
        if self._post is not None and head.ends - head.begins <= self._post.longest:
            self._head = head
        return True

    async def _answer(self, post: ShortPost, body: bytes) -> None:
        try:
            await post.work(body, lambda status, reply: self._end(answer_of(status, reply)))
        except Exception:
            self._end(answer_of(500))
        except BaseException:
            self._abort()
            raise

    def _end(self, answer: bytes) -> None:
        if self.transport is not None:
            self.transport.write(answer)
            self.transport.close()

    def _abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def _leave(self) -> None:
        """Have aiohttp read the connection, with all that came."""
        came, self._came, self._head = self._came, None, None
        if self.transport is not None and came is not None:
            super().connection_made(self.transport)
            super().data_received(bytes(came))

    async def shutdown(self, timeout: float | None = 15.0) -> None:  # noqa: ASYNC109 - as aiohttp has it
        """Wait until a short post is answered, too."""
        if self._answering is not None:
            await asyncio.wait([self._answering], timeout=timeout)
            self._answering.cancel()
        await super().shutdown(timeout)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Say nothing about the request."""
        if request.writer.output_size > 0:
            raise ConnectionError("already answered")
        response = QuietResponse(status=500 if status == 500 else 400)
        response.force_close()
        return response

    def log_exception(self, *args: Any, **kwargs: Any) -> None:
        """An error's text may quote a request: its type alone is logged. Errors with a reader were told before."""
        error = kwargs.get("exc_info")
        expected_errors = (ConnectionError, web.HTTPException, AnonmlError)
        if isinstance(error, BaseException) and not isinstance(error, expected_errors):
            self._server.tell(error)


def _beyond_head(came: bytearray) -> int:
    """Bytes that came of a body, or of further requests."""
    end = came.find(b"\r\n\r\n")
    return len(came) - end - 4 if end >= 0 else 0


class QuietServer(web.Server):
    def __init__(self, answer: Answer, find: FindPost) -> None:
        super().__init__(answer)
        self.find = find
        self._told: set[type[BaseException]] = set()

    def tell(self, error: BaseException) -> None:
        """Log a fault of this program, once: whoever can repeat it writes one line."""
        if type(error) not in self._told:
            self._told.add(type(error))
            _LOG.error("a request failed: %s", type(error).__name__, extra=OF_ONE)

    def __call__(self) -> RequestHandler:
        """The handler of one connection."""
        return _Quiet(
            self,
            loop=self._loop,
            access_log=None,
            keepalive_timeout=15,
            lingering_time=0,
            auto_decompress=False,  # nobody compresses here, and what is none would be answered 500
            max_line_size=_HEADER_BYTES,
            max_field_size=_HEADER_BYTES,
        )


def no_short_post(_path: bytes) -> None:
    """For servers to which posts of any head and length come."""


async def runner_of(answer: Answer, find: FindPost = no_short_post) -> web.ServerRunner:
    """The runner of a server that answers so (call its `cleanup`); it listens nowhere yet."""
    gc.set_threshold(*COLLECTED_AFTER)
    runner = web.ServerRunner(QuietServer(answer, find), handle_signals=False, shutdown_timeout=2)
    await runner.setup()
    return runner


async def listen(
    answer: Answer,
    host: str,
    port: int,
    shared: bool = False,
    find: FindPost = no_short_post,
    limits: Limits | None = None,
) -> tuple[web.ServerRunner, int]:
    """Serve; the runner and the port, which is the system's choice when `port` is 0. Processes of one user that listen
    `shared` divide the connections to a port among them. `limits`: those of `open_to_all` when left out."""
    runner = await runner_of(answer, find)
    try:
        places = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        sockets = [_bound(family, address, shared) for family, _, _, _, address in places]
        await DoorSite(runner, sockets, limits or open_to_all()).start()
    except BaseException:
        await runner.cleanup()
        raise
    return runner, int(runner.addresses[0][1])


async def listen_unix(
    answer: Answer, path: Path, find: FindPost = no_short_post, limits: Limits | None = None
) -> web.ServerRunner:
    """Serve at a socket file that only its owner can reach, and at no network address at all.

    Nothing that connects there has an address. A socket that an earlier life left at `path` is replaced. `limits`: as
    for `listen`.
    """
    runner = await runner_of(answer, find)
    try:
        await DoorSite(runner, [private_socket(path)], limits or open_to_all()).start()
    except BaseException:
        await runner.cleanup()
        raise
    return runner


def _bound(family: int, address: Any, shared: bool) -> socket.socket:
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(address)
    except BaseException:
        bound.close()
        raise
    return bound


async def read_body(request: web.BaseRequest, limit: int) -> bytes | None:
    """The body, or None when it is longer than `limit`; nothing beyond the limit is kept. The door ends a connection
    whose body does not come; then this raises `ConnectionError`."""
    parts: list[bytes] = []
    size = 0
    try:
        while chunk := await request.content.readany():
            size += len(chunk)
            if size > limit:
                return None
            parts.append(chunk)
    except (ClientError, HttpProcessingError):  # of a body that was broken off or is none
        raise ConnectionError("the body did not come whole") from None
    return b"".join(parts)


def closing(status: int, body: bytes = b"") -> QuietResponse:
    """A short answer, after which the connection ends."""
    response = QuietResponse(status=status, body=body)
    response.force_close()
    return response
