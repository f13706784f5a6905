"""A paired phone under test: the listener behind pairing's tor, reached at its socket, and a browser without scripts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import aiohttp
from attrs import define, frozen
from village import DECLARED, Clock, Village, peer
from visiting import Visited

from anon.onion import onion_host
from peer.data.importing import import_rows
from peer.home import PeerHome
from peer.pairing.folder import PairingFolder
from peer.pairing.listener import PhoneListener
from peer.pairing.phones import PhoneGate
from peer.pairing.reach import within_reach
from peer.web.engine import Engine
from peer.web.site import Site
from peer.web.staging import Staging

HOST = onion_host(bytes(range(32)))
ORIGIN = f"http://{HOST}"


@frozen
class Raw:
    """An answer, byte for byte."""

    status: int
    head: str
    body: str


@define
class Phoned(Visited):
    """A visited page whose server is pairing's listener. `get`, `post`, `submit` and `upload` are the phone's."""

    gate: PhoneGate | None = None
    listener: PhoneListener | None = None
    site: Site | None = None
    socket: Path = Path()

    @property
    def cookie(self) -> str:
        [cookie] = list(self.session.cookie_jar)
        return f"{cookie.key}={cookie.value}"

    @property
    def good(self) -> list[tuple[str, str]]:
        """The headers of a form that a page of ours sends."""
        return [("Host", HOST), ("Cookie", self.cookie), ("Origin", ORIGIN), ("Sec-Fetch-Site", "same-origin")]

    async def raw(self, method: str, path: str, headers: list[tuple[str, str]], body: str = "") -> Raw:
        """One request, byte for byte as given."""
        reader, writer = await asyncio.open_unix_connection(str(self.socket))
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
        if body:
            lines += [f"Content-Length: {len(body)}", "Content-Type: application/x-www-form-urlencoded"]
        writer.write(("\r\n".join([*lines, "Connection: close", "", ""]) + body).encode())
        answer = (await asyncio.wait_for(reader.read(), 10)).decode("utf-8", "replace")
        writer.close()
        head, _, content = answer.partition("\r\n\r\n")
        return Raw(int(head.split()[1]), head, content)


@asynccontextmanager
async def phoned(folder: Path, enter: bool = True, data: bool = True, **limits: int) -> AsyncIterator[Phoned]:
    """The listener of a home for two phones, `phone` and `tablet`. The first has entered."""
    village = Village.found(DECLARED, Clock())
    home = PeerHome(folder)
    app = peer(folder, village)
    if data:
        import_rows(home.data_path, "person", ("age", "cups", "tired"), [(30, "some", 1)])
    gate = PhoneGate(("phone", "tablet"), os.urandom, village.clock)
    pairing = PairingFolder(folder / "pairing")
    with pairing.held(), pairing.socket() as socket:
        staging = Staging(pairing.path, os.urandom, **limits)
        near = within_reach(app)
        site = Site(near, home.data_path, Engine(near), gate, staging, village.clock, os.urandom, paired=True)
        listener = PhoneListener(site, gate, HOST)
        await listener.start(socket)
        server = SimpleNamespace(address=ORIGIN, link=gate.link(ORIGIN))
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(socket)), cookie_jar=jar) as session:
            found = Phoned(server, app, village, home, session, "", gate, listener, site, socket)
            try:
                if enter:
                    got = await found.get(server.link)
                    assert got.status == 200, got.text
                yield found
            finally:
                gate.close()
                await listener.close()
                await site.close()
                app.close()
