"""The real peers of `benchmarks.life`: own homes, the real peer's code, and routes that count what comes in."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from attrs import define, field

from anon.route import DirectRoute, Response, Route
from anon.wire.invite import Invite
from benchmarks.life_program import FileClock
from peer.app import PeerApp
from peer.data.evaluate import at_once
from peer.data.importing import import_rows
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from peer.store.home import PeerHome

COLUMNS = ("age", "sex", "income")
Row = tuple[str | int, ...]


@define
class CountingRoute:
    """A direct route that counts the bytes of all bodies that come in, and of those that go out."""

    received: int = 0
    sent: int = 0
    _route: DirectRoute = field(factory=DirectRoute)

    async def get(self, address: str, path: str, limit: int) -> Response:
        """See `Route.get`."""
        return self._counted(await self._route.get(address, path, limit))

    async def post(self, address: str, path: str, body: bytes, limit: int) -> Response:
        """See `Route.post`."""
        self.sent += len(body)
        return self._counted(await self._route.post(address, path, body, limit))

    def _counted(self, response: Response) -> Response:
        self.received += len(response.body)
        return response


def _person(number: int) -> Row:
    return 20 + number, ("Female", "Male")[number % 2], ("low", "high")[number % 3 == 0]


@define
class RealPeers:
    """Peers of one study, by a clock that its driver moves."""

    clock: FileClock
    apps: list[PeerApp] = field(init=False, factory=list)
    routes: list[CountingRoute] = field(init=False, factory=list)

    async def join(
        self,
        folder: Path,
        invites: list[Invite],
        epsilon: int,
        columns: tuple[str, ...] = COLUMNS,
        row_of: Callable[[int], Row] = _person,
    ) -> None:
        """A home with data for each invite, and its owner's yes. Bytes that came until then are not counted."""
        for number, invite in enumerate(invites):
            home = PeerHome(folder / f"peer-{number}")
            home.prepare()
            import_rows(home.data_path, "person", columns, [row_of(number)])
            route = CountingRoute()
            app = PeerApp(home, _always(route), self.clock, os.urandom, evaluate=at_once)
            self.apps.append(app)
            self.routes.append(route)
            await app.join(invite, epsilon)
            route.received = route.sent = 0

    async def live(self, until: float) -> None:
        """All that is due before then, in the order of time; the clock shows `until` afterwards."""
        while True:
            coming = [due for app in self.apps if (due := await _step(app, self.clock)) is not None]
            if not coming or min(coming) >= until:
                self.clock.set(max(self.clock(), until))
                return
            self.clock.set(min(coming))

    def enrolled(self) -> int:
        """How many of them the aggregator acknowledged."""
        return sum(app.store.state(study) is not State.CONSENTED for app in self.apps for study in app.store.active())

    def included(self) -> int:
        """How many followed the study to its end and found their packet in the transcript."""
        found = [status for app in self.apps for status in app.status()]
        return sum(
            one.state is State.FINISHED and [slot.status for slot in one.slots] == [Status.INCLUDED] for one in found
        )

    def close(self) -> None:
        """Nothing of them is open afterwards."""
        for app in self.apps:
            app.close()


def _always(route: CountingRoute) -> Callable[[], Route]:
    return lambda: route


async def _step(app: PeerApp, clock: FileClock) -> float | None:
    """Do all that is due now; when the first of its studies goes on."""
    dues = []
    for study in app.store.active():
        due: float | None = clock()
        while due is not None and due <= clock():
            due = await app.step(study)
        if due is not None:
            dues.append(due)
    return min(dues, default=None)
