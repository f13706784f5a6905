"""The page admits its owner's browser only: each raw request here is refused for one reason.

Every answer carries the headers that forbid keeping, framing and guessing.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from anon.kit.page.gate import FORM_FIELD
from tests.support.tries import every
from tests.support.visiting import Raw, Visited, exchange, visited


async def raw(port: int, method: str, path: str, headers: list[tuple[str, str]], body: str = "") -> Raw:
    """One request, byte for byte as given."""
    return await exchange(await asyncio.open_connection("127.0.0.1", port), method, path, headers, body)


def cookie_of(page: Visited) -> str:
    [cookie] = list(page.session.cookie_jar)
    return f"{cookie.key}={cookie.value}"


def good(page: Visited) -> list[tuple[str, str]]:
    host = f"127.0.0.1:{page.server.port}"
    return [
        ("Host", host),
        ("Cookie", cookie_of(page)),
        ("Origin", f"http://{host}"),
        ("Sec-Fetch-Site", "same-origin"),
    ]


def without(headers: list[tuple[str, str]], *names: str) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers if name not in names]


async def body_of(page: Visited) -> str:
    form = (await page.get("/budget")).form("/budget")
    return "&".join(f"{name}={value}" for name, value in (form | {"lifetime": "7"}).items())


async def test_what_a_page_of_ours_sends_is_taken(page: Visited) -> None:
    done = await raw(page.server.port, "POST", "/budget", good(page), await body_of(page))
    assert done.status == 303 and page.peer.policy().lifetime == 7 * 10**9


@pytest.mark.slow
@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
@pytest.mark.parametrize("host", [
    "evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost", "127.0.0.1:{port}.evil.example",
    "127.0.0.2:{port}", "127.0.0.1:{port}, evil.example", "",
])
async def test_another_host_is_refused_whatever_else_it_knows(page: Visited, method: str, host: str) -> None:
    """A name that was rebound to 127.0.0.1 arrives with its own Host, and can know cookies set for it alone."""
    headers = [("Host", host.format(port=page.server.port)), *without(good(page), "Host")]
    for path in ("/", "/static/style.css", "/budget", page.server.link.removeprefix(page.server.address)):
        refused = await raw(page.server.port, method, path, headers, await body_of(page) if method == "POST" else "")
        assert refused.status in (400, 403, 421), path
        assert "Set-Cookie" not in refused.head and "budget" not in refused.body.lower()
    assert page.peer.policy().lifetime == 10 * 10**9


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]"])
async def test_this_machines_own_names_are_hosts(page: Visited, name: str) -> None:
    headers = [("Host", f"{name}:{page.server.port}"), ("Cookie", cookie_of(page))]
    assert (await raw(page.server.port, "GET", "/budget", headers)).status == 200


@pytest.mark.parametrize(("origin", "site"), [
    ("http://evil.example", None), ("http://evil.example", "cross-site"), ("null", None), ("null", "cross-site"),
    ("http://127.0.0.1:1", None), ("https://127.0.0.1:{port}", None), ("http://localhost:{port}", None),
    (None, "cross-site"), (None, "same-site"), (None, "none"), (None, None), ("http://127.0.0.1:{port}", "cross-site"),
])
async def test_another_origins_form_is_refused_also_with_cookie_and_token(
    page: Visited, origin: str | None, site: str | None
) -> None:
    headers = without(good(page), "Origin", "Sec-Fetch-Site")
    headers += [("Origin", origin.format(port=page.server.port))] if origin else []
    headers += [("Sec-Fetch-Site", site)] if site else []
    refused = await raw(page.server.port, "POST", "/budget", headers, await body_of(page))
    assert refused.status == 403 and page.peer.policy().lifetime == 10 * 10**9


COOKIES = [None, "", "{name}=", "{name}=0", "other={value}"]
PATHS = ["/", "/budget", "/data", "/history", "/diagnosis", "/evidence", "/start", "/static/live.js", "/nowhere"]


@pytest.mark.parametrize(("path", "cookie"), every(4, PATHS, COOKIES))
async def test_without_the_cookie_nothing_is_shown(page: Visited, path: str, cookie: str | None) -> None:
    name, _, value = cookie_of(page).partition("=")
    headers = without(good(page), "Cookie")
    headers += [("Cookie", cookie.format(name=name, value=value))] if cookie is not None else []
    refused = await raw(page.server.port, "GET", path, headers)
    assert refused.status in (401, 403) and "Set-Cookie" not in refused.head
    assert "epsilon" not in refused.body and "person" not in refused.body


async def test_without_the_cookie_nothing_is_changed(page: Visited) -> None:
    body = await body_of(page)
    for path in ("/budget", "/pause", "/link", "/data/upload", page.invite, page.study + "/leave"):
        assert (await raw(page.server.port, "POST", path, without(good(page), "Cookie"), body)).status in (401, 403)
    assert page.peer.policy().lifetime == 10 * 10**9


async def test_the_link_opens_once_and_leaves_the_address_bar(tmp_path: Path) -> None:
    async with visited(tmp_path, enter=False) as page:
        host = [("Host", f"127.0.0.1:{page.server.port}")]
        path = page.server.link.removeprefix(page.server.address)
        entered = await raw(page.server.port, "GET", path, host)
        assert entered.status == 303 and "\r\nLocation: /\r\n" in entered.head
        [cookie] = [line for line in entered.head.split("\r\n") if line.startswith("Set-Cookie:")]
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Domain" not in cookie
        token = path.partition("token=")[2]
        assert token not in entered.head.partition("\r\n")[2] + entered.body
        for _ in range(2):
            replayed = await raw(page.server.port, "GET", path, host)
            assert replayed.status == 403 and "Set-Cookie" not in replayed.head
        assert page.server.link.removeprefix(page.server.address) != path


@pytest.mark.parametrize("token", ["", "0", "x" * 64, "%00", "%ff%fe", "ä"])
async def test_a_link_that_was_guessed_is_refused(tmp_path: Path, token: str) -> None:
    async with visited(tmp_path, enter=False) as page:
        path = page.server.link.removeprefix(page.server.address).partition("=")[0]
        refused = await raw(page.server.port, "GET", f"{path}={token}", [("Host", f"127.0.0.1:{page.server.port}")])
        assert refused.status in (400, 403) and "Set-Cookie" not in refused.head


@pytest.mark.parametrize("token", [None, "", "0" * 64, "other"])
async def test_a_form_without_its_token_is_refused(page: Visited, token: str | None) -> None:
    body = "lifetime=7&per_study=5&minimum_cohort=3" + (f"&{FORM_FIELD}={token}" if token is not None else "")
    refused = await raw(page.server.port, "POST", "/budget", good(page), body)
    assert refused.status == 403 and page.peer.policy().lifetime == 10 * 10**9


async def test_another_sessions_form_token_is_refused(page: Visited) -> None:
    body = await body_of(page)
    page.session.cookie_jar.clear()
    await page.get(page.server.link)
    assert (await raw(page.server.port, "POST", "/budget", good(page), body)).status == 403


@pytest.mark.parametrize("place", ["/data/upload", "/budget", "/pause"])
async def test_an_upload_without_the_token_first_is_refused_and_nothing_is_kept(page: Visited, place: str) -> None:
    body = (
        "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.csv\"\r\n\r\nage\n1\n\r\n"
        f"--b\r\nContent-Disposition: form-data; name=\"{FORM_FIELD}\"\r\n\r\nx\r\n--b--\r\n"
    )
    headers = [*good(page), ("Content-Type", "multipart/form-data; boundary=b"), ("Content-Length", str(len(body)))]
    reader, writer = await asyncio.open_connection("127.0.0.1", page.server.port)
    lines = [f"POST {place} HTTP/1.1", *(f"{name}: {value}" for name, value in headers), "Connection: close", "", ""]
    writer.write(("\r\n".join(lines) + body).encode())
    answer = (await asyncio.wait_for(reader.read(), 10)).decode()
    writer.close()
    assert int(answer.split()[1]) in (400, 403, 415)
    assert not list(page.home.path.rglob("*.csv")) and page.peer.paused_until() is None


async def test_what_no_browser_sends_is_no_fault_of_the_pages(page: Visited, caplog: pytest.LogCaptureFixture) -> None:
    token = (await page.get("/budget")).form("/budget")[FORM_FIELD]
    first = f'--b\r\nContent-Disposition: form-data; name="{FORM_FIELD}"\r\n\r\n{token}\r\n--b\r\n'
    for part in ('Content-Disposition: form-data; name="file"; filename="x\r\n.csv"', "no head", "a" * 20_000):
        for path in ("/budget", "/data/upload", "/start/picture"):
            length = str(len(first) + len(part) + 4)
            headers = [("Content-Type", "multipart/form-data; boundary=b"), ("Content-Length", length)]
            reader, writer = await asyncio.open_connection("127.0.0.1", page.server.port)
            lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in [*good(page), *headers])]
            writer.write(("\r\n".join([*lines, "Connection: close", "", ""]) + first + part + "\r\n\r\n").encode())
            status = (await asyncio.wait_for(reader.read(), 10)).split()[1]
            writer.close()
            assert status in (b"400", b"403"), (path, part[:20])
    assert (await page.get(f"/evidence/{'9' * 5000}")).status == 400
    assert not caplog.records


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
async def test_no_other_method_is_answered(page: Visited, method: str) -> None:
    assert (await raw(page.server.port, method, "/budget", good(page))).status in (400, 403, 405)


async def test_every_answer_forbids_keeping_framing_guessing_and_everything_external(page: Visited) -> None:
    """Also the refusals, the redirects, the files and the faults."""
    host = ("Host", f"127.0.0.1:{page.server.port}")
    answers = [await raw(page.server.port, "GET", path, good(page)) for path in [*PATHS, "/study/00", page.study]]
    answers += [
        await raw(page.server.port, "GET", "/", [host]),
        await raw(page.server.port, "GET", "/", [("Host", "x")]),
    ]
    answers += [await raw(page.server.port, "POST", "/pause", good(page), "seconds=60")]
    for answer in answers:
        head = answer.head.lower()
        assert "content-security-policy: default-src 'none'" in head and "frame-ancestors 'none'" in head
        assert "unsafe" not in head and "cache-control: no-store" in head and "x-content-type-options: nosniff" in head
        assert (
            "referrer-policy: " in head
            and "unsafe-url" not in head
            and "http" not in head.partition("policy:")[2].split("\r")[0]
        )
        assert "\r\nserver:" not in head


async def test_no_page_names_another_host_or_runs_anything_inline(page: Visited) -> None:
    await page.submit("/", "/link", link=page.aggregator.invite.link())
    for path in (*PATHS, page.invite, "/start/connect", "/start/data", "/start/budget", "/start/finish"):
        text = (await page.get(path)).text
        for attribute in ("href=", "src=", "action="):
            for value in text.split(f'{attribute}"')[1:]:
                assert value.startswith(("/", "#")), (path, value[:40])
        assert "<script>" not in text and " style=" not in text and " onclick=" not in text and "<style" not in text


async def test_nothing_is_heard_beyond_loopback(page: Visited) -> None:
    assert page.server._socket.getsockname()[0] == "127.0.0.1"


async def test_no_log_has_a_line_about_a_visit_or_a_value(page: Visited, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "wX7-secret-value"
    await page.upload("mine.csv", f"age,cups,tired\n30,{secret},1\n".encode())
    await page.submit("/", "/link", link=f"anonml://{secret}")
    page.server.site.peer.store.policy = lambda: (_ for _ in ()).throw(RuntimeError(secret))  # type: ignore[method-assign]
    assert (await page.get("/budget")).status == 500
    said = "\n".join(
        f"{one.name} {one.getMessage()} {one.exc_text or ''} {one.exc_info or ''}" for one in caplog.records
    )
    assert secret not in said and "mine.csv" not in said and page.server.site.gate.link("") not in said
    assert "RuntimeError" in said
