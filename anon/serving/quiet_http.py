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

from aiohttp import hdrs, web
from aiohttp.web_protocol import RequestHandler

from anon.errors import AnonmlError
from anon.serving.short_posts import FindPost, ShortPost, answer_of, may_become_head, read_head

READ_SECONDS = 60
LONGEST_SECONDS = 600
"""How long one connection may last: a slow route fetches a roster of 20 MB in that time at 35 KB a second."""
MOST_CONNECTIONS = 2048
BACKLOG = 1024
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

    Its timers end with its connection: nothing of a connection that closed is kept.
    """

    __slots__ = ("_answering", "_came", "_find", "_limits", "_reading")
    _limits: tuple[asyncio.TimerHandle, ...]

    def __init__(self, server: QuietServer, **kwargs: Any) -> None:
        super().__init__(server, **kwargs)
        self._find = server.find
        self._came: bytes | None = b""
        self._reading = False
        self._answering: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A connection that asks for nothing is closed after a while, sooner for a newer one when there are too many;
        every one is in the end."""
        self.transport = cast(asyncio.Transport, transport)
        self._limits = (
            self._loop.call_later(READ_SECONDS, self._close_idle),
            self._loop.call_later(LONGEST_SECONDS, self._abort),
        )
        if self._manager is not None:
            self._manager.connection_made(self, self.transport)
            if len(self._manager._connections) > MOST_CONNECTIONS:
                self._oldest_idle()._abort()

    def data_received(self, data: bytes) -> None:
        """Answer a short post as soon as it is whole."""
        if self._came is None:
            super().data_received(data)
            return
        if self._answering is not None or self._close or self._force_close:
            return
        self._came += data
        head = read_head(self._came)
        if head is None:
            if not may_become_head(self._came):
                self._leave()
            return
        post = self._find(head.path)
        if post is None or head.ends - head.begins > post.longest or len(self._came) > head.ends:
            self._leave()
            return
        self._reading = True
        if len(self._came) == head.ends:
            self._answering = self._loop.create_task(self._answer(post, self._came[head.begins :]))

    async def _answer(self, post: ShortPost, body: bytes) -> None:
        try:
            await post.work(body, lambda reply: self._end(answer_of(200, reply)))
        except Exception:
            self._end(answer_of(500))
        except BaseException:
            self._abort()
            raise

    def _end(self, answer: bytes) -> None:
        if self.transport is not None:
            self.transport.write(answer)
            self.transport.close()

    def _leave(self) -> None:
        """Have aiohttp read the connection, with all that came."""
        came, self._came, self._reading = self._came, None, False
        if self.transport is not None and came is not None:
            super().connection_made(self.transport)
            super().data_received(came)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Cancel the timers, which would hold this handler and its buffers for as long as they run."""
        for limit in self._limits:
            limit.cancel()
        super().connection_lost(exc)

    async def shutdown(self, timeout: float | None = 15.0) -> None:  # noqa: ASYNC109 - as aiohttp has it
        """Wait until a short post is answered, too."""
        if self._answering is not None:
            await asyncio.wait([self._answering], timeout=timeout)
            self._answering.cancel()
        await super().shutdown(timeout)

    def _oldest_idle(self) -> _Quiet:
        """The connection that waits longest without asking anything; this one when all others are being served.

        Over an onion service all come from one socket: were the newest turned away, a few who say nothing would lock
        everybody out.
        """
        connected = self._manager.connections if self._manager is not None else []
        return next(
            (connection for connection in connected if isinstance(connection, _Quiet) and connection._waiting()), self
        )

    def _waiting(self) -> bool:
        asks = self._reading or self._current_request is not None
        return not asks and self.transport is not None and not self.transport.is_closing()

    def _close_idle(self) -> None:
        if self._reading and self._answering is None:
            self._end(answer_of(400))
        elif self._waiting() and self.transport is not None:
            self.transport.close()

    def _abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

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
            _LOG.error("a request failed: %s", type(error).__name__)


class QuietServer(web.Server):
    def __init__(self, answer: Answer, find: FindPost) -> None:
        super().__init__(answer)
        self.find = find

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
    answer: Answer, host: str, port: int, shared: bool = False, find: FindPost = no_short_post
) -> tuple[web.ServerRunner, int]:
    """Serve; the runner and the port, which is the system's choice when `port` is 0. Processes of one user that listen
    `shared` divide the connections to a port among them."""
    runner = await runner_of(answer, find)
    try:
        await web.TCPSite(runner, host, port, backlog=BACKLOG, reuse_port=shared or None).start()
    except BaseException:
        await runner.cleanup()
        raise
    return runner, int(runner.addresses[0][1])


async def listen_unix(answer: Answer, path: Path, find: FindPost = no_short_post) -> web.ServerRunner:
    """Serve at a socket file that only its owner can reach, and at no network address at all.

    Nothing that connects there has an address. A socket that an earlier life left at `path` is replaced.
    """
    runner = await runner_of(answer, find)
    try:
        await web.SockSite(runner, _private_socket(path), backlog=BACKLOG).start()
    except BaseException:
        await runner.cleanup()
        raise
    return runner


def _private_socket(path: Path) -> socket.socket:
    """Bound with mode 0600 from its first instant."""
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


async def read_body(
    request: web.BaseRequest,
    limit: int,
    seconds: float | None = None,
    arrived: Callable[[int], None] = lambda size: None,
) -> bytes | None:
    """The body, or None when it is longer than `limit`; nothing beyond the limit is kept. `arrived` hears of each
    piece's size. Raises `TimeoutError` after `seconds` (`READ_SECONDS` when left out)."""
    parts: list[bytes] = []
    size = 0
    async with asyncio.timeout(READ_SECONDS if seconds is None else seconds):
        while chunk := await request.content.readany():
            size += len(chunk)
            if size > limit:
                return None
            arrived(len(chunk))
            parts.append(chunk)
    return b"".join(parts)


def closing(status: int, body: bytes = b"") -> QuietResponse:
    """A short answer, after which the connection ends."""
    response = QuietResponse(status=status, body=body)
    response.force_close()
    return response
