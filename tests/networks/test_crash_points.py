"""Every named crash point of both sides, in whole studies of separate processes that are killed there and started
again.

Nothing acknowledged is lost, nothing is perturbed twice, no ledger is overspent, and no two heads share a number.
"""

from __future__ import annotations

import ast
import asyncio
import sqlite3
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

import aggregator.store.crash_points
import peer.store.crash_points
from peer.data.evaluate import at_once
from peer.rules.lifecycle import State
from peer.store import pausing
from peer.store.backup.archive import backup
from peer.store.home import PeerHome
from tests.support.journal import Ended
from tests.support.killed_study import EPSILON, PAPER, KilledStudy, Resident, killed_study, over
from tests.support.spawned import Child, join_study, leave_study, pause_home, restore_home, set_policy

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
WHILE_RUNNING = (
    "send-of-enrolment",
    "commit-of-enrolment",
    "commit-of-evaluation",
    "commit-of-release",
    "commit-of-attempt",
    "send-of-packet",
    "commit-of-answer",
    "commit-of-end",
)
AGGREGATOR_ENROLLING = ("commit-of-enrolments", "answer")
SIDES = ("before", "after")
BINNING_SURVEY = 0
OF_SUMS = {"before-commit-of-list", "after-commit-of-list"}
"""No study of counts comes there. In `test_sum_programs` an aggregator dies before that commit."""


def both(*names: str) -> list[str]:
    return [f"{side}-{name}" for name in names for side in SIDES]


# One scene per peer: what is done to it. Each ends when the study is over for it, or with the test.

Scene = Callable[[KilledStudy, Resident, str], Coroutine[Any, Any, None]]


async def killed_running(study: KilledStudy, resident: Resident, point: str) -> None:
    await study.join(resident)
    await die_then_run(study, resident, point)


async def killed_seeing_new_heads(study: KilledStudy, resident: Resident, point: str) -> None:
    """Two peers for each side: the one in a hundred that draws the binning survey sends before the heads grow."""
    await study.join(resident)
    if not await study.run(resident, point=point).died():
        assert resident.surveys() == [BINNING_SURVEY], f"never came to {point}"
        return
    await go_on(study, resident, point)


async def die_then_run(study: KilledStudy, resident: Resident, point: str) -> None:
    assert await study.run(resident, point=point).died(), f"never came to {point}"
    await go_on(study, resident, point)


async def go_on(study: KilledStudy, resident: Resident, point: str) -> None:
    with study.flow.held():
        study.deaths.append(point)
        resident.journal.look()
        again = study.run(resident)
    assert not await again.died()


async def killed_saying_yes(study: KilledStudy, resident: Resident, point: str) -> None:
    link, clock = resident.invite.link(), study.clock.path
    assert await Child(join_study, resident.home, clock, link, EPSILON, point).died()
    study.deaths.append(point)
    resident.journal.look()
    assert (resident.state() is None, resident.journal.reserved) in {(True, 0), (False, study.manifest.epsilon)}
    assert (resident.state() is None) == point.startswith("before")
    assert not await Child(join_study, resident.home, clock, link, EPSILON).died()
    assert not await study.run(resident).died()


async def killed_setting_the_budget(study: KilledStudy, resident: Resident, point: str) -> None:
    assert await Child(set_policy, resident.home, study.clock.path, 3.0, point).died()
    study.deaths.append(point)
    resident.journal.look()
    await study.join(resident)
    assert not await study.run(resident).died()


async def killed_pausing(study: KilledStudy, resident: Resident, point: str) -> None:
    """Paused or not, but nothing between; going on is as durable."""
    await study.join(resident)
    assert await Child(pause_home, resident.home, study.clock.path, point).died()
    study.deaths.append(point)
    resident.journal.look()
    with closing(sqlite3.connect(resident.home / "peer.sqlite", timeout=30)) as store:
        paused = pausing.read(store, None) > 0
    assert paused == point.startswith("after")
    assert not await Child(pause_home, resident.home, study.clock.path).died()
    assert not await study.run(resident).died()


async def killed_leaving(study: KilledStudy, resident: Resident, point: str) -> None:
    await study.join(resident)
    first = study.run(resident)
    await resident.enrolled()
    first.kill()
    assert await first.died()
    assert await Child(leave_study, resident.home, study.clock.path, point).died()
    study.deaths.append(point)
    resident.journal.look()
    assert not await Child(leave_study, resident.home, study.clock.path).died()


