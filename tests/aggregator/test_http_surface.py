"""The aggregator's HTTP answers, as anybody on the network sees them, have exact words and constant sizes.

They carry nothing about the sender or the machine.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path

import pytest

from aggregator.network import http
from anon.route import DirectRoute
from anon.serving import door, giving_way, quiet_http
from anon.serving.giving_way import Limits
from anon.transparency.documents import check_body, parse_chain
from anon.wire.replies import REPLY_BYTES, parse_reply
from tests.support.patience import PATIENCE, turns
from tests.support.world import FakePeer, World

Place = int | Path
"""A port of this machine, or a socket file as an onion service has it."""
Limited = Callable[..., AbstractAsyncContextManager[tuple[World, Place]]]


@pytest.fixture(params=["loopback", "socket file"])
async def served(running: World, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[World, Place]]:
    """The study over HTTP, at both kinds of places."""
    async with _serving(running, None if request.param == "loopback" else tmp_path / "onion.sock") as place:
        yield running, place


@pytest.fixture(params=["loopback", "socket file"])
async def limited(running: World, request: pytest.FixtureRequest, tmp_path: Path) -> Limited:
    """The same with limits of the test's own, which are looked after often."""

    @asynccontextmanager
    async def serving(connections: int = 100, **seconds: float) -> AsyncIterator[tuple[World, Place]]:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(quiet_http, "open_to_all", lambda: Limits(connections, **seconds))
            patched.setattr(door, "TICK", 0.05)
            async with _serving(running, None if request.param == "loopback" else tmp_path / "onion.sock") as place:
                yield running, place

    return serving


@asynccontextmanager
async def _serving(running: World, socket: Path | None) -> AsyncIterator[Place]:
    studies = {running.live.study: running.live}
    if socket is None:
        runner, port = await http.start(studies, "127.0.0.1", 0)
        yield port
    else:
        runner = await http.start_unix(studies, socket)
        yield socket
    await runner.cleanup()


async def _connection(place: Place) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if isinstance(place, Path):
        return await asyncio.open_unix_connection(place)
    return await asyncio.open_connection("127.0.0.1", place)


async def _raw(place: Place, request: bytes) -> bytes:
    reader, writer = await _connection(place)
    writer.write(request)
    answer = await asyncio.wait_for(reader.read(), PATIENCE)
    writer.close()
    return answer


async def test_documents_and_posts_over_a_real_route(running: World) -> None:
    runner, port = await http.start({running.live.study: running.live}, "127.0.0.1", 0)
    try:
        await _exchange_all(running, port)
    finally:
        await runner.cleanup()


async def _exchange_all(running: World, port: int) -> None:
    route, address, base = DirectRoute(), f"127.0.0.1:{port}", f"/v1/{running.live.study.hex()}"
    chain = parse_chain(
        (await route.get(address, f"{base}/heads", 10**6)).body, running.app.home.public_key, running.live.study
    )
    body = (await route.get(address, f"{base}/documents/0", 10**6)).body
    assert check_body(chain[0].head, body) == running.live.manifest_bytes
    peer = FakePeer(running.live.manifest, running.invites[0].code)
    for path, post, word in [
        ("enrol", peer.sealed_enrolment(), "accepted"),
        ("withdraw", peer.sealed_withdrawal(), "withdrawn"),
        ("packets", b"x", "wrong-size"),
        ("packets", b"x" * running.live.packet_intake.rules.layout.sealed_size, "sealed-to-another-key"),
        ("enrol", b"x" * 100_000, "wrong-size"),
    ]:
        answer = await route.post(address, f"{base}/{path}", post, REPLY_BYTES)
        assert (answer.status, parse_reply(answer.body)) == (200, word)


async def test_answers_carry_nothing_but_the_answer(served: tuple[World, Place]) -> None:
    running, port = served
    base = f"/v1/{running.live.study.hex()}".encode()
    answer = await _raw(
        port, b"POST " + base + b"/packets HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc"
    )
    head, _, body = answer.partition(b"\r\n\r\n")
    assert body == b"wrong-size".ljust(REPLY_BYTES)
    names = {line.partition(b":")[0].lower() for line in head.split(b"\r\n")[1:]}
    assert names <= {b"content-length", b"connection"}


