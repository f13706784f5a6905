"""One exchange over HTTP/1.1 with h11: nothing on the wire but Host, Content-Length and Connection: close.

`anon.route.http` imports this module at the first exchange, since many a command has none.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable
from typing import Protocol

import h11

from anon.errors import NotConnected, Unreachable
from anon.route.far_side import FarSide
from anon.route.route import Response

Dial = Callable[[str, int, float], Awaitable[socket.socket]]
"""A connected socket to a host and port, within so many seconds. Raises `NotConnected` where nothing took the
connection; else `Unreachable`, or `OSError` where the far side does not answer."""
LEAST_PIECE, SPARE_PIECES = 256, 1_000
"""An answer may come in one piece for each so many bytes of its limit, and so many more. A chunk is one at least."""


class Way(Protocol):
    """The part of a route that an exchange asks: `anon.route.http.HttpRoute`."""

    @property
    def timeout(self) -> float: ...

    @property
    def far_side(self) -> FarSide: ...

    def proxy_gone(self, error: Exception) -> Unreachable:
        """The fault where the proxy itself does not answer."""

    def proxy_refused(self, error: Exception) -> Unreachable:
        """The fault where the proxy answers with a no."""


async def exchange(
    route: Way, dial: Dial, method: str, address: str, path: str, body: bytes | None, limit: int
) -> Response:
    """The answer to one request over a connection of its own, which is closed afterwards. Raises `Unreachable`.

    A redirect is an answer like any other: else the other side would choose where this machine connects to.
    """
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(route.timeout):
            connected = await dial(host, int(port), route.timeout)
            return await _asked(connected, _request(method, address, path, body), limit)
    except (OSError, OverflowError) as error:  # TimeoutError is one; a port above 65,535 overflows
        raise Unreachable(route.far_side.silent(error)) from None


def straight(route: Way) -> Dial:
    """Connections to addresses in numbers, `[...]` around one of version 6. No name is looked up."""

    async def dial(host: str, port: int, _seconds: float) -> socket.socket:
        number = ipaddress.ip_address(host.strip("[]"))
        connecting = socket.socket(socket.AF_INET6 if number.version == 6 else socket.AF_INET, socket.SOCK_STREAM)
        connecting.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(connecting, (str(number), port))
        except BaseException as error:
            connecting.close()
            if isinstance(error, OSError):
                raise NotConnected(route.far_side.silent(error)) from None
            raise
        return connecting

    return dial


def isolated(route: Way, host: str, port: int, random_bytes: Callable[[int], bytes]) -> Dial:
    """Connections through the SOCKS5 proxy at this host and port, each under a user and password that nobody had
    before; names go to the proxy."""
    from python_socks import ProxyConnectionError, ProxyError, ProxyTimeoutError, ProxyType  # late: only here
    from python_socks.async_.asyncio import Proxy

    async def dial(far: str, far_port: int, seconds: float) -> socket.socket:
        # Tor puts streams of another user and password on a circuit of their own (IsolateSOCKSAuth).
        user, password = random_bytes(16).hex(), random_bytes(16).hex()
        # A name that is looked up here (rdns=False) would tell the network who is asked for.
        proxy = Proxy(ProxyType.SOCKS5, host, port, user, password, rdns=True)
        try:
            return await proxy.connect(far, far_port, timeout=seconds)
        except ProxyConnectionError as error:
            raise NotConnected(str(route.proxy_gone(error))) from None
        # Further on the proxy may have told the network. EOFError: it hung up in its greeting.
        except (ProxyTimeoutError, ProxyError, EOFError) as error:
            raise route.proxy_refused(error) from None

    return dial


def _request(method: str, address: str, path: str, body: bytes | None) -> tuple[h11.Connection, bytes]:
    """The state of the talk, and all bytes of the request."""
    length = [] if body is None else [("Content-Length", str(len(body)))]
    host = address.removesuffix(":80")  # the port that HTTP supposes is not written
    headers = [("Host", host), *length, ("Connection", "close")]
    talk = h11.Connection(h11.CLIENT)
    parts = [h11.Request(method=method, target=path, headers=headers), *([h11.Data(body)] if body else [])]
    return talk, b"".join(talk.send(part) or b"" for part in (*parts, h11.EndOfMessage()))


async def _asked(connected: socket.socket, request: tuple[h11.Connection, bytes], limit: int) -> Response:
    talk, words = request
    loop = asyncio.get_running_loop()
    reading = _Answer(talk, limit, loop.create_future())
    try:
        transport, _ = await loop.create_connection(lambda: reading, sock=connected)
        try:
            transport.write(words)
            return await reading.answer
        finally:
            transport.abort()  # what is not sent yet, after an early no, is not wanted
    finally:
        reading.give_up()


class _Answer(asyncio.Protocol):
    """Reads an answer as it comes, also while the request still leaves. `answer` has it, or an `OSError`."""

    def __init__(self, talk: h11.Connection, limit: int, answer: asyncio.Future[Response]) -> None:
        self._talk, self._limit, self._status, self._body = talk, limit, 0, bytearray()
        self._pieces_left = limit // LEAST_PIECE + SPARE_PIECES
        self.answer = answer

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        try:
            self._talk.receive_data(data)
            while not self.answer.done() and (event := self._talk.next_event()) is not h11.NEED_DATA:
                self._take(event)
        except h11.RemoteProtocolError:
            self._fail(ConnectionError())

    def eof_received(self) -> None:
        """See `asyncio.Protocol`. An answer without a length ends here."""
        self.data_received(b"")

    def connection_lost(self, error: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._fail(error or ConnectionError())

    def give_up(self) -> None:
        """End the wait for the answer, so that asyncio reports no fault of it as forgotten."""
        if not self.answer.cancel() and not self.answer.cancelled():
            self.answer.exception()

    def _take(self, event: object) -> None:
        self._pieces_left -= 1
        if self._pieces_left < 0:  # each takes this machine longer than it takes the other side
            self._fail(Unreachable("the answer comes in too many pieces; it was not read further"))
        elif isinstance(event, h11.Response):
            self._status = event.status_code
        elif isinstance(event, h11.Data):
            self._body += event.data
            if len(self._body) > self._limit:
                self._fail(Unreachable(f"the answer is longer than {self._limit} bytes; it was not read further"))
        elif isinstance(event, h11.EndOfMessage):
            self.answer.set_result(Response(self._status, bytes(self._body)))

    def _fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


def reply_code(error: Exception) -> int | None:
    """The SOCKS reply code that an error of the proxy library carries as a number."""
    from python_socks import ProxyError

    return error.error_code if isinstance(error, ProxyError) else None
