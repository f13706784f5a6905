"""A pause: nothing is done until its end, through restarts, whatever the entry looks like; then as after a machine that
was off."""

from __future__ import annotations

import math
import sqlite3
from pathlib import Path

import pytest
from village import DECLARED, START, Village, advance, peer, reopened

from anon.errors import Refused
from peer.data.importing import import_rows
from peer.home import PeerHome
from peer.records import Status
from peer.session import State

HOUR = 3600


async def _enrolled(tmp_path: Path) -> tuple[Village, object]:
    village = Village.found(DECLARED)
    app = peer(tmp_path, village)
    import_rows(app._home.data_path, "person", ("age", "cups", "tired"), [(30, "some", 1)])
    await app.join(village.invite, village.manifest.epsilon)
    return village, app


async def _collecting(tmp_path: Path):  # type: ignore[no-untyped-def]
    """A study whose packet is in the outbox and has not left."""
    village, app = await _enrolled(tmp_path)
    await advance(app, village, START + HOUR)
    village.crowd(5)
    village.close()
    window = village.manifest.windows[-1]
    while app.store.state(village.study) is not State.CHECKED:
        due = await app.step(village.study)
        village.clock.seconds = max(village.clock.seconds, due or 0)
    assert [one.status for one in app.store.outbox(village.study)] == [Status.QUEUED]
    return village, app, window


@pytest.mark.parametrize("of_home", [True, False])
async def test_nothing_at_all_is_asked_or_sent_while_paused(tmp_path: Path, of_home: bool) -> None:
    village, app = await _enrolled(tmp_path)
    until = START + HOUR / 2
    app.pause(until, None if of_home else village.study)
    asked = len(village.gets)
    for _ in range(5):
        assert await app.step(village.study) == until
    assert village.posts == [] and len(village.gets) == asked
    village.clock.seconds = until + 1
    await app.step(village.study)
    assert len(village.sent("enrol")) == 1


async def test_a_pause_holds_through_a_restart_and_ends_when_resumed(tmp_path: Path) -> None:
    village, app = await _enrolled(tmp_path)
    app.pause(START + 900, village.study)
    app.close()
    again = reopened(PeerHome(tmp_path), village)
    assert again.paused_until(village.study) == START + 900 and again.paused_until() is None
    assert await again.step(village.study) == START + 900 and village.posts == []
    again.resume(village.study)
    assert again.paused_until(village.study) is None
    await again.step(village.study)
    assert len(village.sent("enrol")) == 1


async def test_the_later_end_of_two_pauses_counts(tmp_path: Path) -> None:
    village, app = await _enrolled(tmp_path)
    app.pause(START + 100)
    app.pause(START + 200, village.study)
    assert (app.paused_until(), app.paused_until(village.study)) == (START + 100, START + 200)
    app.resume(village.study)
    assert app.paused_until(village.study) == START + 100


@pytest.mark.parametrize("spoilt", [-1.0, -math.inf])
async def test_an_entry_that_is_no_instant_is_a_pause_without_end(tmp_path: Path, spoilt: float) -> None:
    village, app = await _enrolled(tmp_path)
    app.pause(START + 100)
    with sqlite3.connect(PeerHome(tmp_path).store_path) as connection:
        connection.execute("UPDATE pauses SET until = ?", (spoilt,))
    village.clock.seconds = START + 3000
    assert await app.step(village.study) == math.inf and village.posts == []
    app.resume()
    await app.step(village.study)
    assert len(village.sent("enrol")) == 1


async def test_a_packet_whose_window_passes_in_a_pause_is_given_up_and_stays_charged(tmp_path: Path) -> None:
    village, app, window = await _collecting(tmp_path)
    spent = app.budget().entry(village.study)
    assert spent is not None and spent.spent == village.manifest.surveys[0].epsilon
    app.pause(window.closes + 1.0, village.study)
    await advance(app, village, window.closes + 1.0)
    assert village.sent("packets") == []
    await advance(app, village, window.closes + 2.0)
    village.clock.seconds += 60
    await app.step(village.study)
    [slot] = app.store.outbox(village.study)
    assert (slot.status, village.sent("packets")) == (Status.GIVEN_UP, [])
    entry = app.budget().entry(village.study)
    assert entry is not None and entry.spent == spent.spent


async def test_a_pause_that_covers_part_of_the_window_has_the_packet_drawn_anew(tmp_path: Path) -> None:
    village, app, window = await _collecting(tmp_path)
    until = (window.opens + window.closes) / 2
    app.pause(until)
    await advance(app, village, until)
    assert village.sent("packets") == []
    await advance(app, village, window.closes)
    [arrived] = [at for path, _body, at in village.posts if path == "packets"]
    assert until <= arrived <= window.closes


async def test_a_window_that_passes_before_anything_was_made_costs_nothing(tmp_path: Path) -> None:
    village, app = await _enrolled(tmp_path)
    await advance(app, village, START + HOUR)
    village.crowd(5)
    village.close()
    last = village.manifest.windows[-1].closes
    app.pause(last + 1.0)
    await advance(app, village, last + 1.0)
    await advance(app, village, last + HOUR)
    assert app.store.state(village.study) is State.ABANDONED
    assert village.sent("packets") == [] and app.budget().held == 0


async def test_leaving_is_told_also_in_a_pause(tmp_path: Path) -> None:
    village, app = await _enrolled(tmp_path)
    await app.step(village.study)
    app.pause(START + 3 * HOUR)
    await app.leave(village.study)
    assert await app.deliver_withdrawal(village.study) is State.WITHDRAWN
    assert village.enrolments == {}


async def test_a_sleeping_run_notices_that_it_was_resumed(tmp_path: Path) -> None:
    village, app = await _enrolled(tmp_path)
    app.pause(START + 3 * HOUR)
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        village.clock.seconds += max(0.01, seconds)
        if len(slept) == 3:
            app.resume()

    app._sleep = sleep
    await app.run(max_seconds=200)
    assert len(village.sent("enrol")) == 1


async def test_what_cannot_be_paused_is_refused(tmp_path: Path) -> None:
    village, app = await _enrolled(tmp_path)
    for until in (START - 1.0, float(START), math.nan, math.inf, START + 1e9):
        with pytest.raises(Refused, match="choose another time"):
            app.pause(until)
    with pytest.raises(Refused, match="never joined"):
        app.pause(START + 10.0, bytes(32))
    await app.leave(village.study)
    await app.deliver_withdrawal(village.study)
    with pytest.raises(Refused, match="over for you"):
        app.pause(START + 10.0, village.study)