ELSEWHERE = [
    "/",
    "/v1",
    "/v1/SECRET/heads",
    "/v1/{study}",
    "/v1/{study}/heads/",
    "/v1/{study}/heads/model",
    "/v1/{study}/heads/opening/",
    "/v1/{study}/documents/0-0",
    "/v1/{study}/documents/99",
    "/v1/{study}/documents/00",
    "/v1/{study}/documents/-1",
    "/v1/{study}/tags/00",
    "/v1/{study}/heads?x=SECRET",
    "/v1/{other}/heads",
]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
async def test_everything_else_is_an_empty_404(served: tuple[World, Place], method: str) -> None:
    running, port = served
    for template in ELSEWHERE:
        path = template.format(study=running.live.study.hex(), other="0" * 64)
        answer = await _raw(port, f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 404") and answer.endswith(b"\r\n\r\n")
        assert b"SECRET" not in answer and b"aiohttp" not in answer.lower() and b"date" not in answer.lower()


@pytest.mark.slow
@pytest.mark.parametrize(
    "request_bytes",
    [
        b"SECRET\r\n\r\n",
        b"SECRET / HTTP/1.1\r\n\r\n",
        b"GET /SECRET HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nSECRET\x00: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: SECRET\r\n\r\n",
        b"GET /" + b"SECRET" * 5000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"SECRET" * 5000 + b"\r\n\r\n",
        b"\x16\x03\x01SECRET",
    ],
)
async def test_malformed_requests_echo_nothing(
    served: tuple[World, Place], request_bytes: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    _, port = served
    with caplog.at_level(logging.DEBUG):
        answer = await _raw(port, request_bytes)
    assert answer.startswith((b"HTTP/1.0 400", b"HTTP/1.1 400")) and answer.endswith(b"\r\n\r\n")
    assert b"SECRET" not in answer and b"aiohttp" not in answer.lower() and b"date" not in answer.lower()
    assert "SECRET" not in caplog.text and "127.0.0.1" not in caplog.text


async def test_a_bug_answers_500_without_a_word(served: tuple[World, Place], monkeypatch: pytest.MonkeyPatch) -> None:
    running, port = served

    async def broken(_: bytes) -> str:
        raise RuntimeError("SECRET")

    monkeypatch.setattr(running.live, "submit", broken)
    request = f"POST /v1/{running.live.study.hex()}/packets HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx".encode()
    answer = await _raw(port, request)
    assert answer.startswith(b"HTTP/1.1 500") and answer.endswith(b"\r\n\r\n") and b"SECRET" not in answer


async def test_a_socket_file_is_the_owners_alone_and_nothing_listens_beside_it(running: World, tmp_path: Path) -> None:
    place = tmp_path / "onion.sock"
    place.write_text("left by an earlier life")
    before = _listeners()
    runner = await http.start_unix({running.live.study: running.live}, place)
    try:
        assert place.is_socket() and place.stat().st_mode & 0o777 == 0o600
        assert _listeners() == before
        beside, _ = await http.start({running.live.study: running.live}, "127.0.0.1", 0)
        assert len(_listeners() - before) == 1, "this test would not see one"
        await beside.cleanup()
        assert all(isinstance(one, str) for one in runner.addresses), "an address of a network"
    finally:
        await runner.cleanup()


def _listeners() -> set[str]:
    """Every listening network socket of this machine that this process holds, by its inode."""
    mine = {link.readlink().name for link in list(Path("/proc/self/fd").iterdir()) if link.is_symlink()}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in mine:
                found.add(fields[1])
    return found


async def test_nothing_is_decompressed(served: tuple[World, Place]) -> None:
    running, port = served
    post = (
        f"POST /v1/{running.live.study.hex()}/packets HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n"
    )
    answers = {
        await _raw(port, (post + extra + "\r\nabc").encode())
        for extra in ("", "Content-Encoding: gzip\r\n", "Content-Encoding: deflate\r\n", "Content-Encoding: br\r\n")
    }
    assert len(answers) == 1
    assert answers.pop().startswith(b"HTTP/1.1 200")


@pytest.mark.slow
async def test_who_says_nothing_is_not_waited_for(limited: Limited) -> None:
    async with limited(head_seconds=0.2, body_seconds=0.2) as (running, port):
        assert await _raw(port, b"") == b""
        assert await _raw(port, b"GET / HTTP/1.1\r\nHost:") == b""
        for more in (b"", b"X: y\r\n"):
            assert (await _raw(port, _begun(running, more) + b"x")).startswith(b"HTTP/1.1 400")


async def test_who_dribbles_is_not_waited_for(limited: Limited, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both a post that is read from its bytes and one that aiohttp reads."""
    monkeypatch.setattr(giving_way, "GRACE", 0.1)
    async with limited() as (running, port):
        for more in (b"", b"X: y\r\n"):
            assert (await _raw(port, _begun(running, more) + b"x")).startswith(b"HTTP/1.1 400")


def _begun(running: World, more: bytes = b"") -> bytes:
    """The head of a post of 100 bytes; with `more` it is not that of our peers."""
    path = f"/v1/{running.live.study.hex()}/packets".encode()
    return b"POST " + path + b" HTTP/1.1\r\nHost: x\r\n" + more + b"Content-Length: 100\r\nConnection: close\r\n\r\n"


async def test_too_many_waiting_are_turned_away(served: tuple[World, Place]) -> None:
    running, _ = served
    running.live.enrolment_intake._batcher._most_waiting = 1
    posts = [FakePeer(running.live.manifest, invite.code).sealed_enrolment() for invite in running.invites[:3]]
    words = await asyncio.gather(*(running.live.enrol(post) for post in posts))
    assert sorted(words) == ["accepted", "busy", "busy"]


async def test_one_connection_too_many_costs_the_stillest_its_place(limited: Limited) -> None:
    async with limited(2) as (running, port):
        silent = [await _connection(port) for _ in range(2)]
        silent[1][1].write(_begun(running) + b"x" * 50)
        await turns()
        assert b"404" in await _raw(port, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        with suppress(ConnectionError):
            assert await asyncio.wait_for(silent[0][0].read(), PATIENCE) == b""
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(silent[1][0].read(), 0.2)
        for _, writer in silent:
            writer.close()


@pytest.mark.slow
@pytest.mark.parametrize("more", [b"", b"X: y\r\n"], ids=["a short post", "a post that aiohttp reads"])
async def test_unfinished_bodies_keep_nobody_out(limited: Limited, more: bytes) -> None:
    """They counted as being served: with as many of them as there are places the newest was turned away."""
    async with limited(8) as (running, port):
        held = []
        for _ in range(20):
            held.append(await _connection(port))
            held[-1][1].write(_begun(running, more) + b"x")
        await turns()
        assert b"404" in await _raw(port, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        for _, writer in held:
            writer.transport.abort()


async def test_one_connection_too_many_is_closed_when_all_others_are_answered(
    limited: Limited, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with limited(1) as (running, port):
        release = asyncio.Event()

        async def held(_body: bytes) -> str:
            await release.wait()
            return "accepted"

        monkeypatch.setattr(running.live, "submit", held)
        reader, writer = await _connection(port)
        writer.write(_begun(running) + b"x" * 100)
        await turns()
        with pytest.raises((ConnectionError, AssertionError)):
            assert await _raw(port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n") != b""
        release.set()
        assert (await asyncio.wait_for(reader.read(), PATIENCE)).endswith(b"accepted".ljust(REPLY_BYTES))
        writer.close()


@pytest.mark.slow
async def test_who_reads_nothing_is_cut_off_in_the_end(limited: Limited, monkeypatch: pytest.MonkeyPatch) -> None:
    async with limited(longest=0.3) as (running, port):
        reader, writer = await _reading(running, port, monkeypatch)
        await turns(600)  # of a millisecond at least
        await _cut_off(reader)
        writer.close()


@pytest.mark.slow
async def test_who_reads_nothing_keeps_nobody_out(limited: Limited, monkeypatch: pytest.MonkeyPatch) -> None:
    async with limited(4) as (running, port):
        readers = [await _reading(running, port, monkeypatch) for _ in range(3)]
        await turns()
        assert b"404" in await _raw(port, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        ends = await asyncio.gather(*(reader.readexactly(2**25) for reader, _ in readers), return_exceptions=True)
        assert sum(isinstance(end, (ConnectionError, asyncio.IncompleteReadError)) for end in ends) == 1
        for _, writer in readers:
            writer.transport.abort()


async def _reading(
    running: World, port: Place, monkeypatch: pytest.MonkeyPatch
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    async def huge(number: int) -> bytes:
        return bytes(64 * 2**20)

    monkeypatch.setattr(running.live, "document", huge)
    reader, writer = await _connection(port)
    writer.write(f"GET /v1/{running.live.study.hex()}/documents/0 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return reader, writer


async def _cut_off(reader: asyncio.StreamReader) -> None:
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await reader.readexactly(64 * 2**20)


@pytest.mark.slow
async def test_who_reads_slowly_holds_no_copy_of_a_document(
    running: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a hundred readers of a roster of 20 MB would hold 2 GB here."""
    body, readers = bytes(16 * 2**20), 20

    async def huge(number: int) -> bytes:
        return body

    monkeypatch.setattr(running.live, "document", huge)
    runner = await http.start_unix({running.live.study: running.live}, tmp_path / "onion.sock")
    request = (
        f"GET /v1/{running.live.study.hex()}/documents/0 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
    )
    before, open_ones = _resident(), []
    try:
        for _ in range(readers):
            reader, writer = await asyncio.open_unix_connection(tmp_path / "onion.sock", limit=1024)
            writer.write(request)
            open_ones.append((reader, writer))
        await turns(500)
        assert _resident() - before < 4 * len(body)
        head, _, rest = (await asyncio.wait_for(open_ones[0][0].read(), 20)).partition(b"\r\n\r\n")
        assert rest == body
        assert head == b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close" % len(body)
    finally:
        for _, writer in open_ones:
            writer.transport.abort()
        await runner.cleanup()


def _resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
