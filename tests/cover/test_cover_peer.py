"""What an observer of a peer's network sees with cover traffic: as many connections in each window, whatever was drawn."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from town import Town, town

from anon import labels
from anon.encoding import sha256
from anon.ldp import nano
from peer.records import COVER_FROM, Status
from peer.session import Event, State

SIXTEEN = 16


async def _until_checked(here: Town, count: int = 2) -> None:
    """Everybody has passed the checks, and what waits for no document is journalled."""
    await here.settle_in(count)
    await here.go_on(here.live.manifest.timetable.settled - 0.5)


def _journalled(here: Town, number: int) -> dict[bytes, float]:
    return {
        one.sealed.ciphertext: one.send_at
        for one in here.peers[number].store.departures(here.live.study)
        if one.sealed is not None
    }


@pytest.mark.parametrize(("design", "connections"), [("cuts", 1), ("cuts", 5), ("quantile", 3), ("median", 4)])
async def test_every_peer_makes_as_many_connections_in_each_window_whatever_it_drew(
    tmp_path: Path, design: str, connections: int
) -> None:
    """Among 16 peers of the quantile design all draw one kind of survey three times in 10,000."""
    async with town(tmp_path, design, connections) as here:
        await here.settle_in(SIXTEEN if design == "quantile" else 4)
        await here.go_on()
        margin, real = here.live.manifest.timetable.margin, Counter[int]()
        for line in here.lines:
            for number, window in enumerate(here.windows):
                times = line.connections(window)
                assert len(times) == connections
                assert all(window.opens + margin <= at <= window.closes - margin for at in times)
                assert len(set(times)) == connections
                real[number] += sum(
                    not here.is_dummy(one.body) for one in line.packets() if window.opens <= one.at < window.closes
                )
            assert len(line.packets()) == connections * len(here.windows), "nothing outside the windows"
        assert sum(real.values()) == len(here.peers) * here.live.manifest.packets
        if design == "quantile":
            assert all(real.values()), "both kinds of survey were drawn"
        for app in here.peers:
            (status,) = app.status()
            assert status.state is State.FINISHED
            assert {slot.status for slot in status.slots} == {Status.INCLUDED}


async def test_fetches_do_not_depend_on_the_draw_either(tmp_path: Path) -> None:
    async with town(tmp_path, "quantile", 2) as here:
        await here.settle_in(12)
        await here.go_on()
        fetched = {tuple(sorted(what for what, _at in line.gets)) for line in here.lines}
        drawn = {slot.survey for app in here.peers for slot in app.status()[0].slots}
        assert len(drawn) > 1
        assert len(fetched) == 1


async def test_nothing_on_the_wire_tells_a_dummy_from_a_packet(tmp_path: Path) -> None:
    async with town(tmp_path, "cuts", 4) as here:
        await here.settle_in(3)
        await here.go_on()
        posts = [one for line in here.lines for one in line.packets()]
        kinds = Counter(here.is_dummy(one.body) for one in posts)
        assert kinds == {True: 9, False: 3}
        assert {len(one.body) for one in posts} == {here.live.door.rules.sealed_bytes}
        assert len({one.body for one in posts}) == 12, "no two seals are alike"
        assert {one.answer for one in posts} == {b"accepted".ljust(64)}


async def test_dummies_cost_nothing_and_leave_no_receipt(tmp_path: Path) -> None:
    async with town(tmp_path, "cuts", 6) as here:
        await here.settle_in(2)
        await here.go_on(here.windows[-1].closes - 0.5)
        (app, _other) = here.peers
        (status,) = app.status()
        assert status.spent == here.live.manifest.surveys[status.slots[0].survey].epsilon
        assert [one.slot for one in app.receipts()] == [0]
        rows = app.store.departures(here.live.study)
        assert [one.slot for one in rows] == [0, *range(COVER_FROM, COVER_FROM + 5)]
        assert all(one.epsilon == 0 and one.digest is None for one in rows[1:])
        await here.go_on()
        assert [one.slot for one in app.store.departures(here.live.study)] == [0], "the rest is erased at the end"


@pytest.mark.parametrize("fault", ["broken", "mute"])
async def test_dummies_are_retried_as_packets_are(tmp_path: Path, fault: str) -> None:
    """Never acknowledged: at most four times each, the same bytes, in the window, at different times."""
    async with town(tmp_path, "cuts", 5) as here:
        await here.settle_in(4)
        for line in here.lines:
            setattr(line, fault, lambda what, _at: what == "packets")
        await here.go_on()
        (window,) = here.windows
        tries: dict[bool, list[int]] = {True: [], False: []}
        for line in here.lines:
            counts = Counter(one.body for one in line.packets())
            assert len(counts) == 5
            assert all(window.opens < one.at < window.closes for one in line.packets())
            for body, count in counts.items():
                assert 1 <= count <= 4
                tries[here.is_dummy(body)].append(count)
        assert (len(tries[True]), len(tries[False])) == (16, 4)
        assert max(tries[True]) > 1
        for app in here.peers:
            assert app.status()[0].state in (State.SENT, State.FINISHED)


async def test_a_restart_changes_neither_bytes_nor_times_nor_number(tmp_path: Path) -> None:
    async with town(tmp_path, "cuts", 5) as here:
        await _until_checked(here)
        planned = _journalled(here, 0)
        assert len(planned) == 5
        for at in sorted(planned.values()):
            await here.go_on(at - 0.01)
            here.restart(0)
            assert set(planned) >= set(_journalled(here, 0))
        await here.go_on()
        assert {one.body: one.at for one in here.lines[0].packets()} == planned


async def test_overdue_dummies_are_drawn_again_one_by_one_and_never_flushed(tmp_path: Path) -> None:
    async with town(tmp_path, "cuts", 8) as here:
        await _until_checked(here)
        (window,) = here.windows
        store, study = here.peers[0].store, here.live.study
        for place, one in enumerate(store.departures(study)):
            store.redraw(study, one.slot, window.opens + 15.0 + 4 * place)
        here.running.clock.time = woken = window.opens + 60.0
        while (due := await here.peers[0].step(here.live.study)) is not None and due <= woken:
            pass
        times = _journalled(here, 0)
        assert here.lines[0].packets() == []
        assert min(times.values()) > woken
        assert len(set(times.values())) == 8
        await here.go_on()
        assert len(here.lines[0].connections(window)) == 8


async def test_a_packet_that_is_refused_changes_nothing_that_the_network_sees(tmp_path: Path) -> None:
    """Otherwise an aggregator could refuse one packet and watch whose connections stop."""
    async with town(tmp_path, "cuts", 5) as here:
        await here.settle_in(2)
        size = here.live.door.rules.sealed_bytes
        here.lines[0].says = lambda body: "rejected-proof" if len(body) == size and not here.is_dummy(body) else None
        await here.go_on()
        assert here.peers[0].status()[0].slots[0].status is Status.REFUSED
        assert len(here.lines[0].connections(here.windows[0])) == 5


@pytest.mark.parametrize("stopped_by", ["owner", "check"])
async def test_who_stops_sends_no_dummy_either(tmp_path: Path, stopped_by: str) -> None:
    async with town(tmp_path, "cuts", 8) as here:
        await _until_checked(here)
        middle = sorted(_journalled(here, 0).values())[3]
        await here.go_on(middle + 0.01)
        before = len(here.lines[0].packets())
        assert before == 4
        if stopped_by == "owner":
            await here.peers[0].leave(here.live.study)
        else:
            here.peers[0].store.end(here.live.study, Event.CHECK_FAILED, "two heads with one number")
        await here.go_on()
        assert len(here.lines[0].packets()) == before
        assert all(one.slot < COVER_FROM for one in here.peers[0].store.departures(here.live.study))
        assert len(here.lines[1].packets()) == 8


async def test_who_is_not_in_the_roster_sends_no_dummy(tmp_path: Path) -> None:
    async with town(tmp_path, "cuts", 4) as here:
        await here.settle_in(3)
        here.lines[0].broken = lambda what, _at: what == "enrol"
        await here.go_on()
        assert here.peers[0].status()[0].state is State.REFUSED
        assert here.lines[0].packets() == []
        assert len(here.lines[1].packets()) == 4


async def test_a_window_that_was_slept_through_gets_nothing_late(tmp_path: Path) -> None:
    async with town(tmp_path, "quantile", 3) as here:
        await _until_checked(here, 4)
        first, second = here.windows
        slept = here.peers.pop(0)
        await here.go_on(first.closes + 1)
        here.peers.insert(0, slept)
        await here.go_on()
        assert here.lines[0].connections(first) == []
        assert len(here.lines[0].connections(second)) == 3
        assert all(second.opens < one.at < second.closes for one in here.lines[0].packets())


async def test_a_study_with_cover_gives_the_same_inputs_to_learning(tmp_path: Path) -> None:
    """Transcripts, which learning reads and nothing else, hold the packets that peers journalled and no other byte."""
    async with town(tmp_path, "quantile", 4) as here:
        await here.settle_in(6)
        await here.go_on(here.windows[-1].closes - 0.5)
        digests = {one.digest for app in here.peers for one in app.store.outbox(here.live.study)}
        real = sorted(
            here.opened(one.body) for line in here.lines for one in line.packets() if not here.is_dummy(one.body)
        )
        await here.go_on()
        packets = here.live.tools.packets
        slots = {row.survey: slot.slot for slot in here.live.manifest.slots for row in slot.rows}
        kept = [p for s, slot in slots.items() for p in await packets.of_survey(here.live.study, slot, s)]
        assert sorted(kept) == real
        assert {sha256(labels.PACKET_DIGEST, one) for one in kept} == digests
        assert len(kept) == 6


async def test_without_the_option_nothing_changes(tmp_path: Path) -> None:
    async with town(tmp_path, "cuts", 0) as here:
        await here.settle_in(2)
        await here.go_on()
        assert all(len(line.packets()) == 1 for line in here.lines)
        assert not any("Cover" in line for line in (await here.peers[0].look(here.running.invites[0])).statements)


async def test_consent_shows_it(tmp_path: Path) -> None:
    async with town(tmp_path, "quantile", 7) as here:
        await here.settle_in(1)
        sheet = await here.peers[0].look(here.running.invites[0])
        (said,) = [line for line in sheet.statements if line.startswith("Cover traffic")]
        assert "exactly 7 connections in each of 2 sending windows" in said
        assert "nothing else is claimed" in said
        assert sheet.epsilon == nano(2.0)
