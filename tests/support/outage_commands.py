"""The long-lived commands under test: how each is begun, how it shows that it works, and what must never be lost."""

from __future__ import annotations

import http.client
import os
import sqlite3
from abc import ABC, abstractmethod
from contextlib import ExitStack, closing
from pathlib import Path

from attrs import define, evolve, field

from aggregator.app import AggregatorApp
from aggregator.store.dialects import set_up
from aggregator.store.home import open_home
from anon.crypto.nacl import SigningKey
from anon.errors import Refused
from anon.ldp import nano
from anon.sharing import exchange
from anon.study.manifest import Manifest
from anon.teller.home import Place
from anon.teller.home import open_home as open_teller
from anon.wire.invite import parse_invite
from anon.wire.replies import parse_reply
from peer.opening import open_peer
from peer.pairing.state import folder_of
from peer.store.home import PeerHome
from tests.support.peer_command import Served, serving
from tests.support.postgres import Server
from tests.support.protocols import parse_proposal
from tests.support.served_tellers import exchanged, free_port
from tests.support.troubled import Troubled
from tests.support.world import FakePeer, study_text

STEP = 10.0
"""Seconds of a command's clock between two looks at it."""
LONG = "1000000s"


@define
class Driver(ABC):
    """One command on a home in a folder of its own. `stop` ends it."""

    folder: Path
    port: int = field(factory=free_port)
    command: Troubled = field(init=False)
    stack: ExitStack = field(factory=ExitStack)
    ready: str = "serving at"
    main_file: str = ""

    async def begin(self) -> None:
        """Make its home, and start it until it says that it is there."""
        await self.prepare()
        self.command = Troubled(self.folder, self.words())
        self.command.start()
        await self.started(0)

    async def started(self, after: int) -> None:
        """Until it is there. `after`: so much it had said before."""
        await self.command.says(self.ready, after=after)

    async def again(self) -> None:
        """The next start, on the home that is there."""
        before = len(self.command.said)
        self.command.start()
        await self.started(before)

    @property
    def own_port(self) -> int:
        """The port that it listens at for its own people."""
        return self.port

    def begins_to_work(self) -> None:  # noqa: B027
        """From now on there is work for it."""

    def tries(self) -> object:
        """Give it something to do, whatever comes of it."""
        return self.works()

    @property
    def home(self) -> Path:
        """The home, below which the disk can fail."""
        return self.folder / "home"

    @abstractmethod
    async def prepare(self) -> None:
        """Make the home."""

    @abstractmethod
    def words(self) -> tuple[str, ...]:
        """The module and its arguments."""

    @abstractmethod
    def works(self) -> bool:
        """True if it does something that it stores; all of it must be there later."""

    def demand_nothing_lost(self) -> None:  # noqa: B027
        """All that worked is stored, once."""

    def stop(self) -> None:
        """End it, and all that it was given."""
        self.command.close()
        self.stack.close()

    def asked(self, method: str, path: str, body: bytes | None = None, port: int = 0) -> tuple[int, bytes]:
        """An answer, asked for as our programs ask; (0, b"") for none."""
        try:
            return exchanged(("127.0.0.1", port or self.port), method, path, body)
        except (OSError, http.client.HTTPException):
            return 0, b""


@define
class ServeDriver(Driver):
    """An aggregator with a study that enrols."""

    ready: str = '"address"'
    main_file: str = "aggregator.sqlite"
    postgres: Server | None = None
    manifest: Manifest | None = None
    enrolled: list[bytes] = field(factory=list)

    async def prepare(self) -> None:
        if self.postgres is not None:
            await set_up(open_home(self.home, os.urandom), self.postgres.made())
        async with AggregatorApp(self.home, processes=0) as app:
            text = study_text(admission="open").replace('enrol = "100s"', f'enrol = "{LONG}"')
            self.manifest = await app.create_study(parse_proposal(text))

    def words(self) -> tuple[str, ...]:
        return (
            "anonml",
            "aggregator",
            "serve",
            "--home",
            str(self.home),
            "--port",
            str(self.port),
            "--processes",
            "0",
            "--json",
        )

    def enrol(self, post: bytes) -> bool:
        assert self.manifest is not None
        status, body = self.asked("POST", f"/v1/{self.manifest.study_id.hex()}/enrol", post)
        return status == 200 and parse_reply(body) == "accepted"

    def works(self) -> bool:
        assert self.manifest is not None
        post = FakePeer(self.manifest).sealed_enrolment()
        if self.enrol(post):
            self.enrolled.append(post)
            return True
        return False

    def demand_nothing_lost(self) -> None:
        if self.postgres is None:
            with closing(sqlite3.connect(self.home / self.main_file)) as connection:
                (kept,) = connection.execute("SELECT count(*) FROM enrolments").fetchone()
            assert kept >= len(self.enrolled)
        for post in self.enrolled:  # again where the clock leaps while it is asked: that ends the connection
            assert any(self.enrol(post) for _ in range(10))


