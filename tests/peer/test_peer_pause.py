"""A pause: nothing is done until its end, through restarts, whatever the entry looks like; then as after a machine that
was off."""

from __future__ import annotations

import math
import sqlite3
from pathlib import Path

import pytest

from anon.errors import Refused
from peer.data.importing import import_rows
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from peer.store.database.integrity import write_digest
from peer.store.home import PeerHome
from tests.support.clock import START
from tests.support.fake_aggregator import DECLARED, FakeAggregator, advance, peer, reopened, until_closed, until_state

HOUR = 3600


async def _enrolled(tmp_path: Path) -> tuple[FakeAggregator, object]:
    aggregator = FakeAggregator.with_study(DECLARED)
    app = peer(tmp_path, aggregator)
    import_rows(app._home.data_path, "person", ("age", "cups", "tired"), [(30, "some", 1)])
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    return aggregator, app


async def _collecting(tmp_path: Path):  # type: ignore[no-untyped-def]
    """A study whose packet is in the outbox and has not left."""
    aggregator, app = await _enrolled(tmp_path)
    await until_closed(app, aggregator)
    window = aggregator.manifest.windows[-1]
    await until_state(app, aggregator, State.CHECKED)
    assert [one.status for one in app.store.outbox(aggregator.study)] == [Status.QUEUED]
    return aggregator, app, window


@pytest.mark.parametrize("of_home", [True, False])
async def test_a_pause_that_begins_while_tor_is_started_holds_the_packet_back(tmp_path: Path, of_home: bool) -> None:
    """It was looked at before alone, and tor takes minutes."""
    aggregator, app, window = await _collecting(tmp_path)
    ends: list[float] = []

    class Tor:
        """The aggregator over a tor whose start takes a while, in which the owner pauses."""

        get, post = aggregator.get, aggregator.post

        async def ready(self, _address: str) -> None:
            if not ends:
                ends.append(aggregator.clock() + 30.0)
                app.pause(ends[0], None if of_home else aggregator.study)

    app._route_factory = Tor
    while not ends:
        aggregator.clock.seconds = max(aggregator.clock.seconds, await app.step(aggregator.study))
    assert aggregator.sent("packets") == []
    assert await app.step(aggregator.study) == ends[0]
    await advance(app, aggregator, float(window.closes))
    (packet,) = app.store.outbox(aggregator.study)
    assert packet.status in (Status.DELIVERED, Status.GIVEN_UP)  # hardly anything may be left of its window


@pytest.mark.parametrize("of_home", [True, False])
async def test_nothing_at_all_is_asked_or_sent_while_paused(tmp_path: Path, of_home: bool) -> None:
    aggregator, app = await _enrolled(tmp_path)
    until = START + HOUR / 2
    app.pause(until, None if of_home else aggregator.study)
    asked = len(aggregator.gets)
    for _ in range(5):
        assert await app.step(aggregator.study) == until
    assert aggregator.posts == [] and len(aggregator.gets) == asked
    aggregator.clock.seconds = until + 1
    await app.step(aggregator.study)
    assert len(aggregator.sent("enrol")) == 1


async def test_a_pause_holds_through_a_restart_and_ends_when_resumed(tmp_path: Path) -> None:
    aggregator, app = await _enrolled(tmp_path)
    app.pause(START + 900, aggregator.study)
    app.close()
    again = reopened(PeerHome(tmp_path), aggregator)
    assert again.paused_until(aggregator.study) == START + 900 and again.paused_until() is None
    assert await again.step(aggregator.study) == START + 900 and aggregator.posts == []
    again.resume(aggregator.study)
    assert again.paused_until(aggregator.study) is None
    await again.step(aggregator.study)
    assert len(aggregator.sent("enrol")) == 1


async def test_the_later_end_of_two_pauses_counts(tmp_path: Path) -> None:
    aggregator, app = await _enrolled(tmp_path)
    app.pause(START + 100)
    app.pause(START + 200, aggregator.study)
    assert (app.paused_until(), app.paused_until(aggregator.study)) == (START + 100, START + 200)
    app.resume(aggregator.study)
    assert app.paused_until(aggregator.study) == START + 100


