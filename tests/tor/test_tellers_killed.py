"""Two tellers behind onion services, killed in the final exchange of a sum: on a side of every write from the list on,
once while the noise waits for its time, and once the tor of one. Every call goes through a private Tor network.

However often they die, there is one list, one signature and one noisy share of each teller, and the sum is exact: the
noise of this study is 0, but for one draw in 10^200.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from attrs import define, field

from anon.errors import Unreachable
from anon.kit.testnet import PrivateNetwork
from anon.route.tor import TorKeeper, TorRoute
from anon.sharing import exchange
from anon.sharing.combine import combine
from anon.sharing.exchange import TellerCall
from anon.storage.crash_points import VARIABLE
from anon.teller.home import Place, open_home
from tests.support.command_line import ENVIRONMENT, anonml, start
from tests.support.onion_commands import tor_of
from tests.support.served_tellers import ServedTeller, join_up, sum_study
from tests.support.tellers import PLACES, expected

pytestmark = [pytest.mark.tor, pytest.mark.soak]

T = TypeVar("T")
PATIENCE = 240.0
DEATHS = (
    ("before-commit-of-list", "after-commit-of-noisy-share", "before-commit-of-erasure"),
    ("after-commit-of-list", "before-commit-of-noisy-share", "", "after-commit-of-erasure"),
)
"""Of each teller, one after the other. The process without a point is the one that the test kills."""


@define
class OnionTeller(ServedTeller):
    """The same behind an onion service, asked through Tor from a thread beside the loop."""

    route: TorRoute | None = None
    loop: asyncio.AbstractEventLoop | None = None
    killed: int = 0
    asked_for: Callable[[str], None] = lambda _call: None
    _serving: asyncio.subprocess.Process | None = None
    said: dict[str, set[Any]] = field(factory=dict)

    def _done(self, work: Any) -> Any:
        assert self.loop is not None
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    @property
    def pid(self) -> int:
        assert self._serving is not None
        return self._serving.pid

    def start(self) -> None:
        self._done(self._started())

    async def _started(self) -> None:
        ENVIRONMENT[VARIABLE] = self.crashes.pop(0) if self.crashes else ""
        try:
            with self.folder.with_suffix(".log").open("ab") as log:
                self._serving = await start("teller", "serve", "--home", self.folder, "--json", log=log)
        finally:
            del ENVIRONMENT[VARIABLE]
        assert self._serving.stdout is not None
        assert await asyncio.wait_for(self._serving.stdout.readline(), PATIENCE), self.folder

    def ask(self, asked: TellerCall[T]) -> T:
        """The answer, however often the teller, or its tor, dies meanwhile."""
        until = time.monotonic() + PATIENCE
        while True:
            self.asked_for(asked.name)
            try:
                body = asked.body(self.aggregator or open_home(self.folder, os.urandom).key, self.key)
                answer = self._done(self._posted(asked, body))
            except Unreachable:
                assert time.monotonic() < until, f"{asked.name}: not answered"
                assert self._serving is not None
                if self._serving.returncode is not None:
                    assert self._serving.returncode == -signal.SIGKILL
                    self.deaths += 1
                    self.start()
                time.sleep(0.5)
                continue
            return asked.answered(*answer, self.arrangement)

    async def _posted(self, asked: TellerCall[T], body: bytes) -> tuple[int, bytes]:
        assert self.route is not None
        reply = await self.route.post(self.place.address, asked.path, body, asked.most_reply)
        return reply.status, reply.body

    def end(self) -> None:
        if self._serving is not None and self._serving.returncode is None:
            os.kill(self.pid, signal.SIGKILL)


async def begun(folder: Path, name: str, crashes: tuple[str, ...], route: TorRoute) -> OnionTeller:
    made = await anonml("teller", "init", "--name", name, "--home", folder)
    key = bytes(open_home(folder, os.urandom).key.verify_key)
    loop = asyncio.get_running_loop()
    teller = OnionTeller(folder, Place(name, made["address"]), key, list(crashes), route=route, loop=loop)
    await teller._started()
    return teller


def through(tellers: list[OnionTeller]) -> None:
    """A whole sum; each call of the final exchange is made twice, as by an aggregator that lost the first answer."""
    world = sum_study([teller.ask(exchange.ask_entry(teller.place.name, teller.place.address)) for teller in tellers])
    for teller in tellers:
        teller.aggregator, teller.arrangement = world.aggregator.key, world.arrangement
    served: Any = tellers
    world.tellers = served
    join_up(world)
    accepted = world.settle(world.admit(world.packets()))
    body = world.list_of(accepted)
    signatures, again = world.signatures(body), world.signatures(body)
    assert signatures == again
    tellers[0].asked_for = once(lambda: os.kill(tor_of(tellers[0].pid) or 0, signal.SIGKILL))
    shares = world.noisy(signatures)
    tellers[0].asked_for = lambda _call: None
    tellers[1].asked_for = once(lambda: tellers[1].loop.call_soon_threadsafe(kill_later, tellers[1]))  # type: ignore[union-attr]
    assert world.noisy(signatures) == shares, "each teller's one noisy share"
    tellers[1].asked_for = lambda _call: None
    summed = combine(world.arrangement, world.occasion(), body, signatures, shares)
    assert summed.values == expected(PLACES[:4])
    for _ in range(2):
        for teller in tellers:
            teller.finish(world.study)


def once(work: Callable[[], object]) -> Callable[[str], None]:
    done: list[object] = []

    def asked(_call: str) -> None:
        if not done:
            done.append(True)
            work()

    return asked


def kill_later(teller: OnionTeller) -> None:
    """While its noise waits for a whole number of two seconds."""
    asyncio.get_running_loop().call_later(1.0, os.kill, teller.pid, signal.SIGKILL)


async def test_tellers_that_are_killed_in_the_final_exchange_say_one_thing(
    tmp_path: Path, through_tor: PrivateNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANONML_TORRC", str(through_tor.torrc_file))
    async with TorKeeper(tmp_path / "tor") as keeper:
        route = TorRoute(keeper, timeout=30)
        tellers = [
            await begun(tmp_path / name, name, deaths, route)
            for name, deaths in zip(("clinic", "students"), DEATHS, strict=True)
        ]
        try:
            await asyncio.to_thread(through, tellers)
            assert [teller.deaths for teller in tellers] == [3, 4]
        finally:
            for teller in tellers:
                teller.end()