@define
class DeskDriver(ServeDriver):
    """The same, beside the desk; it works if its link lets a browser in too."""

    ready: str = '"desk"'
    desk_port: int = field(factory=free_port)

    @property
    def own_port(self) -> int:
        return self.desk_port

    def words(self) -> tuple[str, ...]:
        more = ("--desk-port", str(self.desk_port), "--port", str(self.port), "--processes", "0", "--json")
        return "anonml", "aggregator", "desk", "--home", str(self.home), *more

    def works(self) -> bool:
        link = (self.home / "desk.link").read_text()
        status, _ = self.asked("GET", link.partition(str(self.desk_port))[2], port=self.desk_port)
        return status in (200, 303) and super().works()


@define
class TellerDriver(Driver):
    """A teller, asked for an entry."""

    ready: str = "serving at"
    main_file: str = "teller.sqlite"
    entries: int = 0

    async def prepare(self) -> None:
        open_teller(self.home, os.urandom).keep_place(Place("one", f"127.0.0.1:{self.port}"))

    def words(self) -> tuple[str, ...]:
        return "anonml", "teller", "serve", "--home", str(self.home)

    def works(self) -> bool:
        asked = exchange.ask_entry("one", f"127.0.0.1:{self.port}")
        status, _ = self.asked("POST", asked.path, asked.body(SigningKey(bytes(32)), b""))
        self.entries += status == 200
        return status == 200

    def demand_nothing_lost(self) -> None:
        with closing(sqlite3.connect(self.home / self.main_file)) as connection:
            assert connection.execute("SELECT count(*) FROM offers").fetchone()[0] == self.entries


@define
class RunDriver(Driver):
    """A peer that joined a study, and enrols in it when its time has come."""

    ready: str = "Sleep and coffee"
    main_file: str = "peer.sqlite"
    served: Served | None = None

    async def prepare(self) -> None:
        self.served = self.stack.enter_context(serving())
        self.served.aggregator.deaf.add("enrol")  # its time may have come before a test's has
        peer = open_peer(self.home)
        peer.set_policy(evolve(peer.policy(), minimum_cohort=3))
        await peer.join(parse_invite(self.served.link), nano(2.0))
        peer.close()

    def words(self) -> tuple[str, ...]:
        return "anonml", "peer", "run", "--home", str(self.home)

    def works(self) -> bool:
        assert self.served is not None
        return len(self.served.aggregator.enrolments) == 1 and self.state() == "enrolled"

    async def started(self, after: int) -> None:
        await super().started(after)
        await self.command.until(self.holds)

    def holds(self) -> bool:
        """True if it runs the home's studies."""
        try:
            with PeerHome(self.home).running():
                return False
        except Refused:
            return True

    def begins_to_work(self) -> None:
        assert self.served is not None
        self.served.aggregator.deaf.clear()

    def state(self) -> str:
        """Of its study, as it is stored; empty when it cannot be read."""
        try:
            with closing(sqlite3.connect(self.home / self.main_file)) as connection:
                return str(connection.execute("SELECT state FROM studies").fetchone()[0])
        except sqlite3.Error:
            return ""

    def demand_nothing_lost(self) -> None:
        assert self.works()


@define
class StayDriver(RunDriver):
    """The same, started at login: it says nothing."""

    ready: str = ""

    def words(self) -> tuple[str, ...]:
        return (*super().words(), "--stay")


@define
class PageDriver(RunDriver):
    """The same, beside the owner's page; it works if the page is shown too."""

    ready: str = "Open this link"
    cookie: str = ""

    def words(self) -> tuple[str, ...]:
        return "anonml", "peer", "open", "--no-browser", "--port", str(self.port), "--home", str(self.home)

    def holds(self) -> bool:
        return super().holds() and self.asked("GET", "/static/style.css")[0] == 200

    def works(self) -> bool:
        return super().works() and self.asked("GET", "/static/style.css")[0] == 200


@define
class PairDriver(RunDriver):
    """Pairing, over a tor that is none; it works if it heeds its owner's wish to revoke a phone."""

    ready: str = '"phones"'
    main_file: str = "peer.sqlite"
    wished: bool = False

    def words(self) -> tuple[str, ...]:
        return "tests.support.pairing_program", str(self.home)

    def holds(self) -> bool:
        return folder_of(PeerHome(self.home)).on()

    def works(self) -> bool:
        folder = folder_of(PeerHome(self.home))
        if not self.wished:
            folder.wish_revoked(1)
            self.wished = True
        state = folder.state()
        return state is not None and any(phone.revoked for phone in state.phones)

    def demand_nothing_lost(self) -> None:
        assert folder_of(PeerHome(self.home)).on()