@pytest.mark.parametrize("spoilt", [-1.0, -math.inf])
async def test_an_entry_that_is_no_instant_is_a_pause_without_end(tmp_path: Path, spoilt: float) -> None:
    aggregator, app = await _enrolled(tmp_path)
    app.pause(START + 100)
    with sqlite3.connect(PeerHome(tmp_path).store_path) as connection:
        connection.execute("UPDATE pauses SET until = ?", (spoilt,))
        write_digest(connection)
    aggregator.clock.seconds = START + 3000
    assert await app.step(aggregator.study) == math.inf and aggregator.posts == []
    app.resume()
    await app.step(aggregator.study)
    assert len(aggregator.sent("enrol")) == 1


async def test_a_packet_whose_window_passes_in_a_pause_is_given_up_and_stays_charged(tmp_path: Path) -> None:
    aggregator, app, window = await _collecting(tmp_path)
    spent = app.budget().entry(aggregator.study)
    assert spent is not None and spent.spent == aggregator.manifest.surveys[0].epsilon
    app.pause(window.closes + 1.0, aggregator.study)
    await advance(app, aggregator, window.closes + 1.0)
    assert aggregator.sent("packets") == []
    await advance(app, aggregator, window.closes + 2.0)
    aggregator.clock.seconds += 60
    await app.step(aggregator.study)
    [slot] = app.store.outbox(aggregator.study)
    assert (slot.status, aggregator.sent("packets")) == (Status.GIVEN_UP, [])
    entry = app.budget().entry(aggregator.study)
    assert entry is not None and entry.spent == spent.spent


async def test_a_pause_that_covers_part_of_the_window_has_the_packet_drawn_anew(tmp_path: Path) -> None:
    aggregator, app, window = await _collecting(tmp_path)
    until = (window.opens + window.closes) / 2
    app.pause(until)
    await advance(app, aggregator, until - 1)
    assert aggregator.sent("packets") == []
    await advance(app, aggregator, window.closes)
    [arrived] = [at for path, _body, at in aggregator.posts if path == "packets"]
    assert until <= arrived <= window.closes


async def test_a_window_that_passes_before_anything_was_made_costs_nothing(tmp_path: Path) -> None:
    aggregator, app = await _enrolled(tmp_path)
    await until_closed(app, aggregator)
    last = aggregator.manifest.windows[-1].closes
    app.pause(last + 1.0)
    await advance(app, aggregator, last + 1.0)
    await advance(app, aggregator, last + HOUR)
    assert app.store.state(aggregator.study) is State.ABANDONED
    assert aggregator.sent("packets") == [] and app.budget().held == 0


async def test_leaving_is_told_also_in_a_pause(tmp_path: Path) -> None:
    aggregator, app = await _enrolled(tmp_path)
    await app.step(aggregator.study)
    app.pause(START + 3 * HOUR)
    await app.leave(aggregator.study)
    assert await app.deliver_withdrawal(aggregator.study) is State.WITHDRAWN
    assert aggregator.enrolments == {}


async def test_a_sleeping_run_notices_that_it_was_resumed(tmp_path: Path) -> None:
    aggregator, app = await _enrolled(tmp_path)
    app.pause(START + 3 * HOUR)
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        aggregator.clock.seconds += max(0.01, seconds)
        if len(slept) == 3:
            app.resume()

    app._following._sleep = sleep
    await app.run(max_seconds=200)
    assert len(aggregator.sent("enrol")) == 1


async def test_what_cannot_be_paused_is_refused(tmp_path: Path) -> None:
    aggregator, app = await _enrolled(tmp_path)
    for until in (START - 1.0, float(START), math.nan, math.inf, START + 1e9):
        with pytest.raises(Refused, match="choose another time"):
            app.pause(until)
    with pytest.raises(Refused, match="never joined"):
        app.pause(START + 10.0, bytes(32))
    await app.leave(aggregator.study)
    await app.deliver_withdrawal(aggregator.study)
    with pytest.raises(Refused, match="over for you"):
        app.pause(START + 10.0, aggregator.study)
