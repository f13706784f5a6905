"""Running a private Tor network: start everything, wait until an onion service has answered, end everything."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType

from anon.errors import Refused, Unreachable
from anon.kit.testnet import keys, torrcs
from anon.kit.testnet.layout import PORTS, NetworkLayout, Relay, literal
from anon.kit.testnet.ports import free_ports
from anon.kit.testnet.probe import first_answer
from anon.kit.testnet.timing import Votes, missing, votes
from anon.route.tor import Controller, TorProcess, find_tor, torrc_of_client

ATTEMPTS = 3
STARTING = 30.0
CACHING = 15.0
BOOTSTRAPPING = 30.0
POLL = 0.1


class PrivateNetwork:
    """`async with PrivateNetwork(folder) as network`: a Tor network of our own, from first vote to last process.

    Inside the block five relays and a client run, and an onion service has answered through them. This process owns
    them: they end with the block, and at once when this process is killed. `folder` is made (mode 0700) and is this
    network's alone; ports are chosen free, so several networks may run side by side. It protects nobody: all of it is
    one machine. Raises `Refused` without tor or its tools, `Unreachable` when it does not stand after three attempts.
    """

    def __init__(
        self,
        folder: Path,
        address: str = "127.0.0.1",
        *,
        now: Callable[[], float] = time.time,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self.folder = folder
        self.address = literal(address)
        self.torrc_file = folder / "torrc"
        """For ANONML_TORRC: lines that let every tor started by AnonML join this network."""
        self.lines: tuple[str, ...] = ()
        """The same lines."""
        self.socks = ("", 0)
        """Host and port of the client's SOCKS proxy, always on loopback."""
        self.relays = 0
        self.seconds = 0.0
        """From the call to the first answer of an onion service."""
        self.attempts = 0
        self.troubles: list[str] = []
        """Why earlier attempts did not stand, if any."""
        self._now, self._random_bytes = now, random_bytes
        self._tors: dict[str, TorProcess] = {}

    @property
    def proxy(self) -> str:
        """The value of `--route` that uses this network's client."""
        host, port = self.socks
        return f"socks://{host}:{port}"

    @property
    def pids(self) -> dict[str, int]:
        """Process id of each tor, by name."""
        return {name: tor.pid for name, tor in self._tors.items()}

    def controller(self, name: str = "client") -> Controller:
        """The control connection of the client, `authority`, or `relay1` to `relay4`."""
        return self._tors[name].controller

    async def __aenter__(self) -> PrivateNetwork:
        began = time.monotonic()
        tor = find_tor()
        gencert = keys.find_gencert(tor)
        if self.folder.exists() and any(self.folder.iterdir()):
            raise Refused(f"{self.folder} holds files; a private network takes an empty folder, and removes it")
        while not self.seconds:
            self.attempts += 1
            try:
                await self._stand(tor, gencert, self.attempts - 1)
                self.seconds = time.monotonic() - began
            except BaseException as error:
                await self._end()
                cause = _first(error)
                if self.attempts == ATTEMPTS or not isinstance(cause, Unreachable):
                    raise cause from None
                self.troubles.append(str(cause))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    async def _end(self) -> None:
        """Stop every tor, whatever becomes of one of them, and remove what they kept."""
        async with AsyncExitStack() as stack:
            for tor in self._tors.values():
                stack.push_async_callback(tor.stop)
        self._tors = {}
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)

    async def _stand(self, tor: Path, gencert: Path, attempt: int) -> None:
        self.folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        layout = NetworkLayout(self.folder, free_ports(self.address, PORTS, self._random_bytes), self.address)
        for relay in layout.relays:
            relay.folder.mkdir(mode=0o700)
        identity = await keys.make_identity(gencert, layout)
        fingerprint = await keys.relay_fingerprint(tor, layout.authority)
        self.lines = torrcs.joining(layout, identity, fingerprint)
        clockwork = votes(attempt, self._now())
        await self._start_relays(layout, clockwork)
        await self._agree(layout, clockwork)
        self.torrc_file.write_text("\n".join(self.lines) + "\n", "ascii")
        await self._start_client(layout)
        await first_answer(self.controller(), self.socks)
        self.relays = len(layout.relays)

    async def _start_relays(self, layout: NetworkLayout, clockwork: Votes) -> None:
        texts = {relay: torrcs.relay_torrc(relay, self.lines) for relay in layout.relays}
        texts[layout.authority] = torrcs.authority_torrc(layout, self.lines, clockwork)
        async with asyncio.TaskGroup() as group:
            for relay, text in texts.items():
                group.create_task(self._start(relay.name, text, relay.folder))

    async def _start(self, name: str, torrc: str, folder: Path) -> None:
        self._tors[name] = await TorProcess.start(torrc, folder, STARTING)

    async def _agree(self, layout: NetworkLayout, clockwork: Votes) -> None:
        """Until every relay has a consensus that lists them all.

        The relays are told as soon as the authority has one: they then ask again at once, instead of after a back-off.
        """
        names = {relay.name for relay in layout.relays}
        authority = self.controller(layout.authority.name)
        deadline = time.monotonic() + clockwork.patience
        while absent := missing(await _known(authority), names):
            if time.monotonic() > deadline or len(absent) < len(names):
                raise Unreachable(f"the first consensus of the private network misses {len(absent)} of {len(names)}")
            await asyncio.sleep(POLL)
        try:
            async with asyncio.timeout(CACHING), asyncio.TaskGroup() as group:
                for relay in layout.relays[1:]:
                    group.create_task(self._fetch(relay, names))
        except TimeoutError:
            raise Unreachable(f"a relay of the private network fetched no consensus in {CACHING:g} s") from None

    async def _fetch(self, relay: Relay, names: set[str]) -> None:
        controller = self.controller(relay.name)
        await controller.signal("HUP")
        while missing(await _known(controller), names) or not await _informed(controller):  # noqa: ASYNC110 — tor's state
            await asyncio.sleep(POLL)

    async def _start_client(self, layout: NetworkLayout) -> None:
        layout.client.mkdir(mode=0o700)
        await self._start("client", torrc_of_client(layout.client / "data", self.lines), layout.client)
        await self._tors["client"].bootstrap(BOOTSTRAPPING)
        self.socks = await self._tors["client"].socks()


async def _known(controller: Controller) -> str:
    return (await controller.get_info("ns/all"))["ns/all"]


async def _informed(controller: Controller) -> bool:
    key = "status/enough-dir-info"
    return (await controller.get_info(key))[key] == "1"


def _first(error: BaseException) -> BaseException:
    """The cause, out of the groups in which tasks that ran side by side report it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
