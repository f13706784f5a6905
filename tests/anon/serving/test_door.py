"""The door of a server: too many bytes, too many connections, too few open files; and nothing of it in a log."""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from aiohttp import web

from anon.serving import door
from anon.serving.giving_way import MOST_CONNECTIONS, Limits, places
from anon.serving.open_files import WANTED, open_files
from anon.serving.quiet_http import closing, listen, read_body
from tests.support.command_line import ROOT
from tests.support.patience import PATIENCE, turns

HEAD = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
GET = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


async def _answer(request: web.BaseRequest) -> web.StreamResponse:
    body = await read_body(request, 10**7)
    return closing(200, b"%d" % len(body or b""))


@asynccontextmanager
async def opened(
    answer: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]] = _answer, **limits: Any
) -> AsyncIterator[int]:
    runner, port = await listen(answer, "127.0.0.1", 0, limits=Limits(**{"connections": 100, **limits}))
    yield port
    await runner.cleanup()


async def sent(port: int, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    await writer.drain()
    await turns()
    return reader, writer


async def asked(port: int, data: bytes) -> bytes:
    reader, writer = await sent(port, data)
    answer = await asyncio.wait_for(reader.read(), PATIENCE)
    writer.close()
    return answer


async def test_unfinished_bodies_together_are_bounded_and_the_stillest_goes() -> None:
    async with opened(held=11_000) as port:
        still, other = await sent(port, HEAD % 6000 + b"x" * 3000), await sent(port, HEAD % 6000 + b"x" * 5000)
        assert (await asked(port, HEAD % 5000 + b"x" * 5000)).endswith(b"5000")
        with suppress(ConnectionError):
            assert await asyncio.wait_for(still[0].read(), PATIENCE) == b""
        other[1].write(b"x" * 1000)
        assert (await asyncio.wait_for(other[0].read(), PATIENCE)).endswith(b"6000"), "room was made by one alone"
        for _, writer in (still, other):
            writer.close()


async def test_requests_that_are_whole_displace_no_body() -> None:
    """They come one behind the other, and their answers are not read. All their bytes once counted as an unfinished
    body's."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return await _answer(request) if request.method == "POST" else web.Response(body=bytes(10**7))

    kept_alive = GET.replace(b"Connection: close\r\n", b"")
    async with opened(answer, held=11_000) as port:
        hoarder = await sent(port, kept_alive)
        for _ in range(10_000 // len(kept_alive)):
            hoarder[1].write(kept_alive)
        await turns()
        assert (await asked(port, HEAD % 5000 + b"x" * 5000)).endswith(b"5000")
        hoarder[1].close()


async def test_what_comes_of_a_connection_that_ended_itself_is_handed_to_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with opened(held=1000) as port:
        for _ in range(5):
            with suppress(ConnectionError, AssertionError):
                await asked(port, HEAD % 5000 + b"x" * 4000)
    assert not caplog.records


async def test_a_body_longer_than_all_room_ends_itself() -> None:
    async with opened(held=1000) as port:
        with pytest.raises((ConnectionError, AssertionError)):
            assert await asked(port, HEAD % 5000 + b"x" * 4000) != b""
        assert (await asked(port, GET)).startswith(b"HTTP/1.1 200"), "its bytes are not counted any more"


async def test_connections_that_went_are_not_counted() -> None:
    async with opened(connections=2) as port:
        for _ in range(10):
            assert (await asked(port, GET)).startswith(b"HTTP/1.1 200")


async def test_a_door_that_closes_deafens_no_socket_that_comes_after_it() -> None:
    """A socket opened at once got the descriptor of the door, which the loop took for one that it watched already."""
    loop, heard = asyncio.get_running_loop(), asyncio.Event()
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)
    closed = door.Door(lambda: pytest.fail("nobody came"), [listening], Limits(connections=5))
    await turns(1)
    closed.close()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        loop.add_reader(ours, heard.set)
        theirs.send(b"x")
        await turns()
        loop.remove_reader(ours)
    assert heard.is_set() and listening.fileno() == -1


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
async def test_a_failed_accept_is_not_repeated_at_once_and_makes_room(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, number: int
) -> None:
    """asyncio's own accept repeats it, once for each place of the backlog, and logs every one."""
    monkeypatch.setattr(door, "PAUSE", 0.3)
    loop, tries = asyncio.get_running_loop(), 0
    accept = loop.sock_accept

    async def failing(listening: socket.socket) -> Any:
        nonlocal tries
        connection = await accept(listening)
        tries += 1
        if tries == 2:
            connection[0].close()
            raise OSError(number, "no file is free")
        return connection

    monkeypatch.setattr(loop, "sock_accept", failing)
    with caplog.at_level(logging.DEBUG):
        async with opened() as port:
            silent = await sent(port, b"")
            await sent(port, b"")
            with suppress(ConnectionError):
                assert await asyncio.wait_for(silent[0].read(), PATIENCE) == b"", "it gave way"
            assert tries == 2
            assert (await asked(port, GET)).startswith(b"HTTP/1.1 200")
            silent[1].close()
    assert [record for record in caplog.records if record.name != "asyncio" or record.levelno >= logging.WARNING] == []


async def test_a_body_that_is_broken_off_leaves_no_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        async with opened() as port:
            for rest in (
                HEAD % 100 + b"x",
                HEAD.replace(b"Content-Length: %d", b"Transfer-Encoding: chunked") + b"5\r\nab",
            ):
                for abort in (True, False):
                    _, writer = await sent(port, rest)
                    writer.transport.abort() if abort else writer.close()
            chunked = HEAD.replace(b"Content-Length: %d", b"Transfer-Encoding: chunked") + b"zz\r\n"
            await asked(port, chunked)
            await turns()
    assert [record.getMessage() for record in caplog.records if record.name != "asyncio"] == []


def test_the_soft_limit_is_raised_towards_the_hard_one_and_never_lowered() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    program = (
        "import resource, sys; from anon.serving.open_files import open_files\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))\n"
        "print(open_files(), *resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    for soft, most in ((256, hard), (256, 256), (300, 1024), (hard, hard)):
        run = [sys.executable, "-c", program, str(soft), str(most)]
        said = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
        assert said == [str(max(soft, min(most, WANTED)))] * 2 + [str(most)]


def test_a_server_holds_no_more_than_this_process_may_have() -> None:
    assert door.open_to_all().connections == places(open_files()) <= MOST_CONNECTIONS
