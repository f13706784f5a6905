"""Posts with the head of our own peers: which bytes are one, and that nobody can tell them from those aiohttp
answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from aiohttp import web

from anon.route import DirectRoute
from anon.serving import door, quiet_http
from anon.serving.giving_way import Limits, RequestStage
from anon.serving.quiet_http import QuietResponse, closing, listen, read_body
from anon.serving.short_posts import Send, ShortPost, answer_of, may_become_head, read_head
from tests.support.patience import PATIENCE, turns, until

PATH, LONGEST = b"/posts", 40
HEAD = b"POST /posts HTTP/1.1\r\nHost: x:1\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
LIBRARY_HEAD = HEAD.replace(b"Connection", b"X: y\r\nConnection")
"""A head of another form, so that aiohttp reads it."""

Ask = Callable[..., "asyncio.Future[bytes]"]


class Served:
    """A server of one path that answers a body with its length; `short` counts the posts that came without aiohttp."""

    def __init__(self) -> None:
        self.short, self.port = 0, 0
        self.held: asyncio.Event | None = None

    def find(self, path: bytes) -> ShortPost | None:
        return ShortPost(LONGEST, self.work) if path == PATH else None

    async def work(self, body: bytes, send: Send) -> None:
        self.short += 1
        send(200, await self.reply(body))

    async def reply(self, body: bytes) -> bytes:
        if self.held is not None:
            await self.held.wait()
        if body == b"broken":
            raise RuntimeError("SECRET")
        return b"%d bytes" % len(body)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.rel_url.raw_path != PATH.decode():
            return closing(404)
        body = await read_body(request, LONGEST)
        return closing(200, b"too long") if body is None else QuietResponse(body=await self.reply(body))

    async def ask(self, *pieces: bytes) -> bytes:
        """The bytes of the answer to a request that comes in pieces."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        for piece in pieces:
            writer.write(piece)
            await turns(5)
        answer = await asyncio.wait_for(reader.read(), PATIENCE)
        writer.close()
        return answer


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    server = Served()
    runner, server.port = await listen(server.answer, "127.0.0.1", 0, find=server.find)
    yield server
    await runner.cleanup()


def test_only_the_head_of_our_peers_is_read() -> None:
    head = HEAD % 9
    whole = read_head(head + b"123456789")
    assert whole is not None and (whole.path, whole.begins, whole.ends) == (PATH, len(head), len(head) + 9)
    assert all(may_become_head(head[:end]) and read_head(head[:end]) is None for end in range(1, len(head)))
    for other in (
        head.replace(b"POST", b"PUT"),
        head.replace(b"1.1", b"1.0"),
        head.replace(b"9", b"09"),
        head.replace(b"9", b"0"),
        head.replace(b"9", b"+9"),
        head.replace(b"9", b"123456789"),
        head.replace(b"\r\n", b"\n"),
        head.replace(b"/posts", b"/po sts"),
        head.replace(b"/posts", b"/\xff"),
        head.replace(b"x:1", b"x:1 "),
        head.replace(b"close", b"keep-alive"),
        head.replace(b"Content-Length: 9\r\n", b"Content-Length: 9\r\nContent-Length: 8\r\n"),
        head.replace(b"Content-Length: 9", b"Transfer-Encoding: chunked"),
        b" " + head,
    ):
        assert read_head(other + b"123456789") is None and not may_become_head(other), other
    assert not may_become_head(b"GET /") and not may_become_head(b"POST /" + bytes(600))


async def test_the_head_is_that_of_our_peers(served: Served) -> None:
    """Or every packet would go through aiohttp, unnoticed."""
    answer = await DirectRoute().post(f"127.0.0.1:{served.port}", PATH.decode(), b"body", 100)
    assert (answer.status, answer.body, served.short) == (200, b"4 bytes", 1)


@pytest.mark.parametrize("body", [b"x", b"x" * LONGEST, b"broken"])
async def test_both_ways_give_the_same_bytes(served: Served, body: bytes) -> None:
    by_library = await served.ask(LIBRARY_HEAD % len(body) + body)
    assert served.short == 0
    short = HEAD % len(body) + body
    assert await served.ask(short) == by_library
    assert await served.ask(short[:3], short[3:30], short[30:-1], short[-1:]) == by_library
    assert served.short == 2
    assert b"SECRET" not in by_library


@pytest.mark.parametrize(
    "rest",
    [
        HEAD % (LONGEST + 1) + b"x" * (LONGEST + 1),
        (HEAD % 1).replace(PATH, b"/other") + b"x",
        HEAD % 1 + b"xGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        (HEAD % 1).replace(b"close", b"keep-alive, close") + b"x",
        b"POST /posts HTTP/1.1\r\nSECRET\r\n\r\n",
        b"POST /" + b"SECRET" * 5000,
    ],
    ids=["too long", "another path", "more than its body", "another head", "malformed", "endless"],
)
async def test_all_else_is_left_to_aiohttp(served: Served, monkeypatch: pytest.MonkeyPatch, rest: bytes) -> None:
    """With the answer that it gives without short posts."""
    ours = await served.ask(rest[:20], rest[20:])
    assert served.short == 0
    monkeypatch.setattr(served, "find", quiet_http.no_short_post)
    runner, served.port = await listen(served.answer, "127.0.0.1", 0)
    assert await served.ask(rest) == ours != b""
    await runner.cleanup()


async def test_a_post_that_does_not_come_whole_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "TICK", 0.05)
    server = Served()
    limits = Limits(100, head_seconds=0.1, body_seconds=0.1)
    runner, server.port = await listen(server.answer, "127.0.0.1", 0, find=server.find, limits=limits)
    assert await server.ask(HEAD % 9 + b"x") == answer_of(400) == await server.ask(LIBRARY_HEAD % 9 + b"x")
    assert await server.ask((HEAD % 9)[:50]) == b""
    assert server.short == 0
    await runner.cleanup()


async def test_a_post_under_way_is_answered_before_the_server_ends() -> None:
    """And keeps its place when there is one connection too many."""
    server = Served()
    runner, server.port = await listen(server.answer, "127.0.0.1", 0, find=server.find)
    server.held = asyncio.Event()
    asking = asyncio.ensure_future(server.ask(HEAD % 1 + b"x", b"and more, which is not read"))
    await until(lambda: server.short)
    assert runner.server is not None
    [connection] = runner.server.connections
    assert isinstance(connection, quiet_http._Quiet) and connection.stage() is RequestStage.WORK
    ending = asyncio.ensure_future(runner.cleanup())
    await turns()
    server.held.set()
    assert (await asking).endswith(b"1 bytes")
    await ending
