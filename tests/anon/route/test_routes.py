"""Routes against real sockets: what is on the wire, that names stay unresolved, that nothing is reused."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from attrs import define, field

from anon.errors import NotConnected, Refused, Unreachable
from anon.route import DirectRoute, SocksRoute
from anon.wire.addresses import is_loopback


@define
class Seen:
    """The requests that a server saw, one a connection."""

    heads: list[bytes] = field(factory=list)
    bodies: list[bytes] = field(factory=list)
    logins: list[tuple[bytes, bytes]] = field(factory=list)
    targets: list[tuple[int, bytes, int]] = field(factory=list)
    answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


async def _http(seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    seen.heads.append(head)
    length = next(
        (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0
    )
    seen.bodies.append(await reader.readexactly(length))
    writer.write(seen.answer)
    await writer.drain()
    writer.close()


async def _socks(seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """SOCKS5 (RFC 1928) with user and password (RFC 1929); plays the destination itself."""
    _, count = await reader.readexactly(2)
    assert 2 in await reader.readexactly(count)
    writer.write(b"\x05\x02")
    _, size = await reader.readexactly(2)
    user = await reader.readexactly(size)
    password = await reader.readexactly((await reader.readexactly(1))[0])
    seen.logins.append((user, password))
    writer.write(b"\x01\x00")
    _, _, _, kind = await reader.readexactly(4)
    size = (await reader.readexactly(1))[0] if kind == 3 else {1: 4, 4: 16}[kind]
    name = await reader.readexactly(size)
    port = int.from_bytes(await reader.readexactly(2), "big")
    seen.targets.append((kind, name, port))
    writer.write(b"\x05\x00\x00\x01" + bytes(6))
    await _http(seen, reader, writer)


@asynccontextmanager
async def _server(seen: Seen, handler: object) -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await handler(seen, reader, writer)  # type: ignore[operator]

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_direct_sends_nothing_that_identifies() -> None:
    seen = Seen()
    async with _server(seen, _http) as port:
        answer = await DirectRoute().post(f"127.0.0.1:{port}", "/v1/x", b"body", 100)
    assert (answer.status, answer.body) == (200, b"ok")
    names = [line.split(b":")[0].lower() for line in seen.heads[0].split(b"\r\n")[1:] if line]
    assert sorted(names) == [b"connection", b"content-length", b"host"]
    assert b"Connection: close" in seen.heads[0]
    assert seen.bodies == [b"body"]


@pytest.mark.parametrize("address", ["example.org:80", "10.0.0.1:80", "0.0.0.0:80", "[::]:80", "abc.onion:80"])
async def test_direct_is_for_loopback_only(address: str) -> None:
    with pytest.raises(Refused, match="socks"):
        await DirectRoute().get(address, "/", 10)


async def test_direct_looks_no_name_up_not_even_localhost() -> None:
    with pytest.raises(Refused, match=r"use 127\.0\.0\.1"):
        await DirectRoute().get("localhost:80", "/", 10)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1:1", True),
        ("127.9.9.9:1", True),
        ("[::1]:1", True),
        ("128.0.0.1:1", False),
        ("x:1", False),
        ("127.0.0.1:@example.org", False),
        ("[::1]:", False),
    ],
)
def test_loopback(address: str, expected: bool) -> None:
    assert is_loopback(address) is expected


async def test_socks_takes_fresh_credentials_and_leaves_names_to_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolved(*_: object, **__: object) -> object:
        raise AssertionError("a name was looked up here")

    seen = Seen()
    async with _server(seen, _socks) as port:
        monkeypatch.setattr(socket, "getaddrinfo", resolved)
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolved)
        route = SocksRoute("127.0.0.1", port)
        for _ in range(3):
            assert (await route.post("anon.serving.onion_service:80", "/v1/x", b"body", 100)).body == b"ok"
    assert [target[:2] for target in seen.targets] == [(3, b"anon.serving.onion_service")] * 3
    assert len({user for user, _ in seen.logins}) == len({password for _, password in seen.logins}) == 3
    assert {len(user) for user, _ in seen.logins} == {32}
    assert len(set(seen.heads)) == 1


async def test_an_answer_that_is_too_long_is_not_read() -> None:
    seen = Seen(answer=b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + bytes(1000))
    async with _server(seen, _http) as port:
        with pytest.raises(Unreachable, match="longer than 10"):
            await DirectRoute().get(f"127.0.0.1:{port}", "/", 10)


async def test_a_redirect_is_not_followed() -> None:
    seen = Seen(answer=b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")
    async with _server(seen, _http) as port:
        assert (await DirectRoute().get(f"127.0.0.1:{port}", "/", 10)).status == 302
    assert len(seen.heads) == 1


async def test_nobody_there_and_silence_are_unreachable() -> None:
    with pytest.raises(Unreachable, match="nothing is lost"):
        await DirectRoute().get("127.0.0.1:1", "/", 10)

    async def silent(_seen: Seen, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.5)
        writer.close()

    async with _server(Seen(), silent) as port:
        with pytest.raises(Unreachable):
            await DirectRoute(timeout=0.2).get(f"127.0.0.1:{port}", "/", 10)


async def test_a_proxy_that_is_not_there_is_unreachable() -> None:
    with pytest.raises(Unreachable, match="check that it runs"):
        await SocksRoute("127.0.0.1", 1).get("anon.serving.onion_service:80", "/", 10)


@pytest.mark.parametrize("greeting", [b"", b"\x05\xff", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
async def test_something_else_than_a_proxy_is_unreachable(greeting: bytes) -> None:
    async def other(_seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(3)
        writer.write(greeting)
        writer.close()

    async with _server(Seen(), other) as port:
        with pytest.raises(Unreachable, match="proxy"):
            await SocksRoute("127.0.0.1", port).get("anon.serving.onion_service:80", "/", 10)


async def test_a_proxy_that_is_silent_is_unreachable() -> None:
    async def silent(_seen: Seen, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.5)
        writer.close()

    async with _server(Seen(), silent) as port:
        with pytest.raises(Unreachable, match="nothing is lost"):
            await SocksRoute("127.0.0.1", port, timeout=0.2).get("anon.serving.onion_service:80", "/", 10)


async def test_a_proxy_that_breaks_off_may_have_told_the_network_and_one_that_is_not_there_has_not() -> None:
    """Of the second kind an attempt is not counted: decision 5 wants one too many and never one too few."""

    async def broken(_seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(3)
        writer.write(b"\x05\x02")
        await reader.readexactly(2 + 32 + 1 + 32)
        writer.write(b"\x01\x00")
        await reader.readexactly(4)  # the destination is here: a circuit may be under way
        taken = writer.get_extra_info("socket")
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    async with _server(Seen(), broken) as port:
        with pytest.raises(Unreachable) as told:
            await SocksRoute("127.0.0.1", port).get("anon.serving.onion_service:80", "/", 10)
    assert not isinstance(told.value, NotConnected)
    for nobody in (DirectRoute().get("127.0.0.1:1", "/", 10), SocksRoute("127.0.0.1", 1).get("a.onion:80", "/", 10)):
        with pytest.raises(NotConnected):
            await nobody


@pytest.mark.parametrize("flood", [
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 20_000,
    b"HTTP/1.1 100 \r\n\r\n" * 20_000,
], ids=["tiny chunks", "interim answers"])
async def test_an_answer_in_thousands_of_pieces_is_not_read(flood: bytes) -> None:
    """Each piece costs this machine more than it costs the other side."""
    async with _server(Seen(answer=flood), _http) as port:
        with pytest.raises(Unreachable, match="too many pieces"):
            await DirectRoute().get(f"127.0.0.1:{port}", "/", 1_000_000)


async def test_a_no_that_comes_before_all_of_a_body_has_left_is_read() -> None:
    gone = asyncio.Event()

    async def early(_seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 No\r\nContent-Length: 0\r\n\r\n")
        await gone.wait()
        writer.transport.abort()

    async with _server(Seen(), early) as port:
        answer = await DirectRoute().post(f"127.0.0.1:{port}", "/", bytes(50_000_000), 10)
        gone.set()
    assert answer.status == 413


async def test_cookies_are_not_kept() -> None:
    seen = Seen(answer=b"HTTP/1.1 200 OK\r\nSet-Cookie: id=1; Path=/\r\nContent-Length: 2\r\n\r\nok")
    async with _server(seen, _http) as port:
        route = DirectRoute()
        await route.get(f"127.0.0.1:{port}", "/", 10)
        await route.get(f"127.0.0.1:{port}", "/", 10)
    assert not any(b"cookie" in head.lower() for head in seen.heads)