async def killed_restoring(study: KilledStudy, resident: Resident, point: str) -> None:
    await study.join(resident)
    first = study.run(resident)
    await resident.enrolled()
    first.kill()
    assert await first.died()
    file, fresh = resident.home.with_suffix(".backup"), resident.home.with_suffix(".restored")
    await backup(PeerHome(resident.home), file, final=True, evaluate=at_once)
    assert await Child(restore_home, fresh, file, study.clock.path, point).died()
    study.deaths.append(point)
    assert {one.name for one in fresh.iterdir() if one.is_dir()} == {"scratch"}
    assert any((fresh / "scratch").iterdir())
    assert not await Child(restore_home, fresh, file, study.clock.path).died()
    assert not any((fresh / "scratch").iterdir()), "copies of secrets were left behind"
    resident.home = resident.journal.home = fresh
    assert not await study.run(resident).died()


async def killed_drawing_again(study: KilledStudy, resident: Resident, point: str) -> None:
    """The heads cannot be fetched shortly before sending, so the packet gets another time."""
    await study.join(resident)
    dying = study.run(resident, point=point)
    await resident.until(lambda state: state is State.CHECKED)
    resident.wire.deaf.add("heads")
    assert await dying.died(), f"never came to {point}"
    study.deaths.append(point)
    resident.journal.look()
    resident.wire.deaf.clear()
    assert not await study.run(resident).died()


async def stays_away(study: KilledStudy, resident: Resident, point: str) -> None:
    """Killed with a finished packet in the journal, and started again when all windows have passed."""
    await study.join(resident)
    assert await study.run(resident, point=point).died()
    resident.journal.look()
    await study.flow.reach(max(survey.window.closes for survey in study.manifest.surveys))
    assert not await study.run(resident).died()


@frozen
class Case:
    point: str
    scene: Scene


CASES = (
    *(Case(point, killed_running) for point in both(*WHILE_RUNNING)),
    # Heads grow before a packet leaves, except for the one in a hundred that draws the binning survey: two tries.
    *(Case(point, killed_seeing_new_heads) for point in both("commit-of-heads") for _ in range(2)),
    *(Case(point, killed_saying_yes) for point in both("commit-of-consent")),
    *(Case(point, killed_setting_the_budget) for point in both("commit-of-policy")),
    *(Case(point, killed_pausing) for point in both("commit-of-pause")),
    *(Case(point, killed_leaving) for point in both("commit-of-leaving", "send-of-withdrawal", "commit-of-withdrawal")),
    *(Case(point, killed_restoring) for point in both("commit-of-restore")),
    *(Case(point, killed_drawing_again) for point in both("commit-of-redraw")),
)


async def peers_study(folder: Path) -> tuple[KilledStudy, Ended]:
    """One study in which each peer dies at a point of its own."""
    async with killed_study(folder) as study:
        await study.publish()
        residents = await study.settle_in(len(CASES) + 1)
        await study.start()
        async with asyncio.TaskGroup() as group:
            leaving = []
            for case, resident in zip(CASES, residents, strict=False):
                scene = group.create_task(case.scene(study, resident, case.point))
                leaving += [scene] if case.scene is killed_leaving else []
            group.create_task(stays_away(study, residents[-1], "after-commit-of-release"))
            for resident in residents:
                await resident.enrolled()
            await asyncio.gather(*leaving)  # a withdrawal after enrolment has closed would not count
            study.jump(study.manifest.timetable.enrol_closes - 2)
        return study, Ended(study)


async def aggregator_study(folder: Path) -> tuple[KilledStudy, Ended]:
    """One study in which the aggregator dies at every point, one after the other."""
    async with killed_study(folder, PAPER) as study:
        await study.publish(both("commit-of-study"))
        *early, leaver = await study.settle_in(8)
        hosts = await _enrol_through_deaths(study, early, leaver)
        await _pass(study, study.manifest.timetable.enrol_closes)
        with study.flow.held():
            await study.die_and_restart([*both("commit-of-document"), "before-commit-of-document:2"])
            await study.published("credentials")
        await _collect_through_deaths(study)
        for host in hosts:
            assert not await host.died()
        ended = Ended(study)
        study.jump(study.manifest.timetable.ends + study.manifest.release.retention)
        study.kill_aggregator()
        await study.die_and_restart([*both("erasure"), "before-erasure:2", "after-erasure:2"])
        return study, ended


