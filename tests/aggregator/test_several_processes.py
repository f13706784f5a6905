"""Several processes of one aggregator on one PostgreSQL database, as two apps of one program: nothing is doubled or
signed twice.

Processes of their own are in `test_two_servers` and `test_leaders_killed`.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from aggregator.app import AggregatorApp
from aggregator.rules.faults import Superseded
from aggregator.store import studies as studies_module
from aggregator.store.dialects import set_up
from aggregator.store.home import open_home
from aggregator.study.live import LiveStudy
from anon.errors import Refused
from examples.testing import ADDRESS
from tests.support.clock import Clock
from tests.support.postgres import Server
from tests.support.serving import MOMENTS
from tests.support.world import FakePeer, World, in_memory, make_app, sealed, study_text

pytestmark = pytest.mark.postgres
WRONG = "sealed-to-another-key"


@frozen
class Two:
    """The world of the process that leads, and another process's app with a clock of its own, which is slow."""

    world: World
    other: AggregatorApp
    clock: Clock

    @property
    def there(self) -> LiveStudy:
        """The study in the other process."""
        return self.other.study(self.world.live.study)

    async def follow(self) -> None:
        """The other process looks at the database, as it does twice a second."""
        await self.other._load()
        await self.other._keep_answers()


@pytest.fixture
async def two(tmp_path: Path, postgres: Server) -> AsyncIterator[Two]:
    async with in_memory(tmp_path / "home", study_text(maximum=5000), database_url=postgres.made()) as world:
        clock = Clock()
        async with make_app(tmp_path / "home", clock) as other:
            yield Two(world, other, clock)


async def collecting(two: Two, count: int) -> list[FakePeer]:
    """So many peers enrolled at both in turn, with credentials; both processes collect."""
    codes = [invite.code for invite in await two.world.app.create_invites(two.world.live.study, count, ADDRESS)]
    peers = [FakePeer(two.world.live.manifest, code) for code in codes]
    lives = (two.world.live, two.there)
    words = await asyncio.gather(*(lives[n % 2].enrol(peer.sealed_enrolment()) for n, peer in enumerate(peers)))
    assert set(words) == {"accepted"}
    await two.world.close_enrolment(peers)
    await two.world.go_to(two.world.opens)
    two.clock.seconds = two.world.opens
    await two.follow()
    assert two.there.chain == two.world.live.chain and two.there.state == two.world.live.state == "collecting"
    return peers


async def test_after_the_freeze_every_process_refuses_whatever_its_clock_says(two: Two) -> None:
    first, second = await collecting(two, 2)
    await two.world.go_to(two.world.closes)
    two.clock.seconds = two.world.closes - 1
    assert await two.there.submit(sealed(two.there, first.packet())) == "window-closed"
    assert await two.there.submit(sealed(two.there, second.packet())) == "window-closed"
    assert two.there.packet_intake.frozen_until < two.world.closes, (
        "it did not know: the insertion's own transaction looked"
    )


async def test_after_the_roster_no_process_admits_anybody_or_lets_anybody_leave(two: Two) -> None:
    member, other = await two.world.enrol(2)
    late = FakePeer(two.world.live.manifest, two.world.invites[5].code)
    await two.world.close_enrolment([member, other])
    assert two.clock() < two.world.live.manifest.timetable.enrol_closes
    assert await two.there.enrol(late.sealed_enrolment()) == "enrolment-closed"
    assert await two.there.withdraw(member.sealed_withdrawal()) == "enrolment-closed"


async def test_one_invite_admits_once_in_both(two: Two) -> None:
    code = two.world.invites[0].code
    rivals = [FakePeer(two.world.live.manifest, code) for _ in range(6)]
    lives = (two.world.live, two.there)
    words = await asyncio.gather(*(lives[n % 2].enrol(peer.sealed_enrolment()) for n, peer in enumerate(rivals)))
    assert Counter(words) == {"accepted": 1, "invite-spent": 5}


