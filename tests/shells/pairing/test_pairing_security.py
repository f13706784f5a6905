"""Pairing's listener admits paired phones only: each raw request here is refused for one reason.

The listeners of phone and computer accept nothing of each other's.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from anon.kit.page.gate import FORM_FIELD
from anon.wire.onion_address import onion_host
from peer.pairing import page as phones
from peer.pairing.phones import PhoneGate
from peer.web.server import PageServer
from tests.support.patience import PATIENCE, until
from tests.support.phoning import HOST, ORIGIN, Phoned, phoned
from tests.support.visiting import Visited, visited

OTHER = onion_host(bytes(32))


def without(headers: list[tuple[str, str]], *names: str) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers if name not in names]


async def body_of(phone: Phoned) -> str:
    form = (await phone.get("/data")).form("/data/upload")
    return "&".join(f"{name}={value}" for name, value in (form | {"seconds": "3600"}).items())


def path_of(link: str) -> str:
    return link.removeprefix(ORIGIN)


async def test_what_a_page_of_ours_sends_is_taken(phone: Phoned) -> None:
    assert (await phone.raw("POST", "/pause", phone.good, await body_of(phone))).status == 303
    assert phone.peer.paused_until() == phone.aggregator.clock() + 3600
    assert (await phone.raw("POST", "/resume", phone.good, await body_of(phone))).status == 303
    assert phone.peer.paused_until() is None


HOSTS = (
    "127.0.0.1", "localhost", "[::1]", "127.0.0.1:80", "localhost:80", "", "evil.example", OTHER, f"{HOST}:80",
    f"{HOST}:8080", f"www.{HOST}", f"{HOST}.evil.example", f"{HOST}, evil.example", f"evil.example, {HOST}",
)


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
async def test_another_host_is_refused_whatever_else_it_knows(phone: Phoned, method: str) -> None:
    """Only the onion service's own name: not this machine's, and not the name of an earlier pairing."""
    link = path_of(phone.gate.link(ORIGIN))
    body = await body_of(phone) if method == "POST" else ""
    for host in HOSTS:
        headers = [("Host", host), *without(phone.good, "Host")]
        for path in ("/", "/static/style.css", "/pause", link):
            refused = await phone.raw(method, path, headers, body)
            assert refused.status in (400, 403), (host, path)
            assert "Set-Cookie" not in refused.head
    assert phone.peer.paused_until() is None and path_of(phone.gate.link(ORIGIN)) == link


ORIGINS = (
    (f"http://{OTHER}", None), (f"https://{HOST}", None), ("null", None), ("null", "same-origin"),
    ("http://127.0.0.1", None), ("http://evil.example", "same-origin"), (None, None), (None, "cross-site"),
    (None, "none"),
    (ORIGIN, "cross-site"), (f"{ORIGIN}:80", None),
)


async def test_another_origins_form_is_refused_also_with_cookie_and_token(phone: Phoned) -> None:
    body = await body_of(phone)
    for origin, site in ORIGINS:
        headers = without(phone.good, "Origin", "Sec-Fetch-Site")
        headers += [("Origin", origin)] if origin else []
        headers += [("Sec-Fetch-Site", site)] if site else []
        assert (await phone.raw("POST", "/pause", headers, body)).status == 403, (origin, site)
        assert phone.peer.paused_until() is None


async def test_without_the_cookie_nothing_is_shown_or_changed(phone: Phoned) -> None:
    name, _, value = phone.cookie.partition("=")
    body = await body_of(phone)
    for cookie in (None, "", f"{name}=", f"{name}=0", f"other={value}", f"{name}={value}0"):
        headers = [*without(phone.good, "Cookie"), *([("Cookie", cookie)] if cookie is not None else [])]
        for path in ("/", "/data", "/budget", "/static/style.css", "/nowhere"):
            refused = await phone.raw("GET", path, headers)
            assert refused.status == 401 and "epsilon" not in refused.body and "person" not in refused.body
        for path in ("/pause", "/data/upload", "/budget"):
            assert (await phone.raw("POST", path, headers, body)).status == 401
    assert phone.peer.paused_until() is None


async def test_the_link_lets_one_phone_in_once(tmp_path: Path) -> None:
    async with phoned(tmp_path, enter=False) as phone:
        host = [("Host", HOST)]
        first, second = (path_of(phone.gate.link_of(one, ORIGIN)) for one in phone.gate.phones)
        assert first != second
        entered = await phone.raw("GET", first, host)
        assert entered.status == 303 and "\r\nLocation: /\r\n" in entered.head
        [cookie] = [line for line in entered.head.split("\r\n") if line.startswith("Set-Cookie:")]
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Domain" not in cookie
        assert first.partition("token=")[2] not in entered.head.partition("\r\n")[2] + entered.body
        for _ in range(2):
            replayed = await phone.raw("GET", first, host)
            assert replayed.status == 403 and "Set-Cookie" not in replayed.head
        assert (await phone.raw("GET", second, host)).status == 303
        assert [one.entered is not None for one in phone.gate.phones] == [True, True]


async def test_a_link_that_was_only_looked_at_is_not_used_up(tmp_path: Path) -> None:
    async with phoned(tmp_path, enter=False) as phone:
        link = path_of(phone.server.link)
        assert (await phone.raw("HEAD", link, [("Host", HOST)])).status == 403
        assert (await phone.raw("GET", link, [("Host", HOST)])).status == 303


async def test_a_link_that_was_guessed_is_refused(phone: Phoned) -> None:
    for token in ("", "0", "x" * 64, "%00", "%ff%fe", "ä", "None"):
        refused = await phone.raw("GET", f"/enter?token={token}", [("Host", HOST)])
        assert refused.status in (400, 403) and "Set-Cookie" not in refused.head, token


async def test_a_form_without_its_token_is_refused(phone: Phoned) -> None:
    for token in (None, "", "0" * 64, "other"):
        body = "seconds=3600" + (f"&{FORM_FIELD}={token}" if token is not None else "")
        assert (await phone.raw("POST", "/pause", phone.good, body)).status == 403
    assert phone.peer.paused_until() is None


async def test_another_phones_form_token_is_refused(phone: Phoned) -> None:
    body, first = await body_of(phone), phone.cookie
    phone.session.cookie_jar.clear()
    await phone.get(phone.gate.link(ORIGIN))
    assert phone.cookie != first
    assert (await phone.raw("POST", "/pause", phone.good, body)).status == 403
    headers = [*without(phone.good, "Cookie"), ("Cookie", first)]
    assert (await phone.raw("POST", "/pause", headers, body)).status == 303, "both are in, each with its own"


async def test_a_revoked_phone_is_out_at_once_and_the_other_is_not(phone: Phoned) -> None:
    body, cookie = await body_of(phone), phone.cookie
    phone.session.cookie_jar.clear()
    await phone.get(phone.gate.link(ORIGIN))
    phone.gate.revoke(1)
    old = [*without(phone.good, "Cookie"), ("Cookie", cookie)]
    for method, path in (("GET", "/"), ("GET", "/data"), ("POST", "/pause")):
        assert (await phone.raw(method, path, old, body if method == "POST" else "")).status == 401
    assert (await phone.raw("GET", path_of(phone.server.link), [("Host", HOST)])).status == 403
    assert phone.peer.paused_until() is None
    assert (await phone.get("/data")).status == 200
    assert [one.revoked for one in phone.gate.records()] == [True, False]
    assert phone.gate.admitted() == (phone.gate.phones[1].key,)


async def test_a_phone_that_is_revoked_before_it_came_cannot_come(tmp_path: Path) -> None:
    async with phoned(tmp_path, enter=False) as phone:
        link = path_of(phone.server.link)
        phone.gate.revoke(1)
        assert (await phone.raw("GET", link, [("Host", HOST)])).status == 403


async def test_what_a_revoked_phone_is_uploading_is_torn_off_and_not_kept(phone: Phoned) -> None:
    token = (await phone.get("/data")).form("/data/upload")[FORM_FIELD]
    start = (
        f"--b\r\nContent-Disposition: form-data; name=\"{FORM_FIELD}\"\r\n\r\n{token}\r\n"
        "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.csv\"\r\n\r\nage\n1\n"
    )
    reader, writer = await asyncio.open_unix_connection(str(phone.socket))
    headers = [*phone.good, ("Content-Type", "multipart/form-data; boundary=b"), ("Content-Length", "100000")]
    lines = ["POST /data/upload HTTP/1.1", *(f"{name}: {value}" for name, value in headers), "", ""]
    writer.write(("\r\n".join(lines) + start).encode())
    for _ in range(10):
        writer.write(b"1\n" * 1000)
    await until(lambda: list(phone.home.path.rglob("a.csv")))
    phone.gate.revoke(1)
    phone.listener.cut_off(1)
    assert b"303" not in (await asyncio.wait_for(reader.read(), PATIENCE))[:20]
    writer.close()
    assert not list(phone.home.path.rglob("a.csv"))


@pytest.mark.parametrize("ended", [lambda gate: gate.revoke(1), lambda gate: gate.close()], ids=["revoked", "off"])
async def test_what_a_phone_is_importing_when_it_is_shut_out_is_taken_back(
    phone: Phoned, ended: Callable[[PhoneGate], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are read in a thread that no cancelling reaches."""
    reading, go_on = threading.Event(), threading.Event()
    room = phone.site.staging.demand_room

    def slowly(more: int = 0) -> None:
        reading.set()
        go_on.wait(20)
        room(more)

    got = await phone.upload("person.csv", b"age,cups,tired\n" + b"40,many,0\n" * 20)
    [action] = [one for one in got.attribute("action") if one.startswith("/data/preview/")]
    fields = got.form(action) | {"table": "person", "answer": "import"}
    monkeypatch.setattr(phone.site.staging, "demand_room", slowly)
    body = "&".join(f"{name}={value}" for name, value in fields.items())
    sending = asyncio.create_task(phone.raw("POST", action, phone.good, body))
    assert await asyncio.to_thread(reading.wait, 20)
    ended(phone.gate)
    phone.listener.cut_off(1)
    go_on.set()
    await asyncio.gather(sending, return_exceptions=True)
    [importing] = [phone.site.jobs.get(name) for name in phone.site.jobs.names("import-")] or [None]
    if importing is not None:
        await asyncio.wait({importing})
    with closing(sqlite3.connect(phone.home.data_path)) as connection:
        assert connection.execute("SELECT count(*) FROM person").fetchone() == (1,)


