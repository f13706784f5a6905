"""Two processes of one aggregator on one PostgreSQL database: nothing is lost, doubled or signed twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from attrs import frozen

from aggregator.app import AggregatorApp
from aggregator.rules.faults import Superseded
from aggregator.store import postgres as postgres_module
from aggregator.store import studies as studies_module
from aggregator.store.dialects import set_up
from aggregator.store.home import open_home
from aggregator.study.live import LiveStudy
from anon.errors import Refused
from anon.route import DirectRoute
from anon.study import parse_proposal
from anon.transparency.documents import SignedHead, parse_chain
from anon.transparency.transcript import published as transcripts
from anon.wire.replies import parse_reply
from tests.support.clock import Clock
from tests.support.postgres import Server
from tests.support.shared_clock import SharedClock
from tests.support.spawned import Child, pipe, serve_studies
from tests.support.world import ADDRESS, FakePeer, World, in_memory, make_app, sealed, study_text

pytestmark = pytest.mark.postgres
TAKEOVER_SECONDS = 10.0


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


async def sent_to_both(two: Two, count: int) -> None:
    peers = await collecting(two, count)
    posts = [sealed(two.world.live, peer.packet()) for peer in peers]
    for _twice in range(2):
        words = await asyncio.gather(*(live.submit(post) for post in posts for live in (two.world.live, two.there)))
        assert Counter(words) == {"accepted": 2 * count}
    assert sum((await two.there.accepted()).values()) == count
    await two.world.go_to(two.world.closes)
    await two.follow()
    assert two.there.chain == two.world.live.chain and two.there.state == "published"
    assert sum((await two.there.accepted()).values()) == count


async def test_packets_sent_to_both_at_once_each_twice_are_kept_once(two: Two) -> None:
    await sent_to_both(two, 24)


@pytest.mark.soak
async def test_two_thousand_packets_sent_to_both_at_once_are_kept_once(two: Two) -> None:
    await sent_to_both(two, 2000)


async def test_after_the_freeze_every_process_refuses_whatever_its_clock_says(two: Two) -> None:
    first, second = await collecting(two, 2)
    await two.world.go_to(two.world.closes)
    two.clock.seconds = two.world.closes - 1
    assert await two.there.submit(sealed(two.there, first.packet())) == "window-closed"
    assert await two.there.submit(sealed(two.there, second.packet())) == "window-closed"
    assert two.there.packet_intake.frozen_until < two.world.closes, "it did not know: the insertion's own transaction looked"


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


async def test_a_process_that_was_paused_before_signing_signs_nothing_else(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
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


async def test_several_may_serve_a_home_with_such_a_database_and_a_final_backup_waits(two: Two) -> None:
    home = two.world.app.home
    first, second = home.lock(shared=True), home.lock(shared=True)
    with pytest.raises(Refused, match="another process"):
        home.lock()
    first.close()
    second.close()
    home.lock().close()


# Processes of their own


class Serving:
    """Processes that serve one home, and a study that they carry on."""

    def __init__(self, home: Path, clock: SharedClock, server: Server, name: str) -> None:
        self.home = home
        self.clock = clock
        self.server = server
        self.name = name
        self.children: dict[int, Child] = {}
        self.ports: dict[int, int] = {}

    async def start(self) -> None:
        """One more."""
        receiving, sending = pipe()
        child = Child(serve_studies, self.home, self.clock.path, sending)
        while not receiving.poll():
            assert child.alive
            await asyncio.sleep(0.02)
        pid = child.process.pid
        assert pid is not None
        self.children[pid], self.ports[pid] = child, receiving.recv()

    def leader(self) -> int:
        """The process that leads now; 0 when none does."""
        asked = (
            "SELECT application_name FROM pg_stat_activity JOIN pg_locks USING (pid) WHERE locktype = 'advisory' AND "
            f"granted AND objid = {postgres_module._LEADING}"
        )
        named = self.server.run(asked, self.name)
        return int(named.removeprefix("anonml ")) if named else 0

    async def led_by(self, who: Callable[[int], bool]) -> int:
        """Wait for a leader, for as long as a takeover may last."""
        deadline = time.monotonic() + TAKEOVER_SECONDS
        while not who(self.leader()):
            assert time.monotonic() < deadline, "nobody took over"
            await asyncio.sleep(0.1)
        return self.leader()

    async def reached(self, state: str) -> None:
        """Wait until the study is there, in the database."""
        deadline = time.monotonic() + TAKEOVER_SECONDS + 20
        while (now := self.server.run("SELECT phase FROM studies", self.name)) != state:
            assert time.monotonic() < deadline, f"still {now}"
            await asyncio.sleep(0.1)

    async def chain_of(self, pid: int, study: bytes) -> tuple[SignedHead, ...]:
        """The heads that a process shows."""
        answer = await DirectRoute().get(f"127.0.0.1:{self.ports[pid]}", f"/v1/{study.hex()}/heads", 2**20)
        return parse_chain(answer.body, open_home(self.home, bytes).public_key, study)

    async def send(self, pid: int, study: bytes, body: bytes) -> str:
        """The word for a packet."""
        answer = await DirectRoute().post(f"127.0.0.1:{self.ports[pid]}", f"/v1/{study.hex()}/packets", body, 2**10)
        return parse_reply(answer.body)

    def kill(self, pid: int) -> None:
        """SIGKILL, now."""
        self.children.pop(pid).process.kill()

    def end(self) -> None:
        """All of them."""
        for pid, child in self.children.items():
            os.kill(pid, signal.SIGCONT)
            child.process.kill()
            child.process.join()


@pytest.mark.process
async def test_leaders_are_killed_and_paused_in_each_phase_and_nothing_is_lost(postgres: Server, tmp_path: Path) -> None:
    url = postgres.made()
    home = open_home(tmp_path / "home", os.urandom)
    await set_up(home, url)
    clock = SharedClock(tmp_path / "clock")
    serving = Serving(home.path, clock, postgres, url.split("/")[3].partition("?")[0])
    async with AggregatorApp(home.path, clock, os.urandom, processes=0) as app:
        manifest = await app.create_study(parse_proposal(study_text(admission="open")))
        study, live = manifest.study_id, app.study(manifest.study_id)
        peers = [FakePeer(manifest) for _ in range(4)]
        assert {await live.enrol(peer.sealed_enrolment()) for peer in peers} == {"accepted"}
        try:
            await serving.start()
            await serving.start()
            paused = await serving.led_by(bool)
            os.kill(paused, signal.SIGSTOP)
            clock.seconds = manifest.timetable.enrol_closes
            leader = await serving.led_by(lambda pid: pid not in (0, paused))
            await serving.reached("settling")
            os.kill(paused, signal.SIGCONT)
            serving.kill(leader)
            clock.seconds = manifest.timetable.settled
            await serving.led_by(lambda pid: pid == paused)
            await serving.reached("collecting")
            await serving.start()
            await app._load()
            for peer in peers:
                await peer.take_credential(live)
            posts = [sealed(live, peer.packet()) for peer in peers]
            for pid in serving.children:
                assert {await serving.send(pid, study, post) for post in posts} == {"accepted"}
            serving.kill(paused)
            clock.seconds = manifest.timetable.ends
            last = await serving.led_by(lambda pid: pid not in (0, paused))
            await serving.reached("published")
            await asyncio.sleep(1.0)
            chain = await serving.chain_of(last, study)
            await app._load()
            assert live.chain == chain
            bodies = [await live.body_of(one.head) for one in chain if one.head.kind == "transcript"]
            assert sum(transcripts(manifest, bodies).accepted.values()) == len(peers)
        finally:
            serving.end()


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
    with subprocess.Popen([*command, "--workers", "2", "--processes", "0", "--json"], stdout=subprocess.PIPE, text=True) as parent:
        try:
            assert parent.stdout is not None and "address" in json.loads(parent.stdout.readline())
            first = await serving(lambda found: len(found) == 2)
            (child,) = first - {parent.pid}
            os.kill(child, signal.SIGKILL)
            second = await serving(lambda found: len(found) == 2 and child not in found)
            assert parent.pid in second
            parent.terminate()
            assert parent.wait(30) == 0
            await serving(lambda found: not found)
        finally:
            parent.kill()


async def test_workers_need_a_database_on_a_server(tmp_path: Path) -> None:
    async with make_app(tmp_path / "home", Clock()) as app:
        with pytest.raises(Refused, match="init --database"):
            app.demand_shared()
