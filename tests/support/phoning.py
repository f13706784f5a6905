"""A paired phone under test: the listener behind pairing's tor, reached at its socket, and a browser without
scripts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import aiohttp
from attrs import define

from anon.wire.onion_address import onion_host
from peer.data.importing import import_rows
from peer.pairing.listener import PhoneListener
from peer.pairing.phones import PhoneGate
from peer.pairing.reach import PeerInReach, no_peer, run_nothing
from peer.pairing.state import PairingFolder
from peer.run.supervisor import Supervisor
from peer.store.home import PeerHome
from peer.web.site import Site
from peer.web.uploads import Staging
from tests.support.clock import Clock
from tests.support.fake_aggregator import DECLARED, FakeAggregator, peer
from tests.support.visiting import Raw, Visited, exchange

HOST = onion_host(bytes(range(32)))
ORIGIN = f"http://{HOST}"


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
        return await exchange(await asyncio.open_unix_connection(str(self.socket)), method, path, headers, body)


@asynccontextmanager
async def phoned(folder: Path, enter: bool = True, data: bool = True, **limits: int) -> AsyncIterator[Phoned]:
    """The listener of a home for two phones, `phone` and `tablet`. The first has entered."""
    aggregator = FakeAggregator.with_study(DECLARED, Clock())
    home = PeerHome(folder)
    app = peer(folder, aggregator)
    if data:
        import_rows(home.data_path, "person", ("age", "cups", "tired"), [(30, "some", 1)])
    gate = PhoneGate(("phone", "tablet"), os.urandom, aggregator.clock)
    pairing = PairingFolder(folder / "pairing")
    with pairing.held(), pairing.socket() as socket:
        staging = Staging(pairing.path, os.urandom, **limits)
        site = Site(
            PeerInReach(app),
            no_peer,
            home.data_path,
            Supervisor(run_nothing),
            gate,
            staging,
            aggregator.clock,
            os.urandom,
            paired=True,
        )
        listener = PhoneListener(site, gate, HOST)
        await listener.start(socket)
        server = SimpleNamespace(address=ORIGIN, link=gate.link(ORIGIN))
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(socket)), cookie_jar=jar) as session:
            found = Phoned(server, app, aggregator, home, session, "", gate, listener, site, socket)
            try:
                if enter:
                    await found.enter()
                yield found
            finally:
                gate.close()
                await listener.close()
                await site.close()
                app.close()
