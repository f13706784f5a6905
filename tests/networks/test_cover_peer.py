"""With cover traffic, a peer makes equally many connections in each window, whatever surveys it drew."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from anon.crypto import labels
from anon.ldp import nano
from anon.wire.cbor import sha256
from peer.rules.lifecycle import Event, State
from peer.rules.packet_lifecycle import Status
from peer.store.records import COVER_FROM
from tests.support.documents import plaintexts_of
from tests.support.world import World, in_memory, study_text

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("answered_at_once")]

SIXTEEN = 16


async def _until_checked(world: World, count: int = 2) -> None:
    """Everybody has passed the checks, and what waits for no document is journalled."""
    await world.settle_in(count)
    await world.go_on(world.live.manifest.timetable.settled - 0.5)


def _journalled(world: World, number: int) -> dict[bytes, float]:
    return {
        one.sealed.ciphertext: one.send_at
        for one in world.peers[number].store.outbox_entries(world.live.study)
        if one.sealed is not None
    }


@pytest.mark.parametrize(("design", "connections"), [("cuts", 1), ("cuts", 5), ("quantile", 3), ("median", 4)])
async def test_every_peer_makes_as_many_connections_in_each_window_whatever_it_drew(
    tmp_path: Path, design: str, connections: int
) -> None:
    """Among 16 peers of the quantile design all draw one kind of survey three times in 10,000."""
    async with in_memory(tmp_path / "aggregator", study_text(design, connections=connections)) as world:
        await world.settle_in(SIXTEEN if design == "quantile" else 4)
        await world.go_on()
        margin, real = world.live.manifest.timetable.margin, Counter[int]()
        for route in world.routes:
            for number, window in enumerate(world.windows):
                times = route.connections(window)
                assert len(times) == connections
                assert all(window.opens + margin <= at <= window.closes - margin for at in times)
                assert len(set(times)) == connections
                real[number] += sum(
                    not world.is_dummy(one.body) for one in route.packets() if window.opens <= one.at < window.closes
                )
            assert len(route.packets()) == connections * len(world.windows), "nothing outside the windows"
        assert sum(real.values()) == len(world.peers) * world.live.manifest.packets
        if design == "quantile":
            assert all(real.values()), "both kinds of survey were drawn"
        for app in world.peers:
            (status,) = app.status()
            assert status.state is State.FINISHED
            assert {slot.status for slot in status.slots} == {Status.INCLUDED}


async def test_fetches_do_not_depend_on_the_draw_either(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "aggregator", study_text("quantile", connections=2)) as world:
        await world.settle_in(12)
        await world.go_on()
        # Looks for the roster before it, at random: nothing is drawn yet.
        closes = world.live.manifest.timetable.enrol_closes
        fetched = {
            tuple(sorted(sent.what for sent in route.requests if sent.body is None and sent.at >= closes))
            for route in world.routes
        }
        drawn = {slot.survey for app in world.peers for slot in app.status()[0].slots}
        assert len(drawn) > 1
        assert len(fetched) == 1


async def test_nothing_on_the_wire_tells_a_dummy_from_a_packet(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "aggregator", study_text("cuts", connections=4)) as world:
        await world.settle_in(3)
        await world.go_on()
        posts = [one for route in world.routes for one in route.packets()]
        kinds = Counter(world.is_dummy(one.body) for one in posts)
        assert kinds == {True: 9, False: 3}
        assert {len(one.body) for one in posts} == {world.live.packet_intake.rules.layout.sealed_size}
        assert len({one.body for one in posts}) == 12, "no two seals are alike"
        assert {one.answer for one in posts} == {b"accepted".ljust(64)}


async def test_dummies_cost_nothing_and_leave_no_receipt(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "aggregator", study_text("cuts", connections=6)) as world:
        await world.settle_in(2)
        await world.go_on(world.windows[-1].closes - 0.5)
        (app, _other) = world.peers
        (status,) = app.status()
        assert status.spent == world.live.manifest.surveys[status.slots[0].survey].epsilon
        assert [one.slot for one in app.receipts()] == [0]
        rows = app.store.outbox_entries(world.live.study)
        assert [one.slot for one in rows] == [0, *range(COVER_FROM, COVER_FROM + 5)]
        assert all(one.epsilon == 0 and one.digest is None for one in rows[1:])
        await world.go_on()
        assert [one.slot for one in app.store.outbox_entries(world.live.study)] == [0], "the rest is erased at the end"


@pytest.mark.parametrize("fault", ["broken", "mute"])
async def test_dummies_are_retried_as_packets_are(tmp_path: Path, fault: str) -> None:
    """Never acknowledged: at most four times each, the same bytes, in the window, at different times."""
    async with in_memory(tmp_path / "aggregator", study_text("cuts", connections=5)) as world:
        await world.settle_in(4)
        for route in world.routes:
            setattr(route, fault, lambda what, _at: what == "packets")
        await world.go_on()
        (window,) = world.windows
        tries: dict[bool, list[int]] = {True: [], False: []}
        for route in world.routes:
            counts = Counter(one.body for one in route.packets())
            assert len(counts) == 5
            assert all(window.opens < one.at < window.closes for one in route.packets())
            for body, count in counts.items():
                assert 1 <= count <= 4
                tries[world.is_dummy(body)].append(count)
        assert (len(tries[True]), len(tries[False])) == (16, 4)
        assert max(tries[True]) > 1
        for app in world.peers:
            assert app.status()[0].state in (State.SENT, State.FINISHED)


async def test_a_restart_changes_neither_bytes_nor_times_nor_number(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "aggregator", study_text("cuts", connections=5)) as world:
        await _until_checked(world)
        planned = _journalled(world, 0)
        assert len(planned) == 5
        for at in sorted(planned.values()):
            await world.go_on(at - 0.01)
            world.restart(0)
            assert set(planned) >= set(_journalled(world, 0))
        await world.go_on()
        assert {one.body: one.at for one in world.routes[0].packets()} == planned


async def test_overdue_dummies_are_drawn_again_one_by_one_and_never_flushed(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "aggregator", study_text("cuts", connections=8)) as world:
        await _until_checked(world)
        (window,) = world.windows
        store, study = world.peers[0].store, world.live.study
        for place, one in enumerate(store.outbox_entries(study)):
            store.redraw(study, one.key, window.opens + 15.0 + 4 * place)
        world.clock.seconds = woken = window.opens + 60.0
        while (due := await world.peers[0].step(world.live.study)) is not None and due <= woken:
            pass
        times = _journalled(world, 0)
        assert world.routes[0].packets() == []
        assert min(times.values()) > woken
        assert len(set(times.values())) == 8
        await world.go_on()
        assert len(world.routes[0].connections(window)) == 8


async def test_a_packet_that_is_refused_changes_nothing_that_the_network_sees(tmp_path: Path) -> None:
    """Otherwise an aggregator could refuse one packet and watch whose connections stop."""
    async with in_memory(tmp_path / "aggregator", study_text("cuts", connections=5)) as world:
        await world.settle_in(2)
        size = world.live.packet_intake.rules.layout.sealed_size
        world.routes[0].says = lambda body: "rejected-proof" if len(body) == size and not world.is_dummy(body) else None
        await world.go_on()
        assert world.peers[0].status()[0].slots[0].status is Status.REFUSED
        assert len(world.routes[0].connections(world.windows[0])) == 5


@pytest.mark.parametrize("stopped_by", ["owner", "check"])
async def test_who_stops_sends_no_dummy_either(tmp_path: Path, stopped_by: str) -> None:
    async with in_memory(tmp_path / "aggregator", study_text("cuts", connections=8)) as world:
        await _until_checked(world)
        middle = sorted(_journalled(world, 0).values())[3]
        await world.go_on(middle + 0.01)
        before = len(world.routes[0].packets())
        assert before == 4
        if stopped_by == "owner":
            await world.peers[0].leave(world.live.study)
        else:
            world.peers[0].store.end(world.live.study, Event.CHECK_FAILED, "two heads with one number")
        await world.go_on()
        assert len(world.routes[0].packets()) == before
        assert all(one.slot < COVER_FROM for one in world.peers[0].store.outbox_entries(world.live.study))
        assert len(world.routes[1].packets()) == 8


async def test_who_is_not_in_the_roster_sends_no_dummy(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "aggregator", study_text("cuts", connections=4)) as world:
        await world.settle_in(3)
        world.routes[0].broken = lambda what, _at: what == "enrol"
        await world.go_on()
        assert world.peers[0].status()[0].state is State.REFUSED
        assert world.routes[0].packets() == []
        assert len(world.routes[1].packets()) == 4


async def test_a_window_that_was_slept_through_gets_nothing_late(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "aggregator", study_text("quantile", connections=3)) as world:
        await _until_checked(world, 4)
        first, second = world.windows
        slept = world.peers.pop(0)
        await world.go_on(first.closes + 1)
        world.peers.insert(0, slept)
        await world.go_on()
        assert world.routes[0].connections(first) == []
        assert len(world.routes[0].connections(second)) == 3
        assert all(second.opens < one.at < second.closes for one in world.routes[0].packets())


async def test_a_study_with_cover_gives_the_same_inputs_to_learning(tmp_path: Path) -> None:
    """Transcripts, which learning reads and nothing else, hold the packets that peers journalled and no other byte."""
    async with in_memory(tmp_path / "aggregator", study_text("quantile", connections=4)) as world:
        await world.settle_in(6)
        await world.go_on(world.windows[-1].closes - 0.5)
        digests = {one.digest for app in world.peers for one in app.store.outbox(world.live.study)}
        real = sorted(
            world.opened(one.body) for route in world.routes for one in route.packets() if not world.is_dummy(one.body)
        )
        await world.go_on()
        packets = world.live.tools.packets
        slots = {row.survey: slot.slot for slot in world.live.manifest.slots for row in slot.rows}
        kept = [p for s, slot in slots.items() for p in await plaintexts_of(packets, world.live.study, slot, s)]
        assert sorted(kept) == real
        assert {sha256(labels.PACKET_DIGEST, one) for one in kept} == digests
        assert len(kept) == 6


async def test_without_the_option_nothing_changes(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "aggregator", study_text("cuts", connections=0)) as world:
        await world.settle_in(2)
        await world.go_on()
        assert all(len(route.packets()) == 1 for route in world.routes)
        assert not any("Cover" in line for line in (await world.peers[0].look(world.invites[0])).statements)


async def test_consent_shows_it(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "aggregator", study_text("quantile", connections=7)) as world:
        await world.settle_in(1)
        sheet = await world.peers[0].look(world.invites[0])
        (said,) = [line for line in sheet.statements if line.startswith("Cover traffic")]
        assert "exactly 7 connections in each of 2 sending windows" in said
        assert "nothing else is claimed" in said
        assert sheet.epsilon == nano(2.0)
