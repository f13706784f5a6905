"""Leaving beside a running process, over a route that fails, and twice; and routes that are down for a while."""

import asyncio
import socket
import time
from pathlib import Path

import pytest
from village import Clock, Village, peer, reopened

from anon.errors import Refused, Unreachable
from anon.route import SocksRoute
from peer.app import NOTICE_SECONDS, PeerApp
from peer.backup import backup
from peer.home import PeerHome
from peer.session import State


class WallClock(Clock):
    """Real time, in seconds since the village was founded."""

    def __init__(self) -> None:
        super().__init__()
        self.began = time.monotonic()

    def __call__(self) -> float:
        return self.seconds + time.monotonic() - self.began

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def until(app: PeerApp, village: Village, state: State, seconds: float) -> float:
    """Wait for the state; how long it took."""
    began = time.monotonic()
    while app.store.state(village.study) is not state:
        assert time.monotonic() - began < seconds, f"still {app.store.state(village.study)} after {seconds} s"
        await asyncio.sleep(0.05)
    return time.monotonic() - began


async def enrolled_and_running(tmp_path: Path, village: Village) -> tuple[PeerApp, asyncio.Task[None]]:
    app = peer(tmp_path, village)
    await app.join(village.invite, village.manifest.epsilon)
    running = asyncio.create_task(app.run())
    await until(app, village, State.ENROLLED, 5)
    await asyncio.sleep(0.1)  # it sleeps now until the roster is to be fetched
    return app, running


async def test_a_running_process_delivers_what_another_one_left(tmp_path: Path) -> None:
    village = Village.found(clock=WallClock())
    _app, running = await enrolled_and_running(tmp_path, village)
    other = reopened(PeerHome(tmp_path), village)
    await other.leave(village.study)
    assert await other.deliver_withdrawal(village.study, 10) is State.WITHDRAWN
    assert len(village.sent("withdraw")) == 1
    assert village.enrolments == {}
    assert not running.done()
    running.cancel()


async def test_it_notices_within_two_seconds_and_goes_on_when_the_owner_comes_back(tmp_path: Path) -> None:
    village = Village.found(clock=WallClock())
    app, running = await enrolled_and_running(tmp_path, village)
    await reopened(PeerHome(tmp_path), village).leave(village.study)
    assert await until(app, village, State.WITHDRAWN, 5) < 2 * NOTICE_SECONDS
    await reopened(PeerHome(tmp_path), village).join(village.invite, village.manifest.epsilon)
    await until(app, village, State.ENROLLED, 10)
    running.cancel()


async def test_a_withdrawal_is_tried_again_often_and_never_past_closing(tmp_path: Path) -> None:
    village = Village.found()
    app = peer(tmp_path, village)
    await app.join(village.invite, village.manifest.epsilon)
    await app.run(once=True)
    village.says["withdraw"] = "busy"
    await app.leave(village.study)
    with pytest.raises(Refused, match="on its way; keep `anonml peer run` running"):
        await app.leave(village.study)
    assert await app.deliver_withdrawal(village.study, 60) is State.LEAVING
    assert 4 <= len(village.sent("withdraw")) <= 20
    closes = village.manifest.timetable.enrol_closes
    await app.run(once=True, max_seconds=closes - village.clock() - 1)
    times = [at for what, _body, at in village.posts if what == "withdraw"]
    assert times[-1] > closes - 120
    assert max(later - sooner for sooner, later in zip(times, times[1:], strict=False)) < 120
    assert len(set(village.sent("withdraw"))) == 1
    del village.says["withdraw"]
    assert await app.deliver_withdrawal(village.study, 60) is State.WITHDRAWN
    assert village.enrolments == {}


async def test_a_home_that_was_moved_elsewhere_leaves_nothing(tmp_path: Path) -> None:
    village = Village.found()
    app = peer(tmp_path / "home", village)
    await app.join(village.invite, village.manifest.epsilon)
    backup(PeerHome(tmp_path / "home"), tmp_path / "backup", final=True)
    with pytest.raises(Refused, match="moved elsewhere"):
        await app.leave(village.study)


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


async def test_a_proxy_that_is_down_is_waited_for(tmp_path: Path) -> None:
    village = Village.found()
    app = peer(tmp_path, village)
    await app.join(village.invite, village.manifest.epsilon)
    down = SocksRoute("127.0.0.1", closed_port())
    app._route_factory = lambda: down
    await app.run(once=True, max_seconds=120.0)
    assert app.status()[0].state is State.CONSENTED
    assert village.posts == []
    app._route_factory = lambda: village
    await app.run(once=True, max_seconds=600.0)
    assert app.status()[0].state is State.ENROLLED
    assert len(village.sent("enrol")) == 1


async def test_a_route_that_cannot_even_be_made_is_waited_for(tmp_path: Path) -> None:
    village = Village.found()
    app = peer(tmp_path, village)
    await app.join(village.invite, village.manifest.epsilon)

    def no_route() -> Village:
        raise Unreachable("tor has not started yet; try again")

    app._route_factory = no_route
    await app.run(once=True, max_seconds=120.0)
    assert app.status()[0].state is State.CONSENTED
    app._route_factory = lambda: village
    await app.run(once=True, max_seconds=600.0)
    assert app.status()[0].state is State.ENROLLED
