"""One exchange over HTTP/1.1 with aiohttp: nothing on the wire but Host, Content-Length and Connection: close."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import aiohttp
from aiohttp_socks import ProxyConnectionError, ProxyConnector, ProxyError, ProxyTimeoutError, ProxyType

from anon.errors import NotConnected, Unreachable, because
from anon.route.far_side import FarSide
from anon.route.route import Response
from anon.text.sentences import say

_SKIPPED = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")


class HttpRoute(ABC):
    """The part that every route over HTTP/1.1 has in common; a route adds how its connection is made and what a proxy's
    no means."""

    timeout: float
    far_side: FarSide

    @abstractmethod
    async def _connector(self, address: str) -> aiohttp.BaseConnector:
        """A connector used for one request only. Raises `Refused` for an address that is not this route's."""

    def _proxy_gone(self, error: Exception) -> Unreachable:
        return Unreachable(
            say(
                "the proxy did not answer{error}; nothing is lost, check that it runs where --route says, and try "
                "again",
                error=because(error),
            )
        )

    def _proxy_refused(self, error: Exception) -> Unreachable:
        return Unreachable(self.far_side.behind_proxy(error))

    async def get(self, address: str, path: str, limit: int) -> Response:
        """See `Route.get`."""
        return await self._exchange("GET", address, path, None, limit)

    async def post(self, address: str, path: str, body: bytes, limit: int) -> Response:
        """See `Route.post`."""
        return await self._exchange("POST", address, path, body, limit)

    async def _exchange(self, method: str, address: str, path: str, body: bytes | None, limit: int) -> Response:
        connector = await self._connector(address)
        timeout = aiohttp.ClientTimeout(total=self.timeout, sock_connect=self.timeout)
        try:
            async with (
                aiohttp.ClientSession(
                    connector=connector,
                    cookie_jar=aiohttp.DummyCookieJar(),
                    skip_auto_headers=_SKIPPED,
                    auto_decompress=False,
                    timeout=timeout,
                    trust_env=False,
                    trace_configs=[_one_connection()],
                ) as session,
                session.request(method, f"http://{address}{path}", data=body, allow_redirects=False) as response,
            ):
                return Response(response.status, await _read(response, limit))
        except ProxyConnectionError as error:
            raise NotConnected(str(self._proxy_gone(error))) from None
        except (ProxyTimeoutError, ProxyError, EOFError) as error:  # EOFError: it hung up in the middle of its greeting
            raise self._proxy_refused(error) from None
        except aiohttp.ClientConnectorError as error:
            raise NotConnected(self.far_side.silent(error)) from None
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise Unreachable(self.far_side.silent(error)) from None


def _one_connection() -> aiohttp.TraceConfig:
    """Refuses a second connection: aiohttp repeats a GET at once when the other side hangs up, and so would let it
    choose when this machine connects."""
    made: list[object] = []

    async def begun(_session: aiohttp.ClientSession, context: object, _connection: object) -> None:
        if made:
            raise aiohttp.ClientConnectionError
        made.append(context)

    trace = aiohttp.TraceConfig()
    trace.on_connection_create_start.append(begun)
    return trace


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > limit:
            raise Unreachable(f"the answer is longer than {limit} bytes; it was not read further")
        chunks.append(chunk)
    return b"".join(chunks)


def isolated_connector(host: str, port: int, random_bytes: Callable[[int], bytes]) -> aiohttp.BaseConnector:
    """A connection through a SOCKS5 proxy under a user and password that nobody had before; names go to the proxy."""
    return ProxyConnector(
        proxy_type=ProxyType.SOCKS5,
        host=host,
        port=port,
        username=random_bytes(16).hex(),
        password=random_bytes(16).hex(),
        rdns=True,
        force_close=True,
        limit=1,
    )
