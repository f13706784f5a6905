"""Leaders that are killed or paused in every phase of a study: another takes over, and nothing is lost or signed
twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from aggregator.store.crash_points import POINTS
from tests.support.leaders import DOCUMENT, PHASE, begun, both
from tests.support.postgres import Server
from tests.support.serving import MOMENTS, TAKEOVER_SECONDS
from tests.support.world import FakePeer, sealed

pytestmark = [pytest.mark.postgres, pytest.mark.process]
TELLERS = {"before-settling", "before-one-list"}
"""Moments of a study with tellers alone."""


async def test_a_leader_that_is_killed_or_paused_is_replaced_and_nothing_is_lost(
    postgres: Server, tmp_path: Path
) -> None:
    """Before a head is signed, in the middle of compaction, while the model is learned; paused as the roster
    settles."""
    async with begun(postgres, tmp_path, "cuts") as life:
        table = life.live.manifest.timetable
        await life.enrol(4)
        await life.killed(["before-signing"], table.enrol_closes, "settling")
        await life.paused("before-commit-of-phase", table.settled, "collecting")
        await life.take_credentials()
        await life.send([sealed(life.live, peer.packet()) for peer in life.peers])
        await life.killed(["while-compacting", "while-learning"], table.ends, "published")
        await life.demand_nothing_lost()


@pytest.mark.soak
async def test_a_leader_is_killed_at_every_point_of_every_phase(postgres: Server, tmp_path: Path) -> None:
    async with begun(postgres, tmp_path, "median") as life:
        live, table = life.live, life.live.manifest.timetable
        await life.enrol(12)
        for point in both("commit-of-enrolments", "answer"):
            life.peers.append(peer := FakePeer(live.manifest))
            assert await life.killed_taking("enrol", peer.sealed_enrolment(), point) == "accepted"
        for point in both("commit-of-withdrawal"):
            assert await life.killed_taking("withdraw", life.peers.pop(0).sealed_withdrawal(), point) == "withdrawn"
        issued = ["while-issuing", *DOCUMENT]
        points = [*both("commit-of-freeze"), "before-signing", *DOCUMENT, *DOCUMENT, *issued, *PHASE]
        await life.killed(points, table.enrol_closes, "settling")
        await life.killed(PHASE, table.settled, live.rounds[0].state)
        await life.take_credentials()
        for number, one in enumerate(live.rounds):
            life.serving.clock.seconds = one.window.opens
            due = [
                (peer, slot.slot)
                for peer in life.peers
                for slot in live.manifest.slots
                if peer.drawn(slot.slot) in one.surveys
            ]
            posts = [sealed(live, peer.packet(slot)) for peer, slot in due]
            for point in both("commit-of-packets", "answer")[: len(posts)]:
                assert await life.killed_taking("packets", posts.pop(), point) == "accepted"
                life.accepted += 1
            await life.send(posts)
            if number + 1 < len(live.rounds):
                points = [*both("commit-of-freeze"), *DOCUMENT, *PHASE]
                await life.killed(points, one.window.closes, live.rounds[number + 1].state)
        ending = [*both("commit-of-freeze"), "while-compacting"]
        for _survey in live.manifest.surveys:
            ending += ["before-transcript", *DOCUMENT]
        points = [*ending, *DOCUMENT, *PHASE, "while-learning", *DOCUMENT, *DOCUMENT, *PHASE]
        await life.killed(points, table.ends, "published")
        await life.demand_nothing_lost()
        points = [*both("erasure"), "before-erasure:2", "after-erasure:2", *PHASE]
        await life.killed(points, table.ends + live.manifest.release.retention, "erased")
        life.serving.demand_one_head_a_number()
        assert max(life.serving.takeovers) < TAKEOVER_SECONDS
        untouched = {point for point in POINTS if point.endswith("study")}  # published by a command, not by a leader
        assert {point.partition(":")[0] for point in life.spent} == (set(POINTS) | set(MOMENTS)) - untouched - TELLERS


@pytest.mark.soak
async def test_a_leader_is_paused_in_every_phase(postgres: Server, tmp_path: Path) -> None:
    """It wakes up when another has gone on, or is about to, and does no harm."""
    async with begun(postgres, tmp_path, "cuts") as life:
        live, table = life.live, life.live.manifest.timetable
        await life.enrol(6)
        life.peers.append(peer := FakePeer(live.manifest))
        assert await life.paused_taking("enrol", peer.sealed_enrolment(), "before-commit-of-enrolments") == "accepted"
        await life.paused("before-signing", table.enrol_closes, "settling")
        await life.paused("before-commit-of-phase", table.settled, "collecting")
        await life.take_credentials()
        posts = [sealed(live, peer.packet()) for peer in life.peers]
        for point in both("commit-of-packets"):
            assert await life.paused_taking("packets", posts.pop(), point) == "accepted"
            life.accepted += 1
        await life.send(posts)
        await life.paused("while-learning", table.ends, "published")
        await life.demand_nothing_lost()
        await life.paused("before-erasure", table.ends + live.manifest.release.retention, "erased")
        life.serving.demand_one_head_a_number()


@pytest.mark.soak
@pytest.mark.parametrize("point", [
    "before-commit-of-freeze", "after-commit-of-freeze", "while-compacting", "before-transcript", *DOCUMENT, *PHASE,
])
async def test_a_leader_is_paused_as_collection_closes(postgres: Server, tmp_path: Path, point: str) -> None:
    async with begun(postgres, tmp_path, "cuts") as life:
        table = life.live.manifest.timetable
        await life.enrol(3)
        for seconds, state in ((table.enrol_closes, "settling"), (table.settled, "collecting")):
            life.serving.clock.seconds = seconds
            await life.serving.reached(state)
        await life.take_credentials()
        await life.send([sealed(life.live, peer.packet()) for peer in life.peers])
        await life.paused(point, table.ends, "published")
        await life.demand_nothing_lost()


