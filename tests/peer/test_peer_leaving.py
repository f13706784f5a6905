"""Leaving beside a running process, over a route that fails, and twice; and routes that are down for a while."""

import asyncio
import socket
import time
from pathlib import Path

import pytest

from anon.errors import Refused, Unreachable
from anon.route import SocksRoute
from peer.app import PeerApp
from peer.data.evaluate import at_once
from peer.rules.lifecycle import State
from peer.run.following import NOTICE_SECONDS
from peer.store.backup.archive import backup
from peer.store.home import PeerHome
from tests.support.clock import RunningClock
from tests.support.fake_aggregator import FakeAggregator, peer, reopened


async def until(app: PeerApp, aggregator: FakeAggregator, state: State, seconds: float) -> float:
    """Wait for the state; how long it took."""
    began = time.monotonic()
    while app.store.state(aggregator.study) is not state:
        assert time.monotonic() - began < seconds, f"still {app.store.state(aggregator.study)} after {seconds} s"
        await asyncio.sleep(0.05)
    return time.monotonic() - began


async def enrolled_and_running(tmp_path: Path, aggregator: FakeAggregator) -> tuple[PeerApp, asyncio.Task[None]]:
    app = peer(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    running = asyncio.create_task(app.run())
    await until(app, aggregator, State.ENROLLED, 5)
    await asyncio.sleep(0.1)  # it sleeps now until the roster is to be fetched
    return app, running


async def test_a_running_process_delivers_what_another_one_left(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study(clock=RunningClock())
    _app, running = await enrolled_and_running(tmp_path, aggregator)
    other = reopened(PeerHome(tmp_path), aggregator)
    await other.leave(aggregator.study)
    assert await other.deliver_withdrawal(aggregator.study, 10) is State.WITHDRAWN
    assert len(aggregator.sent("withdraw")) == 1
    assert aggregator.enrolments == {}
    assert not running.done()
    running.cancel()


async def test_it_notices_within_two_seconds_and_goes_on_when_the_owner_comes_back(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study(clock=RunningClock())
    app, running = await enrolled_and_running(tmp_path, aggregator)
    await reopened(PeerHome(tmp_path), aggregator).leave(aggregator.study)
    assert await until(app, aggregator, State.WITHDRAWN, 5) < 2 * NOTICE_SECONDS
    await reopened(PeerHome(tmp_path), aggregator).join(aggregator.invite, aggregator.manifest.epsilon)
    await until(app, aggregator, State.ENROLLED, 10)
    running.cancel()


async def test_a_withdrawal_is_tried_again_often_and_never_past_closing(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await app.run(once=True)
    aggregator.says["withdraw"] = "busy"
    await app.leave(aggregator.study)
    with pytest.raises(Refused, match="on its way; keep `anonml peer run` running"):
        await app.leave(aggregator.study)
    assert await app.deliver_withdrawal(aggregator.study, 60) is State.LEAVING
    assert 4 <= len(aggregator.sent("withdraw")) <= 20
    closes = aggregator.manifest.timetable.enrol_closes
    await app.run(once=True, max_seconds=closes - aggregator.clock() - 1)
    times = [at for what, _body, at in aggregator.posts if what == "withdraw"]
    assert times[-1] > closes - 120
    assert max(later - sooner for sooner, later in zip(times, times[1:], strict=False)) < 120
    assert len(set(aggregator.sent("withdraw"))) == 1
    del aggregator.says["withdraw"]
    assert await app.deliver_withdrawal(aggregator.study, 60) is State.WITHDRAWN
    assert aggregator.enrolments == {}


async def test_a_home_that_was_moved_elsewhere_leaves_nothing(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path / "home", aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await backup(PeerHome(tmp_path / "home"), tmp_path / "backup", final=True, evaluate=at_once)
    with pytest.raises(Refused, match="moved elsewhere"):
        await app.leave(aggregator.study)


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


async def test_a_proxy_that_is_down_is_waited_for(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    down = SocksRoute("127.0.0.1", closed_port())
    app._route_factory = lambda: down
    await app.run(once=True, max_seconds=120.0)
    assert app.status()[0].state is State.CONSENTED
    assert aggregator.posts == []
    app._route_factory = lambda: aggregator
    await app.run(once=True, max_seconds=600.0)
    assert app.status()[0].state is State.ENROLLED
    assert len(aggregator.sent("enrol")) == 1


async def test_a_route_that_cannot_even_be_made_is_waited_for(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study()
    app = peer(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)

    def no_route() -> FakeAggregator:
        raise Unreachable("tor has not started yet; try again")

    app._route_factory = no_route
    await app.run(once=True, max_seconds=120.0)
    assert app.status()[0].state is State.CONSENTED
    app._route_factory = lambda: aggregator
    await app.run(once=True, max_seconds=600.0)
    assert app.status()[0].state is State.ENROLLED
