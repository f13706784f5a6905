"""Real peers of a study of sums, some thirty to a hundred in one process, of which a fifth is offline in each round.

    python -m tests.support.sum_peers FOLDER

Standard input gives one line of JSON: {"numbers", "links", "tor", "until"}, and over loopback the "clock" with its
"keeper". Peers of even numbers are offline without a network: no byte leaves or comes while the window is open. The
others are switched off: their process's part ends, and begins anew from the disk when the window has closed.
`FOLDER/posts.jsonl` gets a line for each post: the peer, the kind, the sealed body, and the word that came back. The
last line of standard output is what became of each peer.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from aggregator.app import LOOK_SECONDS
from anon.errors import Malformed, NotConnected
from anon.ldp.epsilon import NANO
from anon.protocols.charge import Measure, Unit
from anon.queries import process
from anon.route import DirectRoute, Response, Route
from anon.route.tor import TorKeeper, TorRoute
from anon.study.manifest import Manifest, Window
from anon.transparency.closing import CheckedLists
from anon.wire.invite import parse_invite
from anon.wire.replies import parse_reply
from examples.clock import HeldRoute, Party
from peer.app import PeerApp
from peer.data.evaluate import at_once
from peer.data.importing import import_rows
from peer.rules.consent import Policy
from peer.rules.limits import BudgetLimit
from peer.store.home import PeerHome
from tests.support.routes import Ask, Exchanges, onward

PROGRAM = "tests.support.sum_peers"
FIFTH = 5
AT_ONCE = 8
EXCHANGES = 32
"""Exchanges of one process through its tor at once."""
LIMIT = BudgetLimit(Measure.ZCDP, Unit.PERSON, 1000 * NANO, 1000 * NANO)
COLUMNS = ("age", "sleep", "cups", "tired")


def row_of(number: int) -> tuple[int, int, str, int]:
    """The data of a peer: no two of a study have the same."""
    return (number * 7 % 101, number % 13, "some", int(number % 3 == 0))


def is_offline(number: int, turn: int) -> bool:
    """One of five, another one in each round."""
    return (number + turn) % FIFTH == 0


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
    now: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    route: Callable[[], Route]
    until: float
    gate: asyncio.Semaphore = field(factory=lambda: asyncio.Semaphore(AT_ONCE))
    checked: CheckedLists = field(factory=CheckedLists)


@define
class Resident:
    """One peer."""

    number: int
    link: str
    machine: Machine
    way: Noting = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.way = Noting(self.number, self.machine.route(), self.machine.folder / "posts.jsonl")
        home = PeerHome(self.machine.folder / str(self.number))
        home.prepare()
        import_rows(home.data_path, "person", COLUMNS, [row_of(self.number)], durable=False)

    def _app(self) -> PeerApp:
        policy = Policy(minimum_cohort=2, minimum_window=0, limits=(LIMIT,))
        machine, home = self.machine, PeerHome(self.machine.folder / str(self.number))
        return PeerApp(
            home, lambda: self.way, machine.now, os.urandom, sleep=machine.sleep, policy=policy, evaluate=at_once,
            checked=machine.checked,
        )  # fmt: skip

    async def live(self) -> dict[str, Any]:
        """Join, and take part until the study is over; each round that it is offline in, it misses."""
        await self.machine.sleep(2 * LOOK_SECONDS)  # by then the aggregator has seen what was published
        app = self._app()
        try:
            async with self.machine.gate:
                invite = parse_invite(self.link)
                manifest = await app.manifest(invite)
                await app.join(invite, manifest.epsilon)
            windows = [one.window for one in manifest.surveys if is_offline(self.number, one.round)]
            if self.number % 2:
                for window in windows:
                    app = await self._switched_off(app, window)
                await self._run(app)
            else:
                await asyncio.gather(self._run(app), *map(self._without_network, windows))
            return self._outcome(app, manifest)
        finally:
            app.close()

    async def _run(self, app: PeerApp) -> None:
        await app.run(self.machine.until - self.machine.now(), once=True)

    async def _switched_off(self, app: PeerApp, window: Window) -> PeerApp:
        """Run until the window opens; another peer from the same disk, once it has closed."""
        running = asyncio.create_task(self._run(app))
        await self._until(window.opens)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        app.close()
        await self._until(window.closes)
        return self._app()

    async def _without_network(self, window: Window) -> None:
        await self._until(window.opens)
        self.way.cut = True
        await self._until(window.closes)
        self.way.cut = False

    async def _until(self, instant: float) -> None:
        while (left := instant - self.machine.now()) > 0:
            await self.machine.sleep(left)

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
        now: Callable[[], float] = time.time
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
        route: Callable[[], Route] = DirectRoute
        if party is not None:
            now, sleep, route = party, party.sleep, lambda: HeldRoute(DirectRoute(), party)
        if order["tor"]:
            keeper = await standing.enter_async_context(TorKeeper(folder / "tor"))
            await keeper.socks()
            gate = asyncio.Semaphore(EXCHANGES)
            route = lambda: Gated(keeper, gate)  # noqa: E731
        await process.start()
        machine = Machine(folder, now, sleep, route, order["until"])
        residents = [Resident(*one, machine) for one in zip(order["numbers"], order["links"], strict=True)]
        return await asyncio.gather(*(one.live() for one in residents))


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
