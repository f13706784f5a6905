"""Another user of this machine reads the link from the words that the browser is started with, and is quicker."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path

import aiohttp
import pytest

from anon.kit.page.peer_process import is_stranger, owner_of, tables
from tests.support.visiting import visited

NOBODY = 65534
PEER, HERE = ("127.0.0.1", 0xB6AE), ("127.0.0.1", 0x9137)
ROW = (
    "   7: {local} {remote} 01 00000000:00000000 00:00000000 00000000 {uid:5d}        0 {inode} 1 0000 20 4 30 10 -1\n"
)
ASKS = """
import os, socket, sys
os.setgid({user}); os.setuid({user})
one = socket.socket()
one.connect(("127.0.0.1", {port}))
one.sendall({request!r})
answer = b""
while piece := one.recv(65536):
    answer += piece
sys.stdout.buffer.write(answer)
"""


def row(uid: int = 1000, inode: int = 77, local: str = "0100007F:B6AE", remote: str = "0100007F:9137") -> str:
    return ROW.format(local=local, remote=remote, uid=uid, inode=inode)


little_endian = pytest.mark.skipif(sys.byteorder != "little", reason="the rows are those of a little-endian machine")


@little_endian
@pytest.mark.parametrize(("table", "owner"), [
    (row(), 1000),
    (row(local="0000000000000000FFFF00000100007F:B6AE", remote="0000000000000000FFFF00000100007F:9137"), 1000),
    (row(local="0100007F:9137", remote="0100007F:B6AE"), None),  # the page's own end
    (row(inode=0), None),  # closed by its process: whose it was is not told any more
    (row(remote="0100007F:9138"), None),
    (row(local="0200007F:B6AE"), None),
    (row(uid=5, remote="0100007F:9138") + row(uid=6), 6),
    ("", None),
])
def test_whose_a_socket_is(table: str, owner: int | None) -> None:
    assert owner_of(table, PEER, HERE) == owner


@little_endian
def test_who_is_a_stranger() -> None:
    me = os.geteuid()
    assert is_stranger(PEER, HERE, lambda: row(uid=me + 1))
    assert not is_stranger(PEER, HERE, lambda: row(uid=me))
    assert not is_stranger(PEER, HERE, lambda: row(uid=0))
    assert is_stranger(PEER, HERE, lambda: "")
    assert is_stranger(None, HERE, lambda: row(uid=me))
    assert not is_stranger(PEER, HERE, lambda: None), "where nothing can be known nobody is refused"
    assert not is_stranger("", "/somewhere/sock", lambda: "")


@little_endian
def test_a_row_that_one_look_leaves_out_is_looked_for_again() -> None:
    looks = iter(["", row(uid=os.geteuid())])
    assert not is_stranger(PEER, HERE, lambda: next(looks))


@pytest.mark.skipif(tables() is None, reason="no table of sockets can be read here")
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_the_kernel_knows_our_own_sockets(family: socket.AddressFamily) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(family) as one:
        port = server.getsockname()[1]
        one.connect(("127.0.0.1", port) if family == socket.AF_INET else ("::ffff:127.0.0.1", port))
        accepted, peer = server.accept()
        with accepted:
            assert owner_of(tables() or "", peer, accepted.getsockname()) == os.geteuid()
            assert not is_stranger(peer, accepted.getsockname())


async def test_each_connection_is_looked_up_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger's is looked up again with each request, and refused each time."""
    looked: list[object] = []
    strange = False

    def noted(peer: object, here: object) -> bool:
        looked.append(peer)
        return strange

    async with visited(tmp_path) as page:
        monkeypatch.setattr("anon.kit.page.guard.is_stranger", noted)
        for _ in range(3):
            async with aiohttp.ClientSession(
                cookies={one.key: one.value for one in page.session.cookie_jar}
            ) as session:
                for _ in range(2):
                    async with session.get(page.server.address + "/data") as answer:
                        assert answer.status == (403 if strange else 200)
            strange = len(looked) == 2
    assert len(looked) == len(set(looked)) + 1 == 4


async def asked_by(user: int, port: int, path: str, cookie: str = "") -> str:
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
    words = ASKS.format(user=user, port=port, request=head.encode())
    running = await asyncio.create_subprocess_exec(sys.executable, "-c", words, stdout=asyncio.subprocess.PIPE)
    said, _ = await asyncio.wait_for(running.communicate(), 30)
    return said.decode()


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.geteuid() != 0, reason="only root can ask as another user"
)
@pytest.mark.slow
async def test_another_user_gets_nowhere_with_the_link_nor_with_a_cookie(tmp_path: Path) -> None:
    async with visited(tmp_path, enter=False) as page:
        link = page.server.link
        answer = await asked_by(NOBODY, page.server.port, link.removeprefix(page.server.address))
        assert answer.startswith("HTTP/1.1 403") and "Set-Cookie" not in answer
        assert page.server.link == link, "the link is not used up: its owner's browser comes in"
        assert (await page.get(link)).status == 200
        [cookie] = list(page.session.cookie_jar)
        answer = await asked_by(NOBODY, page.server.port, "/data", f"{cookie.key}={cookie.value}")
        assert answer.startswith("HTTP/1.1 403") and "person" not in answer
        answer = await asked_by(0, page.server.port, "/data", f"{cookie.key}={cookie.value}")
        assert answer.startswith("HTTP/1.1 200")
