"""Cookies know no ports: pages of this machine that share a browser share its cookies, and let nobody in by them."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest

from tests.support.clock import Clock
from tests.support.desk_browser import opened
from tests.support.visiting import visited
from tests.support.world import make_app


@pytest.mark.parametrize("named_alike", [False, True], ids=["as they are", "under the other's name"])
async def test_a_cookie_of_one_page_is_worth_nothing_at_another(tmp_path: Path, named_alike: bool) -> None:
    """Two homes' pages and a desk, one browser: each goes on working, and no page takes another's cookie."""
    async with (
        visited(tmp_path / "one") as one,
        visited(tmp_path / "two") as two,
        make_app(tmp_path / "staff", Clock()) as app,
        opened(app) as desk,
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser,
    ):
        cookies = {}
        for origin, session in (
            (one.server.address, one.session),
            (two.server.address, two.session),
            (desk.origin, desk.session),
        ):
            [cookie] = list(session.cookie_jar)
            cookies[origin] = (cookie.key, cookie.value)
        assert len({name for name, _ in cookies.values()}) == 3, "one page's cookie would replace another's"
        for origin, (name, _) in cookies.items():
            foreign = {
                (name if named_alike else key): value for other, (key, value) in cookies.items() if other != origin
            }
            async with browser.get(origin, cookies=foreign) as answer:
                assert answer.status == 401
            async with browser.get(origin, cookies=dict(cookies.values())) as answer:
                assert answer.status == 200


async def test_a_link_or_form_token_of_one_page_is_worth_nothing_at_another(tmp_path: Path) -> None:
    async with visited(tmp_path / "one") as one, visited(tmp_path / "two") as two:
        path = one.server.link.removeprefix(one.server.address)
        async with two.session.get(two.server.address + path, allow_redirects=False) as answer:
            assert answer.status == 403 and "Set-Cookie" not in answer.headers
        form = (await one.get("/budget")).form("/budget")
        assert (await two.post("/budget", form | {"lifetime": "7"})).status == 403
        assert two.peer.policy().lifetime == 10 * 10**9


async def test_a_home_opened_again_has_other_cookies(tmp_path: Path) -> None:
    """A browser that kept a cookie of an earlier run on the same port is not let in."""
    async with visited(tmp_path) as first:
        [cookie] = list(first.session.cookie_jar)
        port = first.server.port
    async with visited(tmp_path, enter=False) as second, aiohttp.ClientSession() as browser:
        names = {cookie.key, f"anonml-peer-{second.server.port}"}
        assert f"anonml-peer-{port}" in names
        async with browser.get(second.server.address, cookies=dict.fromkeys(names, cookie.value)) as answer:
            assert answer.status == 401