async def test_a_form_of_fields_without_end_is_refused(phone: Phoned) -> None:
    """They would be held in memory; the limit on uploads counts the file alone."""
    parts = [f'--b\r\nContent-Disposition: form-data; name="{number}"\r\n\r\n{"x" * 4000}\r\n' for number in range(60)]
    headers = [*phone.good, ("Content-Type", "multipart/form-data; boundary=b"), ("Content-Length", str(10**9))]
    reader, writer = await asyncio.open_unix_connection(str(phone.socket))
    lines = ["POST /data/upload HTTP/1.1", *(f"{name}: {value}" for name, value in headers), "", ""]
    writer.write(("\r\n".join(lines) + "".join(parts)).encode())
    assert (await asyncio.wait_for(reader.readline(), PATIENCE)).split()[1] == b"400"
    writer.close()


async def test_when_pairing_ends_no_session_and_no_link_is_left(phone: Phoned) -> None:
    links = [path_of(phone.server.link), path_of(phone.gate.link(ORIGIN))]
    headers = phone.good
    phone.gate.close()
    assert (await phone.raw("GET", "/", headers)).status == 401
    for link in links:
        assert (await phone.raw("GET", link, [("Host", HOST)])).status == 403


async def test_the_two_doors_do_not_know_each_other(phone: Phoned, tmp_path: Path) -> None:
    """Neither takes the other's host, cookie or link, though both serve one home."""
    server = PageServer(phone.peer, phone.home, now=phone.aggregator.clock, guests=[phones.routes])
    await server.start(run=False)
    try:
        import aiohttp

        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
            owner = Visited(server, phone.peer, phone.aggregator, phone.home, session)
            assert (await owner.get(server.link)).status == 200
            [own] = list(session.cookie_jar)
            for cookie in (f"{own.key}={own.value}", phone.cookie.partition("=")[0] + f"={own.value}"):
                assert (await phone.raw("GET", "/", [("Host", HOST), ("Cookie", cookie)])).status == 401
            token = server.link.partition("token=")[2]
            assert (await phone.raw("GET", f"/enter?token={token}", [("Host", HOST)])).status == 403

            async def at_home(path: str, **headers: str) -> int:
                async with aiohttp.request("GET", server.address + path, headers=headers) as answer:
                    return answer.status

            _name, _, value = phone.cookie.partition("=")
            assert await at_home("/", Cookie=phone.cookie) == 401
            assert await at_home("/", Cookie=f"{own.key}={value}") == 401
            assert await at_home("/", Host=HOST, Cookie=f"{own.key}={own.value}") == 403
            assert await at_home(path_of(phone.gate.link(ORIGIN))) == 403
            assert await at_home("/", Cookie=f"{own.key}={own.value}") == 200
    finally:
        await server.close()