async def test_a_process_that_was_paused_before_signing_signs_nothing_else(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number is taken before the head is signed: the other process signs that very head, and no other."""
    study, key = two.world.live.study, two.world.app.home.signing_key
    here, there = two.world.app._tools.studies, two.other._tools.studies
    paused, go_on = asyncio.Event(), asyncio.Event()
    standing = studies_module.StudyStore._standing
    calls = iter([False, True])

    async def pausing(store: object, connection: object, study: bytes) -> object:
        if store is here and next(calls, False):
            paused.set()
            await go_on.wait()
        return await standing(store, connection, study)  # type: ignore[arg-type]

    monkeypatch.setattr(studies_module.StudyStore, "_standing", pausing)
    monkeypatch.setattr(two.world.app._database, "write", _without_the_lock(two.world.app))
    signing = asyncio.create_task(here.append(study, "abandoned", 0, b"one story", key, after=1))
    await paused.wait()
    assert await there.chain(study) == two.world.live.chain, "what is not signed is shown to nobody"
    with pytest.raises(Superseded):
        await there.append(study, "roster", 0, b"another story", key, after=1)
    chain = await there.chain(study)
    assert [one.head.kind for one in chain] == ["manifest", "abandoned"]
    go_on.set()
    assert await signing == chain
    assert await there.append(study, "abandoned", 0, b"a third story", key, after=2) == chain


def _without_the_lock(app: AggregatorApp) -> Callable[..., object]:
    """As if the server had ended the paused process's transaction, which holds the lock of writers."""
    database = app._database

    @asynccontextmanager
    async def write(settling: bytes = b"") -> AsyncIterator[object]:
        async with database.add(bytes(32)) as connection:
            yield connection

    return write


async def test_a_step_that_rests_on_an_older_chain_is_not_taken(two: Two) -> None:
    await two.world.enrol(2)
    await two.follow()
    two.world.clock.seconds = two.clock.seconds = two.world.live.manifest.timetable.enrol_closes
    await two.world.app.tick()
    behind = two.there
    with pytest.raises(Superseded):
        await behind.publish("abandoned", 0, b"too few")
    with pytest.raises(Superseded):
        await behind.reach(behind.phase, behind.turn)
    await two.other.tick()
    assert behind.chain == two.world.live.chain and behind.trouble == ""


async def test_a_second_server_of_a_home_is_refused_and_a_further_process_of_the_first_is_not(two: Two) -> None:
    opened, beside = asyncio.Event(), asyncio.Event()
    async with served(two.world.app.serve("127.0.0.1", 0, lambda _port: opened.set())):
        await opened.wait()
        told = two.other.home.served_at()
        for second in (two.other.serve("127.0.0.1", 0), two.other.serve_onion(lambda _home: ())):
            async with served(second) as refused:
                await asyncio.wait([refused], timeout=10)
                assert refused.done(), "it serves"
                with pytest.raises(Refused, match="another process is serving it; stop that one first"):
                    await refused
        async with served(two.other.serve_beside("127.0.0.1", 0, lambda _port: beside.set())):
            await beside.wait()
            assert two.other.home.served_at() == told, "peers and the check of a container come to the first"
    two.other.home.lock().close()


@asynccontextmanager
async def served(serving: Coroutine[Any, Any, None]) -> AsyncIterator[asyncio.Task[None]]:
    """It serves for as long as the block lasts."""
    task = asyncio.create_task(serving)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("moment", MOMENTS)
def test_moments_of_death_are_functions_that_a_leader_has(moment: str) -> None:
    module, name = MOMENTS[moment]
    assert callable(getattr(import_module(module), name))


@pytest.mark.process
async def test_serve_with_workers_replaces_one_that_dies_and_takes_all_along(postgres: Server, tmp_path: Path) -> None:
    url = postgres.made()
    name = url.split("/")[3].partition("?")[0]
    await set_up(open_home(tmp_path / "home", os.urandom), url)

    async def serving(enough: Callable[[set[int]], bool]) -> set[int]:
        deadline = time.monotonic() + 60
        while True:
            named = postgres.run(f"SELECT DISTINCT application_name FROM pg_stat_activity WHERE datname = '{name}'")
            found = {int(line.removeprefix("anonml ")) for line in named.splitlines() if line.startswith("anonml ")}
            if enough(found):
                return found
            assert time.monotonic() < deadline, found
            await asyncio.sleep(0.2)

    command = [sys.executable, "-m", "anonml", "aggregator", "serve", "--home", str(tmp_path / "home"), "--port", "0"]
    with subprocess.Popen(
        [*command, "--workers", "2", "--processes", "0", "--json"], stdout=subprocess.PIPE, text=True
    ) as parent:
        try:
            assert parent.stdout is not None and "address" in json.loads(parent.stdout.readline())
            first = await serving(lambda found: len(found) == 2)
            (child,) = first - {parent.pid}
            os.kill(child, signal.SIGKILL)
            second = await serving(lambda found: len(found) == 2 and child not in found)
            assert parent.pid in second
            again = subprocess.run(command, capture_output=True, text=True, timeout=60)
            said = " ".join(again.stderr.split())
            assert again.returncode == 4 and "another process is serving it; stop that one first" in said
            parent.terminate()
            assert parent.wait(30) == 0
            await serving(lambda found: not found)
        finally:
            parent.kill()


async def test_workers_need_a_database_on_a_server(tmp_path: Path) -> None:
    async with make_app(tmp_path / "home", Clock()) as app:
        with pytest.raises(Refused, match="init --database"):
            app.demand_shared()


async def test_refusals_of_all_processes_are_counted_together_in_steps(two: Two) -> None:
    """A row never tells of a single answer while packets come; once collection has closed the sum is exact."""
    await collecting(two, 2)
    here, there = two.world.live, two.there

    async def refused(live: LiveStudy, count: int) -> None:
        assert {await live.submit(bytes(live.packet_intake.rules.layout.sealed_size)) for _ in range(count)} == {WRONG}
        await two.world.app.tick()
        await two.follow()

    async def shown() -> list[dict[str, int]]:
        return [(await app.status())[0].packet_answers for app in (two.world.app, two.other)]

    await refused(here, 60)
    assert await two.world.rows("SELECT kind, word, number FROM answers WHERE kind = 'packet'") == [
        ("packet", WRONG, 50)
    ]
    await refused(there, 49)
    assert await shown() == [{WRONG: 50}, {WRONG: 50}]
    await refused(there, 1)
    assert await two.world.rows("SELECT number FROM answers WHERE kind = 'packet'") == [(100,)]
    assert await shown() == [{WRONG: 100}, {WRONG: 100}]
    await refused(there, 7)
    await two.world.go_to(two.world.closes)
    await two.follow()
    await two.world.app.tick()
    assert await shown() == [{WRONG: 117}, {WRONG: 117}]
    assert (await here.traffic()).packet_answers == {WRONG: 117}
    for _ in range(2):
        await two.world.go_to(here.manifest.timetable.ends + here.manifest.release.retention)
    assert here.state == "erased"
    await two.follow()
    assert await two.world.rows("SELECT number FROM answers") == []
