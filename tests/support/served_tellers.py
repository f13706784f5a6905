"""Tellers as services in processes of their own, asked over loopback HTTP; one that is killed is started again.

    python -m tests.support.served_tellers FOLDER
"""

from __future__ import annotations

import asyncio
import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from attrs import define, evolve, field, frozen

from anon.crypto.nacl import SigningKey
from anon.sharing import exchange
from anon.sharing.arrangement import Arrangement, TellerEntry
from anon.sharing.exchange import TellerCall
from anon.storage.crash_points import VARIABLE
from anon.teller.home import Place, open_home
from anon.transparency.closing import Bodies
from anon.transparency.documents import encode_chain
from anon.wire.packets import Occasion
from tests.support.command_line import ROOT
from tests.support.fake_aggregator import FakeAggregator
from tests.support.tellers import World, a_sum, enrolled

T = TypeVar("T")
PROGRAM = "tests.support.served_tellers"
STEP = 0.05
"""Seconds between the times at which noise may leave, in place of the 2 of a real teller."""


def exchanged(place: tuple[str, int], method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
    """An answer's status and body, asked for with the head that our programs send."""
    connection = http.client.HTTPConnection(*place, timeout=60)
    try:
        connection.putrequest(method, path, skip_accept_encoding=True)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.putheader("Connection", "close")
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def make_home(folder: Path, name: str) -> Place:
    """A teller's home that is served at a free port."""
    place = Place(name, f"127.0.0.1:{free_port()}")
    open_home(folder, os.urandom).keep_place(place)
    return place


@frozen
class Said:
    """As `anon.teller.session.BatchAnswer`."""

    statement: bytes
    refused: Mapping[str, int]


@define
class ServedTeller:
    """The methods of `Teller`, over HTTP. `crashes`: the points at which its processes die, one after the other."""

    folder: Path
    place: Place
    key: bytes
    crashes: list[str] = field(factory=list)
    aggregator: SigningKey | None = None
    arrangement: Arrangement | None = None
    deaths: int = 0
    _process: subprocess.Popen[bytes] | None = None

    @classmethod
    def begun(cls, folder: Path, name: str, crashes: Sequence[str] = ()) -> ServedTeller:
        place = make_home(folder, name)
        made = cls(folder, place, bytes(open_home(folder, os.urandom).key.verify_key), list(crashes))
        made.start()
        return made

    def start(self) -> None:
        """A process, dying at the next point."""
        environment = {**os.environ, VARIABLE: self.crashes.pop(0) if self.crashes else ""}
        self._process = subprocess.Popen([sys.executable, "-m", PROGRAM, str(self.folder)], cwd=ROOT, env=environment)
        self._await()

    def _await(self) -> None:
        for _ in range(600):
            try:
                with socket.create_connection(self._host(), timeout=1):
                    return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("the teller does not listen")

    def stop(self) -> int:
        """As a service manager stops it; its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(30)

    def _host(self) -> tuple[str, int]:
        host, _, port = self.place.address.rpartition(":")
        return host, int(port)

    def ask(self, asked: TellerCall[T]) -> T:
        """The answer, however often its process dies meanwhile. Raises the typed error that it told."""
        while True:
            try:
                return asked.answered(
                    *self.post(asked.path, asked.body(self.aggregator or SigningKey.generate(), self.key)),
                    self.arrangement,
                )
            except (OSError, http.client.HTTPException):
                assert self._process is not None
                assert self._process.wait(30) == -signal.SIGKILL
                self.deaths += 1
                self.start()

    def post(self, path: str, body: bytes | None) -> tuple[int, bytes]:
        """The answer, asked with the head that aggregators send."""
        return exchanged(self._host(), "GET" if body is None else "POST", path, body)

    # As a teller

    def offer(self, _name: str, _address: str) -> TellerEntry:
        return self.ask(exchange.ask_entry(self.place.name, self.place.address))

    def countersign(self, _study: bytes, _arrangement: bytes, manifest: bytes) -> bytes:
        return self.ask(exchange.ask_countersign(manifest))

    def key_shares(self, study: bytes) -> Mapping[int, bytes]:
        return self.ask(exchange.ask_key_shares(study))

    def take_key_share(self, study: bytes, sender: int, sealed: bytes) -> None:
        self.ask(exchange.ask_key_share(study, sender, sealed))

    def take_roll(self, study: bytes, _manifest: bytes, heads: bytes, bodies: Bodies) -> None:
        self.ask(exchange.ask_roll(study, heads, bodies.roster, bodies.seed, bodies.credentials, bodies.beside))

    def admit(self, occasion: Occasion, items: Sequence[bytes]) -> Said:
        return Said(*self.ask(exchange.ask_admit(occasion, items)))

    def settle(self, occasion: Occasion, statements: Sequence[bytes]) -> frozenset[bytes]:
        return self.ask(exchange.ask_settle(occasion, statements))

    def accepted(self, occasion: Occasion) -> frozenset[bytes]:
        return self.ask(exchange.ask_accepted(occasion))

    def sign_list(self, occasion: Occasion, body: bytes) -> bytes:
        return self.ask(exchange.ask_list(occasion, body))

    def add_noise(self, occasion: Occasion, signatures: Sequence[bytes]) -> bytes:
        return self.ask(exchange.ask_noise(occasion, signatures))

    def finish(self, study: bytes) -> None:
        self.ask(exchange.ask_finish(study))


def sum_study(entries: Sequence[TellerEntry], members: int = 4, minimum: int = 3) -> World:
    """A study whose manifest has these tellers in it; its enrolment is closed. `tellers` are for the caller to add."""
    arrangement = Arrangement(minimum, tuple(entries), (a_sum(),))
    base = FakeAggregator.with_study()
    manifest = evolve(base.manifest, protocol="sum", part=arrangement.to_bytes())
    aggregator = FakeAggregator(manifest, base.key, base.sealing, base.issuer, base.value, base.clock)
    aggregator.publish("manifest", manifest.to_bytes())
    return World(Path(), aggregator, arrangement, enrolled(aggregator, members))


def join_up(world: World) -> None:
    """Countersignatures, parts of the key, roster: of tellers that are services."""
    for teller in world.tellers:
        teller.countersign(world.study, world.arrangement.to_bytes(), world.aggregator.manifest.to_bytes())
    for number, teller in enumerate(world.tellers):
        for fellow, part in teller.key_shares(world.study).items():
            world.tellers[fellow].take_key_share(world.study, number, part)
    manifest, heads, bodies = (
        world.aggregator.manifest.to_bytes(),
        encode_chain(world.aggregator.chain),
        world.closing()[2],
    )
    for teller in world.tellers:
        teller.take_roll(world.study, manifest, heads, bodies)


def joined(served: Sequence[ServedTeller]) -> World:
    """A study with these tellers, ready to take packets."""
    world = sum_study([teller.offer("", "") for teller in served])
    for teller in served:
        teller.aggregator, teller.arrangement = world.aggregator.key, world.arrangement
    tellers: Any = list(served)
    world.tellers = tellers
    join_up(world)
    return world


def main(folder: Path) -> None:
    from anon.teller import service

    service.NOISE_STEP = STEP

    async def serve() -> None:
        serving = asyncio.ensure_future(service.serve(open_home(folder, os.urandom), os.urandom, lambda _address: None))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, serving.cancel)
        await serving

    try:
        asyncio.run(serve())
    except asyncio.CancelledError:
        return




if __name__ == "__main__":
    main(Path(sys.argv[1]))
