"""An HTTP server that says nothing of itself: what every service of this program, reached over Tor, answers through.

No answer carries a clock, a version or anything of a malformed request; nothing about a connection is logged or kept.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from aiohttp import hdrs, web
from aiohttp.web_protocol import RequestHandler

from anon.errors import AnonmlError

READ_SECONDS = 60
LONGEST_SECONDS = 600
"""How long one connection may last: a slow route fetches a roster of 20 MB in that time at 35 KB a second."""
MOST_CONNECTIONS = 2048
BACKLOG = 1024
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

    Its timers end with its connection: nothing of a connection that closed is kept.
    """

    __slots__ = ("_limits",)
    _limits: tuple[asyncio.TimerHandle, ...]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A connection that asks for nothing is closed after a while, sooner for a newer one when there are too many;
        every one is in the end."""
        super().connection_made(transport)
        self._limits = (
            self._loop.call_later(READ_SECONDS, self._close_idle),
            self._loop.call_later(LONGEST_SECONDS, self._abort),
        )
        if self._manager is not None and len(self._manager.connections) > MOST_CONNECTIONS:
            self._oldest_idle()._abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Cancel the timers, which would hold this handler and its buffers for as long as they run."""
        for limit in self._limits:
            limit.cancel()
        super().connection_lost(exc)

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
        return self._current_request is None and self.transport is not None and not self.transport.is_closing()

    def _close_idle(self) -> None:
        if self.transport is not None and self._current_request is None:
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
    def __call__(self) -> RequestHandler:
        return _Quiet(
            self,
            loop=self._loop,
            access_log=None,  # type: ignore[arg-type]
            keepalive_timeout=15,
            lingering_time=0,
            auto_decompress=False,  # nobody compresses here, and what is none would be answered 500
            max_line_size=_HEADER_BYTES,
            max_field_size=_HEADER_BYTES,
        )


async def runner_of(answer: Answer) -> web.ServerRunner:
    """The runner of a server that answers so (call its `cleanup`); it listens nowhere yet."""
    runner = web.ServerRunner(QuietServer(answer), handle_signals=False, shutdown_timeout=2)
    await runner.setup()
    return runner


async def listen(answer: Answer, host: str, port: int, shared: bool = False) -> tuple[web.ServerRunner, int]:
    """Serve; the runner and the port, which is the system's choice when `port` is 0. Processes of one user that listen
    `shared` divide the connections to a port among them."""
    runner = await runner_of(answer)
    try:
        await web.TCPSite(runner, host, port, backlog=BACKLOG, reuse_port=shared or None).start()
    except BaseException:
        await runner.cleanup()
        raise
    return runner, int(runner.addresses[0][1])


async def listen_unix(answer: Answer, path: Path) -> web.ServerRunner:
    """Serve at a socket file that only its owner can reach, and at no network address at all.

    Nothing that connects there has an address. A socket that an earlier life left at `path` is replaced.
    """
    runner = await runner_of(answer)
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
