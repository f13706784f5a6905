"""A desk that runs, and a browser with scripts off: it keeps its cookie, follows links and fills in forms."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from html import unescape

import aiohttp
from attrs import define, frozen

from aggregator.app import AggregatorApp
from aggregator.desk.server import serve_desk
from tests.support.world import World


@frozen
class Seen:
    """An answer."""

    status: int
    text: str
    headers: Mapping[str, str]
    path: str
    body: bytes = b""


@define
class Desk:
    """A running desk with one browser that was let in."""

    app: AggregatorApp
    running: World | None
    origin: str
    session: aiohttp.ClientSession
    token: str = ""

    async def get(self, path: str, headers: Mapping[str, str] | None = None) -> Seen:
        """Open a page."""
        async with self.session.get(self.origin + path, headers=headers or {}) as answer:
            return await self._seen(answer)

    async def post(self, path: str, headers: Mapping[str, str] | None = None, **fields: str) -> Seen:
        """Send a form of a page that was opened before."""
        data = {"form_token": self.token, **fields}
        sent = {"Origin": self.origin, "Sec-Fetch-Site": "same-origin", **(headers or {})}
        async with self.session.post(self.origin + path, data=data, headers=sent) as answer:
            return await self._seen(answer)

    async def upload(self, path: str, name: str, text: str, **fields: str) -> Seen:
        """Send a form with a file."""
        form = aiohttp.FormData({"form_token": self.token, **fields})
        form.add_field(name, text.encode(), filename="people.csv", content_type="text/csv")
        async with self.session.post(self.origin + path, data=form, headers={"Origin": self.origin}) as answer:
            return await self._seen(answer)

    async def _seen(self, answer: aiohttp.ClientResponse) -> Seen:
        body = await answer.read()
        text = body.decode("utf-8", "replace")
        found = re.search(r'name="form_token" value="([^"]+)"', text)
        self.token = found[1] if found else self.token
        return Seen(answer.status, text, answer.headers, answer.url.path, body)


def words_of(page: str) -> str:
    """The visible words of a page, without its markup."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", re.sub(r"</?bdi\b[^>]*>", "", page))).split())


@asynccontextmanager
async def opened(app: AggregatorApp, running: World | None = None) -> AsyncIterator[Desk]:
    """A desk on a free port, entered through its link."""
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve_desk(app, 0, ready.set_result, processes=0))
    await asyncio.wait({serving, ready}, return_when=asyncio.FIRST_COMPLETED)
    if not ready.done():
        await serving
    link = ready.result()
    try:
        async with _let_in(app, running, link) as desk:
            yield desk
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


@asynccontextmanager
async def _let_in(app: AggregatorApp, running: World | None, link: str) -> AsyncIterator[Desk]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        desk = Desk(app, running, link.partition("/enter")[0], session)
        async with session.get(link) as answer:
            assert answer.status == 200
            await desk._seen(answer)
        yield desk
