"""Leaving beside a running process, over a route that fails, and twice; and routes that are down for a while."""

import asyncio
import socket
from pathlib import Path

import pytest

from anon.errors import Refused, Unreachable
from anon.route import SocksRoute
from peer.app import PeerApp
from peer.data.evaluate import at_once
from peer.rules.lifecycle import State
from peer.run.following import NOTICE_SECONDS, POLL_SECONDS
from peer.store.backup.archive import backup
from peer.store.home import PeerHome
from tests.support.clock import SteppedClock
from tests.support.fake_aggregator import FakeAggregator, peer, reopened
from tests.support.patience import until


async def enrolled_and_running(
    tmp_path: Path, aggregator: FakeAggregator, clock: SteppedClock
) -> tuple[PeerApp, asyncio.Task[None]]:
    """A peer that sleeps until the roster is to be fetched, and its run, which sleeps until it looks for more
    studies."""
    app = peer(tmp_path, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    running = asyncio.create_task(app.run())
    await clock.rest(2)
    assert app.store.state(aggregator.study) is State.ENROLLED
    return app, running


async def test_a_running_process_delivers_what_another_one_left(tmp_path: Path) -> None:
    clock = SteppedClock()
    aggregator = FakeAggregator.with_study(clock=clock)
    _app, running = await enrolled_and_running(tmp_path, aggregator, clock)
    other = reopened(PeerHome(tmp_path), aggregator)
    await other.leave(aggregator.study)
    waiting = asyncio.create_task(other.deliver_withdrawal(aggregator.study, 10))
    await clock.rest(3)
    clock.go_on(NOTICE_SECONDS)
    await until(lambda: other.store.state(aggregator.study) is State.WITHDRAWN)
    clock.go_on(NOTICE_SECONDS)
    assert await waiting is State.WITHDRAWN
    assert len(aggregator.sent("withdraw")) == 1
    assert aggregator.enrolments == {}
    assert not running.done()
    running.cancel()


async def test_it_notices_within_a_second_and_goes_on_when_the_owner_comes_back(tmp_path: Path) -> None:
    clock = SteppedClock()
    aggregator = FakeAggregator.with_study(clock=clock)
    app, running = await enrolled_and_running(tmp_path, aggregator, clock)
    await reopened(PeerHome(tmp_path), aggregator).leave(aggregator.study)
    clock.go_on(NOTICE_SECONDS)
    await until(lambda: app.store.state(aggregator.study) is State.WITHDRAWN)
    await clock.rest(1)  # no study is left
    await reopened(PeerHome(tmp_path), aggregator).join(aggregator.invite, aggregator.manifest.epsilon)
    clock.go_on(POLL_SECONDS)
    await clock.rest(2)
    assert app.store.state(aggregator.study) is State.ENROLLED
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