async def test_every_answer_forbids_scripts_keeping_framing_and_everything_external(phone: Phoned) -> None:
    answers = [
        await phone.raw("GET", path, phone.good) for path in ("/", "/data", "/budget", "/nowhere", "/static/style.css")
    ]
    answers += [await phone.raw("GET", "/", [("Host", HOST)]), await phone.raw("GET", "/", [("Host", OTHER)])]
    for answer in answers:
        head = answer.head.lower()
        assert "default-src 'none'; script-src 'none';" in head and "connect-src 'none'" in head
        assert "cache-control: no-store" in head and "x-frame-options: deny" in head and "\r\nserver:" not in head
        assert "<script" not in answer.body and "http://" not in answer.body and "https://" not in answer.body


async def test_nothing_of_a_request_is_logged(phone: Phoned, caplog: pytest.LogCaptureFixture) -> None:
    """Nor of one that is no HTTP, nor of a page that fails."""
    caplog.set_level(logging.DEBUG)
    await phone.raw("GET", path_of(phone.gate.link(ORIGIN)), [("Host", HOST)])
    await phone.upload("secret-name.csv", b"age,cups,tired\n41,many,1\n")
    assert (await phone.raw("Diary words", "/secret-name", [("Host", HOST)])).status == 400
    phone.site.staging = None
    assert (await phone.get("/data/preview/secret-name")).status == 500
    phone.site.staging = SimpleNamespace(close=lambda: None)
    records = [one for one in caplog.records if one.name != "asyncio"]  # its debug mode, which only tests switch on
    said = " ".join(logging.Formatter().format(one) for one in records)
    assert "a page failed" in said
    for secret in ("token", HOST, "secret-name", "Diary", "many"):
        assert secret not in said, said


async def test_the_socket_is_for_its_owner_alone(phone: Phoned) -> None:
    assert phone.socket.stat().st_mode & 0o777 == 0o600 and phone.socket.parent.stat().st_mode & 0o777 == 0o700


async def test_a_page_of_the_owner_at_home_is_as_it_was(tmp_path: Path) -> None:
    """The computer's page still has the parts that a phone's pages leave out."""
    async with visited(tmp_path) as page:
        home = await page.get("/")
        assert "/static/live.js" in home.text and 'action="/link"' in home.text and 'href="/budget"' in home.text
        assert "script-src 'self'" in home.headers["Content-Security-Policy"]
