"""A page under test, and a browser without scripts: it follows redirects, keeps cookies and fills in forms."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from attrs import define, field, frozen

from anon.protocols.registry import Protocols
from peer.app import PeerApp
from peer.data.importing import import_rows
from peer.pairing import page as phones
from peer.rules.lifecycle import State
from peer.store.home import PeerHome
from peer.web.server import PageServer
from tests.support.clock import START, Clock
from tests.support.fake_aggregator import DECLARED, FakeAggregator, peer, until_closed, until_state
from tests.support.patience import PATIENCE, turns
from tests.support.protocols import PROTOCOLS


@frozen
class Got:
    """An answer."""

    status: int
    headers: Any
    text: str
    body: bytes
    url: str

    @property
    def words(self) -> str:
        """The text without tags, with single blanks."""
        joined = re.sub(r"</?bdi\b[^>]*>", "", self.text)
        plain = re.sub(r"<(style|script)\b.*?</\1>|<[^>]*>", " ", joined, flags=re.DOTALL)
        return re.sub(r"\s+", " ", unescape(plain)).strip()

    def attribute(self, name: str) -> list[str]:
        """The values of an attribute, in order."""
        return [unescape(found) for found in re.findall(rf'\b{name}="([^"]*)"', self.text)]

    def form(self, action: str) -> dict[str, str]:
        """The hidden and filled fields of the form that goes there."""
        found = re.search(rf'<form[^>]*action="{re.escape(action)}"[^>]*>(.*?)</form>', self.text, re.DOTALL)
        assert found is not None, f"no form to {action}"
        fields = {}
        for tag in re.findall(r"<input[^>]*>", found[1]):
            name, value = re.search(r'name="([^"]*)"', tag), re.search(r'value="([^"]*)"', tag)
            plain = not re.search(r'type="(checkbox|radio|file)"', tag) or " checked" in tag
            if name and plain:
                fields[name[1]] = unescape(value[1]) if value else ""
        for name, options in re.findall(r'<select[^>]*name="([^"]*)"[^>]*>(.*?)</select>', found[1], re.DOTALL):
            values = re.findall(r'<option(?: value="([^"]*)")?( selected)?>([^<]*)', options)
            chosen = next((one for one in values if one[1]), values[0])
            fields[name] = unescape(chosen[0] if "value=" in options else chosen[2])
        return fields


@frozen
class Raw:
    """An answer, byte for byte."""

    status: int
    head: str
    body: str


async def exchange(
    connection: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    method: str,
    path: str,
    headers: list[tuple[str, str]],
    body: str = "",
) -> Raw:
    """One request over a connection of its own, byte for byte as given."""
    reader, writer = connection
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    if body:
        lines += [f"Content-Length: {len(body)}", "Content-Type: application/x-www-form-urlencoded"]
    writer.write(("\r\n".join([*lines, "Connection: close", "", ""]) + body).encode())
    answer = (await asyncio.wait_for(reader.read(), 10)).decode("utf-8", "replace")
    writer.close()
    head, _, content = answer.partition("\r\n\r\n")
    return Raw(int(head.split()[1]), head, content)


@define
class Visited:
    """A served page, its peer, the aggregator in memory, and a browser that has entered."""

    server: PageServer
    peer: PeerApp
    aggregator: FakeAggregator
    home: PeerHome
    session: aiohttp.ClientSession
    token: str = field(default="")

    @property
    def study(self) -> str:
        return f"/study/{self.aggregator.study.hex()}"

    @property
    def invite(self) -> str:
        return f"/invite/{self.aggregator.study.hex()}"

    async def enter(self) -> None:
        """Open the link that lets a browser in."""
        got = await self.get(self.server.link)
        assert got.status == 200, got.text

    async def get(self, path: str, **headers: str) -> Got:
        """Follow redirects and waiting pages as a browser does."""
        async with asyncio.timeout(PATIENCE):
            while 'http-equiv="refresh"' in (got := await self._got("GET", path, headers=headers)).text:
                path = got.url
                await turns(1)
        return got

    async def post(self, path: str, fields: dict[str, str], data: Any = None, **headers: str) -> Got:
        """Send a form as a page of this origin does."""
        sent = {"Origin": self.server.address, "Sec-Fetch-Site": "same-origin"} | headers
        return await self._got("POST", path, data=data if data is not None else fields, headers=sent)

    async def submit(self, page: str, action: str, **fields: str) -> Got:
        """Fill in the form on a page and send it."""
        form = (await self.get(page)).form(action)
        return await self.post(action, form | fields)

    async def joined(self) -> None:
        """Say yes to the study of the aggregator."""
        self.server.site.invites[self.aggregator.study] = self.aggregator.invite
        await self.submit(self.invite, self.invite, answer="yes")

    async def ended(self, later: float) -> None:
        """The study that was joined is over, since `later` seconds."""
        await until_closed(self.peer, self.aggregator)
        await until_state(self.peer, self.aggregator, State.SENT)
        self.aggregator.clock.seconds = self.aggregator.manifest.timetable.ends + later

    async def upload(self, name: str, content: bytes, back: str = "") -> Got:
        """Choose a file on the page Data."""
        form = (await self.get("/data")).form("/data/upload")
        data = aiohttp.FormData(quote_fields=False)
        for key, value in (form | {"back": back}).items():
            data.add_field(key, value)
        data.add_field("file", content, filename=name, content_type="application/octet-stream")
        got = await self.post("/data/upload", {}, data)
        return await self.get(got.url) if 'http-equiv="refresh"' in got.text else got

    async def _got(self, method: str, path: str, **more: Any) -> Got:
        address = path if path.startswith("http") else self.server.address + path
        async with self.session.request(method, address, **more) as answer:
            body = await answer.read()
            return Got(answer.status, answer.headers, body.decode("utf-8", "replace"), body, str(answer.url))


@asynccontextmanager
async def visited(
    folder: Path,
    text: str = DECLARED,
    enter: bool = True,
    data: bool = True,
    start: float = START,
    protocols: Protocols = PROTOCOLS,
    guests: Sequence[web.RouteTableDef] = (),
    asking: Sequence[Callable[[Path], Sequence[tuple[str, str]]]] = (),
) -> AsyncIterator[Visited]:
    """A page over a aggregator whose clock stands still; `run` is left to the test."""
    aggregator = FakeAggregator.with_study(text, Clock(start), protocols)
    app, home = peer(folder, aggregator), PeerHome(folder)
    if data:
        import_rows(home.data_path, "person", ("age", "cups", "tired"), [(30, "some", 1)])
    guests = [phones.routes, *guests]
    server = PageServer(app, home, now=aggregator.clock, random_bytes=os.urandom, guests=guests)
    server.site.asking = asking
    await server.start(run=False)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        found = Visited(server, app, aggregator, home, session)
        try:
            if enter:
                await found.enter()
            yield found
        finally:
            await server.close()
            app.close()
