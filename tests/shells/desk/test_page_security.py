"""A page on loopback refuses every request that is not its own user's or program's, on a real server."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web
from attrs import frozen

from anon.kit.page.gate import HEADERS, Gate, GateRequest, hosts_of, refusal
from anon.kit.page.guard import form_token, protect


@frozen
class Page:
    """A page with one form, running."""

    gate: Gate
    port: int
    changed: list[str]

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    gate, changed = Gate("test", os.urandom), []
    app = web.Application()

    async def show(request: web.Request) -> web.Response:
        return web.Response(text=form_token(request, gate))

    async def change(request: web.Request) -> web.Response:
        changed.append(str((await request.post()).get("word")))
        return web.Response(text="done")

    async def fail(_: web.Request) -> web.Response:
        raise ValueError("a value out of somebody's data")

    app.add_routes(
        [web.get("/", show), web.post("/change", change), web.get("/fail", fail), web.get("/metrics", show_metrics)]
    )
    runner = web.AppRunner(app, access_log=None)
    hosts: set[str] = set()
    protect(app, gate, hosts, bearers={"/metrics": "secret"})
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    hosts |= hosts_of(port)
    yield Page(gate, port, changed)
    await runner.cleanup()


async def show_metrics(_: web.Request) -> web.Response:
    return web.Response(text="up 1\n")


@pytest.fixture
async def browser() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        yield session


async def _enter(page: Page, browser: aiohttp.ClientSession) -> str:
    async with browser.get(page.gate.link(page.origin)) as answer:
        assert answer.status == 200 and str(answer.url) == page.origin + "/"
        return await answer.text()


async def test_the_link_lets_one_browser_in_once(page: Page, browser: aiohttp.ClientSession) -> None:
    link = page.gate.link(page.origin)
    async with browser.get(link, allow_redirects=False) as answer:
        assert answer.status == 303 and answer.headers["Location"] == "/"
        cookie = answer.headers["Set-Cookie"]
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "token" not in answer.headers["Location"]
    async with aiohttp.ClientSession() as other, other.get(link, allow_redirects=False) as answer:
        assert answer.status == 403 and "Set-Cookie" not in answer.headers
    assert page.gate.link(page.origin) != link


async def test_without_a_cookie_nothing_is_said_not_even_what_exists(
    page: Page, browser: aiohttp.ClientSession
) -> None:
    bodies = set()
    for path in ("/", "/nowhere", "/fail"):
        async with browser.get(page.origin + path, cookies={"anonml-test": "0" * 64}) as answer:
            assert answer.status == 401
            bodies.add(await answer.text())
    assert len(bodies) == 1


@pytest.mark.parametrize("headers", [
    {"Host": "evil.example:80"}, {"Host": "localhost"}, {"Host": "127.0.0.1:1"}, {"Host": ""},
    {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:1"},
    {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_other_hosts_and_origins_are_refused_also_with_the_cookie(
    page: Page, browser: aiohttp.ClientSession, headers: dict[str, str], method: str
) -> None:
    token = await _enter(page, browser)
    own = {"Origin": page.origin} if method == "POST" else {}
    data = {"form_token": token, "word": "x"} if method == "POST" else None
    path = "/change" if method == "POST" else "/"
    async with browser.request(method, page.origin + path, data=data, headers=own | headers) as answer:
        assert answer.status in (400, 403)
    assert page.changed == []


async def test_a_form_needs_its_token_and_its_origin(page: Page, browser: aiohttp.ClientSession) -> None:
    token = await _enter(page, browser)
    url, own = page.origin + "/change", {"Origin": page.origin}
    wrong = [
        ({"word": "x"}, own),
        ({"word": "x", "form_token": "0" * 64}, own),
        ({"word": "x", "form_token": token}, {}),
        ({"word": "x", "form_token": "\ud800"}, own),
        ({"word": "x", "form_token": Gate("other", os.urandom).form_token("s")}, own),
    ]
    for data, headers in wrong:
        body = "&".join(f"{k}={v}" for k, v in data.items()).encode("utf-8", "surrogatepass")
        typed = headers | {"Content-Type": "application/x-www-form-urlencoded"}
        async with browser.post(url, data=body, headers=typed) as answer:
            assert answer.status == 403
    for other in ("PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
        async with browser.request(other, url, headers=own) as answer:
            assert answer.status in (403, 405)
    assert page.changed == []
    async with browser.post(url, data={"word": "x", "form_token": token}, headers=own) as answer:
        assert answer.status == 200
    assert page.changed == ["x"]


async def test_every_answer_carries_the_headers(page: Page, browser: aiohttp.ClientSession) -> None:
    await _enter(page, browser)
    for path, status in (("/", 200), ("/nowhere", 404), ("/fail", 500), ("/enter?token=x", 403), ("/metrics", 401)):
        async with browser.get(page.origin + path) as answer:
            assert answer.status == status
            assert {name: answer.headers.get(name) for name in HEADERS} == dict(HEADERS)
            assert "Server" not in answer.headers
    assert "unsafe" not in HEADERS["Content-Security-Policy"] and "*" not in HEADERS["Content-Security-Policy"]


async def test_a_fault_says_its_kind_alone(
    page: Page, browser: aiohttp.ClientSession, caplog: pytest.LogCaptureFixture
) -> None:
    await _enter(page, browser)
    async with browser.get(page.origin + "/fail") as answer:
        assert "somebody" not in await answer.text()
    assert "ValueError" in caplog.text and "somebody" not in caplog.text


async def test_leaving_ends_the_session_and_old_sessions_give_way(page: Page, browser: aiohttp.ClientSession) -> None:
    first = page.gate.exchange(page.gate.link("").partition("=")[2])
    assert first is not None and page.gate.knows(first)
    for _ in range(16):
        page.gate.exchange(page.gate.link("").partition("=")[2])
    assert not page.gate.knows(first)
    await _enter(page, browser)
    (cookie,) = list(browser.cookie_jar)
    page.gate.leave(cookie.value)
    async with browser.get(page.origin + "/") as answer:
        assert answer.status == 401


async def test_a_click_from_another_program_goes_on_by_a_click(page: Page, browser: aiohttp.ClientSession) -> None:
    headers = {"Sec-Fetch-Site": "cross-site"}
    async with browser.get(page.gate.link(page.origin), headers=headers, allow_redirects=False) as answer:
        assert answer.status == 200 and 'href="/"' in await answer.text()


@pytest.mark.parametrize("header", [None, "Bearer wrong", "Basic secret", "secret", "Bearer s\u00e9cret"])
async def test_programs_need_their_token(page: Page, browser: aiohttp.ClientSession, header: str | None) -> None:
    await _enter(page, browser)
    headers = {"Authorization": header} if header else {}
    async with browser.get(page.origin + "/metrics", headers=headers) as answer:
        assert answer.status == 401
    async with browser.get(page.origin + "/metrics", headers={"Authorization": "Bearer secret"}) as answer:
        assert answer.status == 200


@pytest.mark.parametrize("asked", [
    GateRequest("GET", "/", None, None, None),
    GateRequest("CONNECT", "/", "127.0.0.1:80", None, None),
    GateRequest("POST", "/enter", "127.0.0.1:80", None, "cross-site"),
    GateRequest("GET", "/enter", "rebound.example:80", None, "none"),
    GateRequest("GET", "/", "127.0.0.1:80", "http://localhost:80", "same-site"),
])
def test_what_the_rules_refuse(asked: GateRequest) -> None:
    assert refusal(asked, hosts_of(80)) is not None


def test_what_the_rules_let_pass() -> None:
    for asked in (
        GateRequest("GET", "/", "localhost:80", None, "none"),
        GateRequest("GET", "/", "[::1]:80", "http://[::1]:80", "same-origin"),
        GateRequest("POST", "/x", "127.0.0.1:80", "http://127.0.0.1:80", "same-origin"),
        GateRequest("GET", "/enter", "127.0.0.1:80", None, "cross-site"),
    ):
        assert refusal(asked, hosts_of(80)) is None
