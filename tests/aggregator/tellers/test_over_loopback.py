"""A whole study whose tellers answer over HTTP: one is served no more in the middle of the round, and is served
again."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from aggregator.app import AggregatorApp
from aggregator.rules.faults import TellerAway
from aggregator.rules.lifecycle import Phase
from aggregator.store.dialects import set_up
from aggregator.store.home import open_home as open_home_of_aggregator
from aggregator.tellers import http_link
from anon.errors import Refused
from anon.teller.home import Place, open_home
from anon.teller.service import serve
from tests.support.clock import Clock
from tests.support.leaders import DOCUMENT, PHASE, Life, both
from tests.support.postgres import Server
from tests.support.protocols import parse_proposal
from tests.support.served_tellers import free_port
from tests.support.serving import Serving
from tests.support.shared_clock import SharedClock
from tests.support.study_with_tellers import Study, all_sent
from tests.support.sums import TABLES, sum_study
from tests.support.world import begin, has


class Served:
    """One teller's service in this process, at an address of its own."""

    def __init__(self, folder: Path, name: str, port: int) -> None:
        self.home = open_home(folder, os.urandom)
        self.place = Place(name, f"127.0.0.1:{port}")
        self.home.keep_place(self.place)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        ready = asyncio.Event()
        self._task = asyncio.create_task(serve(self.home, os.urandom, lambda _address: ready.set()))
        await asyncio.wait_for(ready.wait(), 20)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._task = None


def study_of(tellers: list[Served]) -> str:
    named = "".join(f'[[tellers]]\nname = "{one.place.name}"\naddress = "{one.place.address}"\n' for one in tellers)
    return sum_study(TABLES, named, minimum=3).replace('"1h"', '"100s"').replace('"10m"', '"20s"')


@pytest.mark.slow
async def test_a_study_over_http_with_a_teller_away_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_link, "PAUSES", (0.01, 0.02))
    tellers = [Served(tmp_path / name, name, free_port()) for name in ("clinic", "students")]
    clock = Clock()
    await tellers[0].start()
    app = await AggregatorApp(tmp_path / "home", clock, processes=0).__aenter__()
    tellers[0].home.allow([app.home.public_key])
    study = None
    try:
        with pytest.raises(TellerAway, match="the teller students does not answer"):
            await app.create_study(parse_proposal(study_of(tellers)))
        assert not app.studies()
        await tellers[1].start()
        world = await begin(app, clock, study_of(tellers))
        await world.settle_in(4)
        study = Study(world, [], tmp_path)
        await all_sent(study)
        await tellers[1].stop()
        for _ in range(2000):
            clock.seconds += 0.2
            await app.tick()
            await asyncio.sleep(0.02)
            if study.live.phase is Phase.ROUND and study.live.trouble:
                break
        assert "the teller students does not answer" in study.live.trouble and not has(study.live, "sums")
        await tellers[0].stop()
        for teller in tellers:
            await teller.start()
        for _ in range(2000):
            if study.live.phase is Phase.PUBLISHED and study.live.tellers and study.live.tellers.finished:
                break
            clock.seconds += 1
            await app.tick()
            await asyncio.sleep(0.02)
        result = await study.audited()
        assert result.ok and result.not_summed == {0: 0} and not study.live.trouble, result.lines()
        assert study.live.tellers is not None and study.live.tellers.finished
    finally:
        if study is not None:
            for peer in study.world.peers:
                peer.close()
        await app.__aexit__()
        for teller in tellers:
            await teller.stop()


async def test_an_address_that_is_neither_an_onion_nor_this_machine_is_refused(tmp_path: Path) -> None:
    async with AggregatorApp(tmp_path / "home", Clock(), processes=0) as app:
        with pytest.raises(Refused, match="onion"):
            await app._link("example.org:80").entry("one", "example.org:80")


@pytest.mark.slow
async def test_a_spare_over_http_when_a_teller_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call names a pair; the lost teller's service never comes back."""
    monkeypatch.setattr(http_link, "PAUSES", (0.01, 0.02))
    tellers = [Served(tmp_path / name, name, free_port()) for name in ("clinic", "students", "council")]
    clock = Clock()
    for teller in tellers:
        await teller.start()
    app = await AggregatorApp(tmp_path / "home", clock, processes=0).__aenter__()
    study = None
    try:
        spare = f'name = "council"\naddress = "{tellers[2].place.address}"\n'
        world = await begin(app, clock, study_of(tellers).replace(spare, f"{spare}spare = true\n"))
        await world.settle_in(4)
        study = Study(world, [], tmp_path)
        await all_sent(study)
        await tellers[0].stop()
        for _ in range(2000):
            if study.live.phase is Phase.PUBLISHED:
                break
            clock.seconds += 1000
            await app.tick()
            await asyncio.sleep(0.02)
        result = await study.audited()
        assert result.ok and result.not_summed == {0: 0}, result.lines()
    finally:
        if study is not None:
            for peer in study.world.peers:
                peer.close()
        await app.__aexit__()
        for teller in tellers:
            await teller.stop()


@pytest.mark.soak
@pytest.mark.postgres
@pytest.mark.process
async def test_leaders_are_killed_while_tellers_sum_up(postgres: Server, tmp_path: Path) -> None:
    """Each that takes over asks the tellers again, which show the same lists and the same noise; one sum is
    published."""
    tellers = [Served(tmp_path / name, name, free_port()) for name in ("clinic", "students")]
    url, clock, home = (
        postgres.made(),
        SharedClock(tmp_path / "clock"),
        open_home_of_aggregator(tmp_path / "home", os.urandom),
    )
    for teller in tellers:
        teller.home.allow([home.public_key])
        await teller.start()
    await set_up(home, url)
    serving = Serving(home.path, clock, postgres, url, tmp_path)
    async with AggregatorApp(home.path, clock, processes=0) as app:
        world = await begin(app, clock, study_of(tellers))
        study = Study(world, [], tmp_path)
        try:
            await world.settle_in(4)
            await all_sent(study)
            closes, state = world.live.rounds[-1].window.closes, world.live.state
            await serving.start()
            await serving.reached(state)
            summing = [*both("commit-of-freeze"), "before-settling", "before-one-list", "while-compacting"]
            ending = [*DOCUMENT, *both("erasure"), *DOCUMENT, *PHASE, "while-learning", *PHASE]
            await Life(serving, app, world.live).killed([*summing, *ending], closes, "published")
            await app._load()
            result = await study.audited()
            assert result.ok and result.not_summed == {0: 0}, result.lines()
            serving.demand_one_head_a_number()
        finally:
            serving.end()
            for peer in world.peers:
                peer.close()
            for teller in tellers:
                await teller.stop()
