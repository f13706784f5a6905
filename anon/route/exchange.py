"""One exchange over HTTP/1.1 with aiohttp: nothing on the wire but Host, Content-Length and Connection: close.

Importing aiohttp takes longer than many a command: `anon.route.http` imports this module at the first exchange.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import aiohttp
from aiohttp_socks import ProxyConnectionError, ProxyConnector, ProxyError, ProxyTimeoutError, ProxyType

from anon.errors import NotConnected, Unreachable
from anon.route.far_side import FarSide
from anon.route.route import Response

_SKIPPED = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")


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
    route: Way, connector: aiohttp.BaseConnector, method: str, url: str, body: bytes | None, limit: int
) -> Response:
    """The answer to one request over a connector of its own, which is closed afterwards. Raises `Unreachable`."""
    timeout = aiohttp.ClientTimeout(total=route.timeout, sock_connect=route.timeout)
    try:
        async with (
            aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                skip_auto_headers=_SKIPPED,
                # A compressed body could unpack to gigabytes within one chunk, before `limit` is looked at.
                auto_decompress=False,
                timeout=timeout,
                # Else aiohttp would take a proxy and passwords from the environment (HTTP_PROXY, .netrc).
                trust_env=False,
                trace_configs=[_one_connection()],
            ) as session,
            # A redirect would let the other side choose where this machine connects to.
            session.request(method, url, data=body, allow_redirects=False) as response,
        ):
            return Response(response.status, await _read(response, limit))
    except ProxyConnectionError as error:
        raise NotConnected(str(route.proxy_gone(error))) from None
    except (ProxyTimeoutError, ProxyError, EOFError) as error:  # EOFError: it hung up in the middle of its greeting
        raise route.proxy_refused(error) from None
    except aiohttp.ClientConnectorError as error:
        raise NotConnected(route.far_side.silent(error)) from None
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        raise Unreachable(route.far_side.silent(error)) from None


def straight() -> aiohttp.BaseConnector:
    """A connection of its own, without a cache of names."""
    return aiohttp.TCPConnector(force_close=True, use_dns_cache=False, limit=1)


def isolated_connector(host: str, port: int, random_bytes: Callable[[int], bytes]) -> aiohttp.BaseConnector:
    """A connection through a SOCKS5 proxy under a user and password that nobody had before; names go to the proxy."""
    return ProxyConnector(
        proxy_type=ProxyType.SOCKS5,
        host=host,
        port=port,
        # Tor puts streams of another user and password on a circuit of their own (IsolateSOCKSAuth).
        username=random_bytes(16).hex(),
        password=random_bytes(16).hex(),
        # A name that is looked up here would tell the network who is asked for.
        rdns=True,
        force_close=True,
        limit=1,
    )


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


def reply_code(error: Exception) -> int | None:
    """The SOCKS reply code that an error of the proxy library carries as a number."""
    return error.error_code if isinstance(error, ProxyError) else None
