"""A service's place in Tor: one private tor, one v3 onion service, and a server behind it that has no other way in.

    start tor -> bootstrap -> ADD_ONION with the kept key -> probe the own onion from outside -> announce, once
         ^                                                                                          |
         +-------------------------- tor died: start again with the same key ----------------------+

The first round is the owner's to watch: whatever goes wrong in it ends the service with one next action. Later rounds
are repeated until they succeed, because peers hold the address and nothing of theirs is lost meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from attrs import field

from anon.errors import Refused, Unreachable
from anon.machine.guard import Guard
from anon.route import Route
from anon.route.tor import TorProcess, extra_lines, torrc_of_client
from anon.route.tor.following import telling
from anon.serving.onion_key import OnionKey
from anon.values import frozen
from anon.wire.addresses import ONION_PORT

BOOTSTRAP_SECONDS = 120.0
PROBE_SECONDS = 180.0
ONE_PROBE_SECONDS = 20.0
STREAMS_OF_A_CIRCUIT = 4
"""Peers and aggregators have a circuit for each exchange. Who holds many streams has to build many circuits, and to pay
the proof of work for each while there is a flood."""
_PAUSE = 5.0
_LONGEST_SOCKET = 100
"""Bytes of a socket's path; the system allows 107."""
_FOLDER = "anonml-onion-"


def socket_of(home: Path) -> Path:
    """Where the server of a home listens: in the home, or where its path is too long in a new private folder."""
    inside = home.resolve() / "onion.sock"
    if len(os.fsencode(inside)) <= _LONGEST_SOCKET:
        return inside
    return Path(tempfile.mkdtemp(prefix=_FOLDER)) / "onion.sock"


def leave_socket(socket: Path) -> None:
    """Remove the socket, and its folder if it was made for it."""
    socket.unlink(missing_ok=True)
    if socket.parent.name.startswith(_FOLDER) and socket.parent.parent == Path(tempfile.gettempdir()):
        socket.parent.rmdir()


@frozen
class OnionService:
    """One onion service. `run` it beside a server that listens at `target`, `unix:FILE` or a port of this machine's
    loopback as `HOST:PORT`.

    `folder` is tor's own. `route_through` gives a route through a SOCKS port, to probe with. `announce` hears the
    address when the service answered from outside for the first time. `say` hears one line about the thing that is
    waited for. `progress` hears how far tor has got, each time in place of the last. At the end it hears an empty line.
    `alone` looks, before the address is announced for the first time, whether another copy answers there already.
    """

    key: OnionKey
    target: str
    folder: Path
    route_through: Callable[[str, int, float], Route]
    announce: Callable[[str], None]
    say: Callable[[str], None] = field(default=lambda line: None)
    progress: Callable[[str], None] = field(default=lambda line: None)
    alone: Callable[[Route], Awaitable[None]] | None = None

    async def run(self) -> None:
        """Keep the service up until cancelled. Raises `Unreachable` or `Refused` when it never came up."""
        await self._round(lambda: self.announce(self.key.address()))
        guard = Guard("the onion address", ends=(Refused,), longest=_PAUSE, tells_end=False)
        while True:
            with guard.turn():
                self.say("tor has ended; it is started again with the same onion key")
                await self._round(lambda: self.say("the onion address answers again"))
            await asyncio.sleep(guard.pause)

    async def _round(self, answering: Callable[[], None]) -> None:
        """One life of a tor."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        tor = await TorProcess.start(torrc_of_client(self.folder, extra_lines()), self.folder)
        try:
            await telling(tor.bootstrap(BOOTSTRAP_SECONDS), lambda: tor.state.progress, self.progress)
            if self.alone is not None:
                self.say("looking for another copy of this aggregator at its address")
                await self.alone(self.route_through(*await tor.socks(), ONE_PROBE_SECONDS))
            place = [f"{ONION_PORT},{self.target}"]
            most = STREAMS_OF_A_CIRCUIT
            await tor.controller.add_onion(self.key.text(), place, proof_of_work=True, most_streams=most)
            self.say("the onion address is being published; waiting until it answers")
            await self._probe(*await tor.socks())
            answering()
            async for _ in tor.controller.events:  # none is asked for: this ends when tor does
                pass
        finally:
            await tor.stop()

    async def _probe(self, host: str, port: int) -> None:
        """Return once the own onion has answered a request that went through the network. Raises `Unreachable`."""
        began = time.monotonic()
        route = self.route_through(host, port, ONE_PROBE_SECONDS)
        nothing = f"/v1/{secrets.token_hex(32)}/heads"  # no study's: the server answers all such requests alike
        while True:
            try:
                if (await route.get(self.key.address(), nothing, 0)).status == 404:
                    return
                reason = "something else answers there"
            except Unreachable as failed:
                reason = str(failed)
            if time.monotonic() - began > PROBE_SECONDS:
                raise Unreachable(
                    f"the own onion address did not answer within {PROBE_SECONDS:g} s ({reason}); check that this "
                    "machine is online and its clock is right, then start again: the address stays the same"
                )
            await asyncio.sleep(1)