async def _enrol_through_deaths(study: KilledStudy, residents: list[Resident], leaver: Resident) -> list[Child]:
    hosts = []
    points = both(*AGGREGATOR_ENROLLING)
    await study.start()
    for resident in (*residents, leaver):
        await study.join(resident)
    study.kill_aggregator()
    for point, resident in zip(points, residents, strict=False):
        await study.start(point)
        hosts.append(study.run(resident))
        await study.aggregator_died(point)
    await study.start()
    rest = residents[len(points) :]
    hosts.append(study.run(*rest))
    first = study.run(leaver)
    for resident in (*residents, leaver):
        await resident.enrolled()
    first.kill()
    assert await first.died()
    study.kill_aggregator()
    leaving = Child(leave_study, leaver.home, study.clock.path)
    await study.die_and_restart(both("commit-of-withdrawal"))
    assert not await leaving.died()
    return hosts


async def _pass(study: KilledStudy, deadline: int) -> None:
    """Down when a deadline passes, so that all it makes due is done by the next that start."""
    if study.manifest.timetable.enrol_closes == deadline:
        study.jump(deadline - 2)
    await study.flow.reach(deadline - 1)
    study.kill_aggregator()
    await study.flow.reach(deadline + 0.1)


async def _collect_through_deaths(study: KilledStudy) -> None:
    """Deaths while packets come, and at the close of each window."""
    windows = sorted({survey.window for survey in study.manifest.surveys}, key=lambda window: window.opens)
    points = both("commit-of-packets") + both("answer") + both("commit-of-packets")
    for number, window in enumerate(windows):
        await study.flow.reach(window.opens)
        here = points if number == len(windows) - 1 else []
        if here:
            study.kill_aggregator()
            await study.die_and_restart(here)
        await _pass(study, window.closes)
        with study.flow.held():
            last = (
                ["before-commit-of-document:3", *both("commit-of-phase"), "before-commit-of-document:2"] if here else []
            )
            await study.die_and_restart([*both("commit-of-freeze"), *both("commit-of-document"), *last])
            await study.published("report" if here else ("edges" if number else "thresholds"))


@frozen
class Outcome:
    peers: KilledStudy
    peers_end: Ended
    aggregator: KilledStudy
    aggregator_end: Ended


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    async def both_studies() -> Outcome:
        folder = tmp_path_factory.mktemp("killed")
        async with asyncio.timeout(280), asyncio.TaskGroup() as group:
            peers = group.create_task(peers_study(folder / "peers"))
            server = group.create_task(aggregator_study(folder / "aggregator"))
        for study, _ in (peers.result(), server.result()):
            for resident in study.residents:
                resident.journal.look()  # as they are at the end, whichever test comes first
        return Outcome(*peers.result(), *server.result())

    return asyncio.run(both_studies())


def points_in_source(package: str) -> set[str]:
    """Every name that a `crash_point(...)` of the package can have; parts that vary come from calls that name them."""
    trees = [ast.parse(path.read_text()) for path in (ROOT / package).rglob("*.py")]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = {argument.value for call in calls if _name(call) in ("_writing", "change") for argument in call.args
             if isinstance(argument, ast.Constant) and isinstance(argument.value, str)}
    points = set[str]()
    for call in calls:
        if _name(call) == "crash_point":
            points |= set(_spellings(call.args[0], named))
    return points


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _spellings(argument: ast.expr, named: set[str]) -> Iterator[str]:
    if isinstance(argument, ast.Constant):
        yield str(argument.value)
        return
    assert isinstance(argument, ast.JoinedStr), "a crash point's name must be readable from the source"
    first, varying = argument.values
    assert isinstance(first, ast.Constant) and isinstance(varying, ast.FormattedValue)
    yield from (str(first.value) + what for what in named)


def test_every_crash_point_in_the_source_is_exercised() -> None:
    assert points_in_source("peer") == set(peer.store.crash_points.POINTS) == {case.point for case in CASES}
    assert points_in_source("aggregator") == set(aggregator.store.crash_points.POINTS)


UNNAMED = {
    "erase": "lists of sums and counts of answers, repeated until the phase is stored",
    "belong_to": "marks a database as its aggregator's, before anything is in it",
    "mark_served": "a start that was killed before marks anew; staff say once more that no other copy is alive",
    "create": "makes tables that are not there; before anything is published",
    "add_invites": "a command of staff, who see no links when it dies",
    "list_keys": "a command of staff, who may repeat it",
    "put": "buckets of a document without a head, which are put anew when its step is repeated",
    "leave_out": "finds the same rows again, and comes before every document that leaves them out",
    "forget": "rewrites rows that a commit before it erased or froze, and is repeated with that step",
    "erase_bodies": "the last of three erasures, repeated until the phase is stored",
}
"""Commits of the aggregator without crash points, and why a death there needs no test of its own."""


