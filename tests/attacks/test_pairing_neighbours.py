"""Somebody in the phone's or the computer's network while pairing is on: with bytes of any form, with the phone's Tor
key, or with a file that a phone is made to bring. They find no port, use up no link and reach no file of the home.

Tor itself keeps out who has no key (`tests/shells/pairing/test_pairing_tor.py`); here everybody has one.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from anon.kit.page.gate import FORM_FIELD, GateRequest, refusal
from anon.serving.door import PAGE_PLACES
from peer.web.uploads import plain_name
from tests.support.patience import PATIENCE
from tests.support.phoning import HOST, ORIGIN, Phoned, phoned

LAST = b"GET /last HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
"""It is refused: it names another host."""


@pytest.fixture
async def closed(tmp_path: Path) -> AsyncIterator[Phoned]:
    """Pairing is on, and no phone has come."""
    async with phoned(tmp_path, enter=False) as found:
        yield found


def path_of(phone: Phoned) -> str:
    return phone.gate.link(ORIGIN).removeprefix(ORIGIN)


async def raw(phone: Phoned, payload: bytes) -> bytes:
    """The answers to these bytes, and to a request behind them that ends the connection."""
    reader, writer = await asyncio.open_unix_connection(str(phone.socket))
    writer.write(payload + LAST)
    try:
        return await asyncio.wait_for(reader.read(), PATIENCE)
    except ConnectionError:
        return b""
    finally:
        writer.close()


def sockets_of_this_process() -> set[str]:
    """The numbers of its network sockets that are bound to an address, as the kernel lists them."""
    own = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the folder's own, which is closed by now
            if found := re.fullmatch(r"socket:\[(\d+)\]", str(descriptor.readlink())):
                own.add(found[1])
    listed = set()
    for table in ("tcp", "tcp6", "udp", "udp6", "raw", "raw6"):
        lines = Path(f"/proc/net/{table}").read_text("ascii").splitlines()[1:] if Path("/proc/net").exists() else []
        listed |= {line.split()[9] for line in lines}
    return own & listed


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the kernel's list of sockets is missing")
@pytest.mark.slow
async def test_nothing_of_pairing_is_in_the_network(tmp_path: Path) -> None:
    before = sockets_of_this_process()
    async with phoned(tmp_path) as phone:
        assert sockets_of_this_process() == before
        assert (await phone.get("/data")).status == 200
        assert sockets_of_this_process() == before


SPELLINGS = (
    "/enter?token={upper}", "/enter?token={token}%00", "/enter?token=%20{token}", "/enter?token={token}0",
    "/enter?token={half}", "/enter?token=0&token={token}", "/enter?Token={token}", "/enter?token%00={token}",
    "/enter/?token={token}", "//enter?token={token}", "/ENTER?token={token}", "/data/../Enter?token={token}",
    "/enter%2f?token={token}", "/enter;a?token={token}", "/enter#?token={token}", "/?token={token}",
)  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_another_spelling_of_a_link_lets_nobody_in_and_uses_nothing_up(closed: Phoned, spelling: str) -> None:
    link = path_of(closed)
    token = link.partition("=")[2]
    asked = spelling.format(token=token, upper=token.upper(), half=token[:32])
    if asked == link:
        raise AssertionError("the same link")
    answer = await closed.raw("GET", asked, [("Host", HOST)])
    assert answer.status >= 400 and "Set-Cookie" not in answer.head
    assert path_of(closed) == link


FORMS = {
    "token in a form": "POST /enter HTTP/1.1\r\nHost: {host}\r\nContent-Length: 70\r\n"
    "Content-Type: application/x-www-form-urlencoded\r\nOrigin: http://{host}\r\n\r\ntoken={token}",
    "method in a header": "POST {link} HTTP/1.1\r\nHost: {host}\r\nX-HTTP-Method-Override: GET\r\n"
    "Content-Length: 0\r\nOrigin: http://{host}\r\n\r\n",
    "two hosts": "GET {link} HTTP/1.1\r\nHost: evil.example\r\nHost: {host}\r\n\r\n",
    "host in the target": "GET http://evil.example{link} HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "no host": "GET {link} HTTP/1.0\r\n\r\n",
    "forwarded host": "GET {link} HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: {host}\r\n\r\n",
    "folded host": "GET {link} HTTP/1.1\r\nHost:\r\n {host}.evil\r\n\r\n",
    "two lengths": "POST /pause HTTP/1.1\r\nHost: {host}\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
    "length and chunks": "POST /pause HTTP/1.1\r\nHost: {host}\r\nContent-Length: 6\r\n"
    "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET {link} HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "bare line ends": "GET {link} HTTP/1.1\nHost: evil.example\n\n",
    "another protocol": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "connect": "CONNECT {host}:80 HTTP/1.1\r\nHost: {host}\r\n\r\n",
}


@pytest.mark.parametrize("form", FORMS)
async def test_bytes_of_another_form_let_nobody_in_and_use_nothing_up(closed: Phoned, form: str) -> None:
    link = path_of(closed)
    told = FORMS[form].format(host=HOST, link=link, token=link.partition("=")[2])
    answer = await raw(closed, told.encode())
    assert re.match(rb"HTTP/1\.[01] 4\d\d ", answer), answer[:100]
    assert b"Set-Cookie" not in answer and b"\r\nLocation: /\r\n" not in answer
    assert not re.search(rb"HTTP/1\.[01] [23]", answer), answer[:100]
    assert path_of(closed) == link and closed.peer.paused_until() is None


async def test_of_many_who_open_one_link_at_once_one_is_in(closed: Phoned) -> None:
    link = path_of(closed)
    answers = await asyncio.gather(*(closed.raw("GET", link, [("Host", HOST)]) for _ in range(24)))
    assert sorted(answer.status for answer in answers) == [303] + [403] * 23
    assert sum("Set-Cookie" in answer.head for answer in answers) == 1


async def test_two_hundred_guesses_cost_the_owner_nothing(closed: Phoned) -> None:
    """A guess is right with chance 2^-255: two links stand, of 256 bits each."""
    link = path_of(closed)
    for turn in range(0, 200, 20):
        guesses = [f"/enter?token={number:064x}" for number in range(turn, turn + 20)]
        answers = await asyncio.gather(*(closed.raw("GET", guess, [("Host", HOST)]) for guess in guesses))
        assert {answer.status for answer in answers} == {403}
    assert (await closed.raw("GET", link, [("Host", HOST)])).status == 303


HELD = {
    "silence": "",
    "half a head": "GET / HTTP/1.1\r\nHost: {host}\r\n",
    "half a body": "POST /data/upload HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1000000\r\n\r\nx",
}


@pytest.mark.parametrize("held", HELD)
async def test_held_connections_keep_no_phone_out(closed: Phoned, held: str) -> None:
    """Twice as many as the page has places for."""
    writers = []
    for _ in range(2 * PAGE_PLACES):
        _, writer = await asyncio.open_unix_connection(str(closed.socket))
        writer.write(HELD[held].format(host=HOST).encode())
        writers.append(writer)
    assert (await closed.raw("GET", path_of(closed), [("Host", HOST)])).status == 303
    for writer in writers:
        writer.close()


NAMES = (
    "../../wish-off", "..\\..\\wish-off", "/etc/passwd", "wish-revoke-2", ".wish-off", "..", ".", "\u202egnp.exe",
    "a/" * 200 + "b.csv", "x" * 300 + ".csv", "on", "sock", "state.json", "C:\\x.csv", "a\x01b.csv", "~/x",
    "%2e%2e%2fx", "$(id).csv", "-rf", "peer.sqlite",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_a_phones_file_is_one_plain_name(name: str) -> None:
    plain = plain_name(name)
    assert re.fullmatch(r"[\w\- ()][\w.\- ()]{0,99}", plain, re.ASCII) and plain not in (".", "..")


@pytest.mark.slow
async def test_files_with_hostile_names_stay_where_files_wait(tmp_path: Path) -> None:
    async with phoned(tmp_path, waiting=len(NAMES)) as phone:
        before = {path for path in tmp_path.rglob("*") if "incoming" not in path.parts}
        for name in NAMES:
            boundary, token = "b", (await phone.get("/data")).form("/data/upload")[FORM_FIELD]
            body = (
                f'--{boundary}\r\nContent-Disposition: form-data; name="{FORM_FIELD}"\r\n\r\n{token}\r\n'
                f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
                f"age\n1\n\r\n--{boundary}--\r\n"
            ).encode()
            heads = [*phone.good, ("Content-Type", "multipart/form-data; boundary=b"), ("Content-Length", len(body))]
            lines = ["POST /data/upload HTTP/1.1", *(f"{head}: {value}" for head, value in heads), "", ""]
            await raw(phone, "\r\n".join(lines).encode() + body)
        after = {path for path in tmp_path.rglob("*") if "incoming" not in path.parts}
        assert after == before
        waiting = [path for path in tmp_path.rglob("*") if path.is_file() and "incoming" in path.parts]
        assert len([path for path in waiting if path.read_bytes() == b"age\n1\n"]) >= len(NAMES) - 2
        assert all(path.stat().st_mode & 0o077 == 0 for path in waiting)


STATIC = ("..", "../state.json", "%2e%2e/state.json", "..%2fstate.json", "%2fetc%2fpasswd", "....//style.css", "\\..")


@pytest.mark.parametrize("name", STATIC)
async def test_a_phone_reads_no_file_of_the_home(closed: Phoned, name: str) -> None:
    await closed.enter()
    answer = await closed.raw("GET", f"/static/{name}", closed.good)
    assert answer.status >= 400 and "until" not in answer.body


@pytest.mark.parametrize("site", ["none", "cross-site", "same-site"])
def test_a_page_of_the_network_can_send_the_phone_along_and_nothing_more(site: str) -> None:
    """A captive portal that leads the browser to the service: it may open the link, and post nothing."""
    portal = "http://192.168.1.1"
    assert refusal(GateRequest("GET", "/enter", HOST, None, site), {HOST}) is None
    for path in ("/pause", "/data/upload", "/resume"):
        assert refusal(GateRequest("POST", path, HOST, portal, site), {HOST})
        assert refusal(GateRequest("POST", path, HOST, None, site), {HOST})
