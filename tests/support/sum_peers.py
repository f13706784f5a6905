"""Real peers of a study of sums, some ten to a hundred in one process. They miss windows, and some go for good.

    python -m tests.support.sum_peers FOLDER

Standard input gives one line of JSON: {"numbers", "links", "tor", "until", "look", "columns", "rows", "away", "gone"},
and the "clock" with its "keeper" if the time is virtual. `look`: the seconds between two looks of the aggregator.
With "killed", this process kills itself at that instant; another one in the same folder goes on.
`rows`, the windows `away` and the instant from which it is `gone` are by peer.

Peers of even numbers miss a window without a network: no byte leaves or comes while it is open. The others are switched
off: their process's part ends, and begins anew from the disk when the window has closed.

`FOLDER/posts.jsonl` gets a line for each post: the peer, the kind, the sealed body, and the word that came back.
`FOLDER/NUMBER.noise` gets a line for each noise that a peer adds to its data, and `late.noise` for one that it would
have added had its answers come too late. The last line of standard output is what became of each peer.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from contextvars import ContextVar
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from anon.errors import Malformed, NotConnected
from anon.ldp.epsilon import NANO
from anon.protocols.charge import Measure, Unit
from anon.queries import process
from anon.route import DirectRoute, Response, Route
from anon.route.tor import TorKeeper, TorRoute
from anon.study.manifest import Manifest
from anon.tables.streams import Cell
from anon.transparency.closing import CheckedLists
from anon.wire.invite import parse_invite
from anon.wire.replies import parse_reply
from examples.clock import HeldRoute, Party, Timepiece
from peer.app import PeerApp
from peer.data.evaluate import at_once
from peer.data.importing import import_rows
from peer.rules.consent import Policy
from peer.rules.limits import BudgetLimit
from peer.store.home import PeerHome
from tests.support.noted_program import note_noise
from tests.support.routes import Ask, Exchanges, onward

PROGRAM = "tests.support.sum_peers"
AT_ONCE = 8
EXCHANGES = 32
"""Exchanges of one process through its tor at once."""
LIMITS = tuple(
    BudgetLimit(measure, unit, 1000 * NANO, 1000 * NANO) for measure in (Measure.ZCDP, Measure.CENTRAL) for unit in Unit
)
Span = tuple[float, float]
LATE = "late"
LIVING: ContextVar[int | str] = ContextVar("peer", default=LATE)
"""The number of the peer that works. Where a thread works for all of them, it makes what they send without answers."""


@frozen
class WallTime:
    """The time of the machine itself."""

    def __call__(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@define
class Noting(Exchanges):
    """The route of one peer: nothing passes while it has no network, and each post is written down."""

    number: int
    inner: Route
    notes: Path
    cut: bool = False

    async def exchange(self, ask: Ask) -> Response:
        if self.cut:
            raise NotConnected("no network")
        if ask.body is not None:
            self._note(ask.what, ask.body, "left")
        answer = await onward(self.inner, ask)
        if ask.body is not None:
            try:
                self._note(ask.what, ask.body, parse_reply(answer.body))
            except Malformed:
                self._note(ask.what, ask.body, "unread")
        return answer

    def _note(self, what: str, body: bytes, word: str) -> None:
        said = {"peer": self.number, "what": what, "body": body.hex(), "word": word}
        with self.notes.open("a") as notes:
            notes.write(json.dumps(said) + "\n")


@frozen
class Machine:
    """All that the peers of the process share."""

    folder: Path
    watch: Callable[[], Timepiece | WallTime]
    route: Callable[[], Route]
    until: float
    look: float
    gate: asyncio.Semaphore = field(factory=lambda: asyncio.Semaphore(AT_ONCE))
    checked: CheckedLists = field(factory=CheckedLists)


@define
class Resident:
    """One peer. `away`: the windows that it misses, from when to when; `gone`: from when it does nothing more."""

    number: int
    link: str
    machine: Machine
    away: Sequence[Span]
    gone: float
    way: Noting = field(init=False)
    time: Timepiece | WallTime = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.time = self.machine.watch()
        self.way = Noting(self.number, self.machine.route(), self.machine.folder / "posts.jsonl")

    def hold(self, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        """The data of its owner."""
        home = PeerHome(self.machine.folder / str(self.number))
        home.prepare()
        import_rows(home.data_path, "person", columns, rows, durable=False)

    @property
    def has_data(self) -> bool:
        """True in a home out of a process that was killed."""
        return PeerHome(self.machine.folder / str(self.number)).data_path.exists()

    def _app(self) -> PeerApp:
        policy = Policy(minimum_cohort=2, minimum_window=0, limits=LIMITS)
        machine, home = self.machine, PeerHome(self.machine.folder / str(self.number))
        return PeerApp(
            home, lambda: self.way, self.time, os.urandom, sleep=self.time.sleep, policy=policy, evaluate=at_once,
            checked=machine.checked,
        )  # fmt: skip

    async def live(self) -> dict[str, Any]:
        """Join, and take part until the study is over, or until it is gone; each round that it is away in, it misses.
        """
        LIVING.set(self.number)
        await self.time.sleep(2 * self.machine.look)  # by then the aggregator has seen what was published
        app = self._app()
        try:
            async with self.machine.gate:
                invite = parse_invite(self.link)
                manifest = await app.manifest(invite)
                if not app.status():  # after a killing it has joined
                    await app.join(invite, manifest.epsilon)
            if self.number % 2:
                for span in self.away:
                    app = await self._switched_off(app, *span)
                await self._run(app)
            else:
                await asyncio.gather(self._run(app), *(self._without_network(*span) for span in self.away))
            return self._outcome(app, manifest)
        finally:
            app.close()

    async def _run(self, app: PeerApp, until: float = inf) -> None:
        """Run until the study is over or, before that, until this instant."""
        if (end := min(until, self.gone)) <= self.time():
            return
        running = asyncio.create_task(app.run(self.machine.until - self.time(), once=True))
        turning = asyncio.create_task(self._until(end))
        await asyncio.wait({running, turning}, return_when=asyncio.FIRST_COMPLETED)
        turning.cancel()
        if not running.done():
            running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    async def _switched_off(self, app: PeerApp, opens: float, closes: float) -> PeerApp:
        """Run until the window opens; another peer from the same disk, once it has closed."""
        await self._run(app, opens)
        app.close()
        await self._until(closes)
        return self._app()

    async def _without_network(self, opens: float, closes: float) -> None:
        await self._until(opens)
        self.way.cut = True
        await self._until(closes)
        self.way.cut = False

    async def _until(self, instant: float) -> None:
        while (left := min(instant, self.machine.until) - self.time()) > 0:
            await self.time.sleep(left)

    def _outcome(self, app: PeerApp, manifest: Manifest) -> dict[str, Any]:
        (status,) = app.status()
        entry = app.budget().entries[0]
        return {
            "peer": self.number, "state": str(status.state), "reason": str(status.reason),
            "slots": [str(slot.status) for slot in status.slots], "spent": entry.spent, "reserved": entry.reserved,
        }  # fmt: skip


async def host(folder: Path, order: dict[str, Any], party: Party | None) -> list[dict[str, Any]]:
    """Run the peers side by side, each from its own home."""
    async with AsyncExitStack() as standing:
        watch: Callable[[], Timepiece | WallTime] = WallTime
        route: Callable[[], Route] = DirectRoute
        if party is not None:
            watch, route = partial(Timepiece, party), lambda: HeldRoute(DirectRoute(), party)
        if order["tor"]:
            keeper = await standing.enter_async_context(TorKeeper(folder / "tor"))
            await keeper.socks()
            gate = asyncio.Semaphore(EXCHANGES)
            way = Gated(keeper, gate)
            route = lambda: way if party is None else HeldRoute(way, party)  # noqa: E731
        await process.start()
        note_noise(lambda: folder / f"{LIVING.get()}.noise")
        machine = Machine(folder, watch, route, order["until"], order["look"])
        residents = []
        for number, link in zip(order["numbers"], order["links"], strict=True):
            away, gone = order["away"][str(number)], order["gone"].get(str(number), inf)
            residents.append(Resident(number, link, machine, away, gone))
            if not residents[-1].has_data:
                residents[-1].hold(order["columns"], order["rows"][str(number)])
        killing = asyncio.create_task(_killed(machine, order["killed"])) if "killed" in order else None
        outcomes = await asyncio.gather(*(one.live() for one in residents))
        assert killing is None, "it was not killed"
        return outcomes


async def _killed(machine: Machine, instant: float) -> None:
    clock = machine.watch()
    while (left := instant - clock()) > 0:
        await clock.sleep(left)
    os.kill(os.getpid(), signal.SIGKILL)


def hosted(folder: Path, order: dict[str, Any]) -> list[dict[str, Any]]:
    """The same, by the wall clock or as a party of the order's clock."""
    if not order.get("keeper"):
        return asyncio.run(host(folder, order, None))
    party = Party(Path(order["clock"]), Path(order["keeper"]))
    with asyncio.Runner(loop_factory=party.loop) as runner:
        outcomes = runner.run(host(folder, order, party))
    party.over()
    return outcomes


@frozen
class Gated(Exchanges):
    """A circuit of its own for each exchange, and only so many at once."""

    keeper: TorKeeper
    gate: asyncio.Semaphore

    async def exchange(self, ask: Ask) -> Response:
        async with self.gate:
            return await onward(TorRoute(self.keeper), ask)


def numbers_of(peers: int, hosts: int) -> Sequence[range]:
    """The peers of each process."""
    return [range(host, peers, hosts) for host in range(hosts)]


if __name__ == "__main__":
    place = Path(sys.argv[1])
    place.mkdir(parents=True, exist_ok=True)
    print(json.dumps(hosted(place, json.loads(sys.stdin.readline()))), flush=True)