def test_every_commit_has_its_crash_points() -> None:
    trees = [ast.parse(path.read_text()) for path in (ROOT / "aggregator").rglob("*.py")]
    functions = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef)]
    writing = {one.name: one for one in functions if _calls(one, "write", "_database") or _calls(one, "write", "self")}
    unnamed = {name for name, one in writing.items() if not _calls(one, "crash_point")}
    assert len(writing) > len(UNNAMED)
    assert unnamed == set(UNNAMED)
    # The owner's data file is not the store: an import that was killed has not happened.
    modules = set((ROOT / "peer").rglob("*.py")) - set((ROOT / "peer/data").rglob("*.py"))
    commits = [path.name for path in modules for _ in range(path.read_text().count('"COMMIT"'))]
    # one when a store is made and one between crash points; a final backup's mark; a digest that was not taken yet
    assert sorted(commits) == ["archive.py", "integrity.py", "store_file.py", "store_file.py"]


def _calls(function: ast.AST, name: str, owner: str | None = None) -> bool:
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call) and _name(node) == name]
    return any(owner is None or _owner(call) == owner for call in calls)


def _owner(call: ast.Call) -> str:
    value = call.func.value if isinstance(call.func, ast.Attribute) else None
    return value.attr if isinstance(value, ast.Attribute) else getattr(value, "id", "")


def test_both_sides_died_at_every_point(outcome: Outcome) -> None:
    assert set(outcome.peers.deaths) == set(peer.store.crash_points.POINTS)
    points = set(aggregator.store.crash_points.POINTS) - OF_SUMS
    assert {point.partition(":")[0] for point in outcome.aggregator.deaths} == points


@pytest.mark.parametrize("side", ["peers", "aggregator"])
def test_nothing_is_lost_or_said_twice(outcome: Outcome, side: str) -> None:
    study, ended = getattr(outcome, side), getattr(outcome, side + "_end")
    ended.demand_all(study.residents)
    assert all(over(resident.state()) for resident in study.residents)


def test_peers_that_left_sent_nothing_and_paid_nothing(outcome: Outcome) -> None:
    left = [one for case, one in zip(CASES, outcome.peers.residents, strict=False) if case.scene is killed_leaving]
    assert len(left) == 6
    for resident in (*left, outcome.aggregator.residents[-1]):
        assert resident.state() is State.WITHDRAWN
        assert resident.wire.bodies("packets") == []
        assert (resident.journal.spent, resident.journal.reserved) == (0, 0)


def test_enrolments_are_repeated_byte_for_byte(outcome: Outcome) -> None:
    for resident in (*outcome.peers.residents, *outcome.aggregator.residents):
        assert len(set(resident.wire.bodies("enrol"))) == 1
    stayed = [one for one in outcome.peers.residents if one.state() is not State.WITHDRAWN]
    assert len(outcome.peers_end.roster) == len(stayed)
    assert len(outcome.aggregator_end.roster) == len(outcome.aggregator.residents) - 1


def test_killed_peers_packets_arrive(outcome: Outcome) -> None:
    """A peer that comes back in time delivers. A retry may be drawn for the window's last moment, and come too late."""
    residents = outcome.peers.residents[:-1]
    statuses = [status for one in residents if one.state() is not State.WITHDRAWN for status in one.journal.statuses]
    assert set(statuses) <= {"included", "given-up", "refused"}
    assert statuses.count("included") >= len(statuses) - 4
    assert len(outcome.peers_end.accepted) >= statuses.count("included")
    server = [status for one in outcome.aggregator.residents for status in one.journal.statuses]
    assert server.count("included") >= len(server) - 6


def test_a_journalled_packet_whose_window_passed_stays_charged_and_unsent(outcome: Outcome) -> None:
    away = outcome.peers.residents[-1]
    assert away.wire.bodies("packets") == []
    assert away.journal.statuses == ["given-up"]
    assert (away.journal.spent, away.journal.reserved) == (outcome.peers.manifest.epsilon, 0)


def test_packets_are_erased_at_the_end_whenever_a_peer_was_killed(outcome: Outcome) -> None:
    for resident in outcome.peers.residents + outcome.aggregator.residents:
        files = [one.read_bytes() for one in resident.home.iterdir() if one.is_file()]
        packets = set(resident.wire.bodies("packets")) | set(resident.journal.packets.values())
        assert not any(packet[:64] in file for packet in packets for file in files)


def test_documents_appear_once_each_and_in_order(outcome: Outcome) -> None:
    ended = outcome.aggregator_end
    order = ["manifest", "roster", "seed", "credentials", "thresholds", "edges"]
    transcripts = ["transcript"] * len(ended.manifest.slots)
    assert ended.kinds == [*order, *transcripts, "seed", "model", "report"]
