"""The HTTP surface of docs/protocol.md: five endpoints, and nothing in any answer but what is asked for.

No answer carries a clock, a version, a length that depends on the sender, or anything of the request, malformed ones
included; nothing about a connection is logged or kept.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from aiohttp import hdrs, web
from aiohttp.web_protocol import RequestHandler

from aggregator.rules.enrol import largest_enrolment
from aggregator.store.crash_points import crash_point
from aggregator.study.live import LiveStudy
from anon.errors import AnonmlError
from anon.wire.replies import encode_reply

_DOCUMENTS = r"documents/(0|[1-9]\d{0,8})(?:-([1-9]\d{0,8}))?"
_PATH = re.compile(rf"/v1/([0-9a-f]{{64}})/(heads|enrol|withdraw|packets|{_DOCUMENTS})\Z")
READ_SECONDS = 60
LONGEST_SECONDS = 600
"""How long one connection may last: a slow route fetches a roster of 20 MB in that time at 35 KB a second."""
MOST_CONNECTIONS = 2048
BACKLOG = 1024
_HEADER_BYTES = 8190
PIECE = 64 * 1024
"""Bytes of a document that are handed to a connection at once."""
_LOG = logging.getLogger(__name__)

Studies = Mapping[bytes, LiveStudy]


class _Stream(web.StreamResponse):
    """A response without Date, Server and Content-Type."""

    async def _prepare_headers(self) -> None:
        await super()._prepare_headers()
        for name in (hdrs.DATE, hdrs.SERVER, hdrs.CONTENT_TYPE):
            self._headers.popall(name, None)


class _Plain(web.Response, _Stream):
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
        response = _Plain(status=500 if status == 500 else 400)
        response.force_close()
        return response

    def log_exception(self, *args: Any, **kwargs: Any) -> None:
        """An error's text may quote a request: its type alone is logged. Errors with a reader were told before."""
        error = kwargs.get("exc_info")
        expected_errors = (ConnectionError, web.HTTPException, AnonmlError)
        if isinstance(error, BaseException) and not isinstance(error, expected_errors):
            _LOG.error("a request failed: %s", type(error).__name__)


class _Server(web.Server):
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


class Surface:
    """Answers requests from the studies of the mapping, which may change while it serves."""

    def __init__(self, studies: Studies) -> None:
        self._studies = studies

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """The answer to one request."""
        match = _PATH.match(request.rel_url.raw_path) if not request.rel_url.raw_query_string else None
        study = self._studies.get(bytes.fromhex(match[1])) if match else None
        if match is None or study is None:
            return _closing(404)
        name, first, last = match[2], match[3], match[4]
        if request.method == "GET" and name == "heads":
            return await _in_pieces(request, [study.heads()])
        if request.method == "GET" and first is not None:
            bodies = await study.served(int(first), int(last or first))
            return await _in_pieces(request, bodies) if bodies else _closing(404)
        posts = {"enrol": study.enrol, "withdraw": study.withdraw, "packets": study.submit}
        if request.method != "POST" or name not in posts:
            return _closing(404)
        return await _post(request, posts[name], _limit(study, name))


async def start(studies: Studies, host: str, port: int) -> tuple[web.ServerRunner, int]:
    """Serve; the runner (call its `cleanup`) and the port, which is the system's choice when `port` is 0."""
    runner = await _runner(studies)
    site = web.TCPSite(runner, host, port, backlog=BACKLOG)
    await site.start()
    return runner, int(runner.addresses[0][1])


async def start_unix(studies: Studies, path: Path) -> web.ServerRunner:
    """Serve at a socket file that only its owner can reach, and at no network address at all.

    Nothing that connects there has an address. A socket that an earlier life left at `path` is replaced.
    """
    runner = await _runner(studies)
    try:
        await web.SockSite(runner, _private_socket(path), backlog=BACKLOG).start()
    except BaseException:
        await runner.cleanup()
        raise
    return runner


async def _runner(studies: Studies) -> web.ServerRunner:
    server = _Server(Surface(studies).answer)
    runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=2)
    await runner.setup()
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


async def _post(request: web.BaseRequest, accept: Callable[[bytes], Awaitable[str]], limit: int) -> web.StreamResponse:
    try:
        async with asyncio.timeout(READ_SECONDS):
            body = await _read(request, limit)
    except TimeoutError:
        return _closing(400)
    if body is None:
        return _closing(200, encode_reply("wrong-size"))
    word = await accept(body)
    crash_point("before-answer")
    response = _Plain(body=encode_reply(word))
    await response.prepare(request)
    await response.write_eof()
    crash_point("after-answer")
    return response


async def _in_pieces(request: web.BaseRequest, bodies: Sequence[bytes | memoryview]) -> web.StreamResponse:
    """Bodies that all readers share, one after the other: a slow reader holds a piece here, not a copy of 20 MB."""
    response = _Stream()
    response.content_length = sum(map(len, bodies))
    await response.prepare(request)
    for body in bodies:
        whole = memoryview(body)
        for start in range(0, len(body), PIECE):
            await response.write(whole[start : start + PIECE])  # waits until the last ones were read
    await response.write_eof()
    return response


async def _read(request: web.BaseRequest, limit: int) -> bytes | None:
    """The body, or None when it is longer than `limit`; nothing beyond the limit is kept."""
    parts: list[bytes] = []
    size = 0
    while chunk := await request.content.readany():
        size += len(chunk)
        if size > limit:
            return None
        parts.append(chunk)
    return b"".join(parts)


def _limit(study: LiveStudy, name: str) -> int:
    return study.packet_intake.rules.sealed_bytes if name == "packets" else largest_enrolment(study.manifest.packets)


def _closing(status: int, body: bytes = b"") -> _Plain:
    response = _Plain(status=status, body=body)
    response.force_close()
    return response
