"""Enrolments that come together: opened off the loop, decided in one transaction, counted without counting rows."""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from attrs import evolve

from aggregator.intake import enrolment_jobs
from aggregator.store import enrolments
from aggregator.store.enrolments import EnrolStore
from tests.support.world import FakePeer, World, in_memory, study_text


@pytest.fixture
def running(on_each_dialect: World) -> World:
    """Every test here runs over each dialect."""
    return on_each_dialect


def fresh(running: World, *invites: int) -> list[FakePeer]:
    """Peers who have not enrolled, with these invites."""
    return [FakePeer(running.live.manifest, running.invites[number].code) for number in invites]


async def together(running: World, peers: Sequence[FakePeer]) -> list[str]:
    """The answers to all of them, in one batch."""
    return list(await asyncio.gather(*(running.live.enrol(one.sealed_enrolment()) for one in peers)))


async def stored(running: World) -> dict[str, int]:
    """Rows of enrolments, spent invites, and the kept number of the enrolled."""
    ((rows, spent, number),) = await running.rows(
        "SELECT (SELECT count(*) FROM enrolments), (SELECT count(*) FROM invites WHERE spent_by IS NOT NULL), "
        "(SELECT sum(number) FROM enrolled)"
    )
    return {"rows": rows, "spent": spent, "number": number or 0}


async def test_an_invite_admits_once_within_a_batch_and_a_repetition_is_acknowledged(running: World) -> None:
    first, thief, other = fresh(running, 0, 0, 1)
    assert await together(running, [first, thief, first, other]) == ["accepted", "invite-spent", "accepted", "accepted"]
    assert await stored(running) == {"rows": 2, "spent": 2, "number": 2}


async def test_the_maximum_holds_within_a_batch_and_who_leaves_makes_room(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "home", study_text(maximum=3)) as running:
        peers = fresh(running, 0, 1, 2, 3, 4)
        words = await together(running, peers)
        assert words == ["accepted"] * 3 + ["roster-full"] * 2
        assert await running.live.withdraw(peers[0].sealed_withdrawal()) == "withdrawn"
        assert await together(running, peers[3:]) == ["accepted", "roster-full"]
        assert await stored(running) == {"rows": 3, "spent": 3, "number": 3}


async def test_a_batch_that_is_not_committed_admits_nobody_and_spends_nothing(
    running: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(point: str) -> None:
        if point == "before-commit-of-enrolments":
            raise OSError(28, "no space left")

    await running.enrol(1)
    peers = fresh(running, 1, 2)
    with monkeypatch.context() as failing:
        failing.setattr(enrolments, "crash_point", full)
        answers = await asyncio.gather(
            *(running.live.enrol(one.sealed_enrolment()) for one in peers), return_exceptions=True
        )
    assert all(isinstance(answer, OSError) for answer in answers)
    assert await stored(running) == {"rows": 1, "spent": 1, "number": 1}
    assert await together(running, peers) == ["accepted", "accepted"]
    assert await stored(running) == {"rows": 3, "spent": 3, "number": 3}


async def test_posts_are_opened_beside_the_loop(running: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening, signature and proof took most of 2.4 ms of the loop for each."""
    threads: set[threading.Thread] = set()
    opening: Callable[..., object] = enrolment_jobs.open_enrolment

    def noted(*given: object) -> object:
        threads.add(threading.current_thread())
        return opening(*given)

    monkeypatch.setattr(enrolment_jobs, "open_enrolment", noted)
    assert await together(running, fresh(running, 0, 1)) == ["accepted", "accepted"]
    assert threads and threading.main_thread() not in threads


async def test_a_batch_takes_as_many_statements_as_one(running: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def statements(invites: Sequence[int]) -> int:
        said: list[str] = []
        with monkeypatch.context() as noting:
            noting.setattr(enrolments.AsyncConnection, "execute", _noting(said))
            assert set(await together(running, fresh(running, *invites))) == {"accepted"}
        return len(said)

    await running.enrol(1)
    assert await statements([1]) == await statements([2, 3, 4, 5]) <= 11


def _noting(said: list[str]) -> Callable[..., object]:
    execute = enrolments.AsyncConnection.execute

    async def noted(connection: enrolments.AsyncConnection, statement: object, *given: object) -> object:
        said.append(str(statement))
        return await execute(connection, statement, *given)  # type: ignore[call-overload]

    return noted


@pytest.mark.slow
async def test_rows_are_counted_when_enrolment_closes_and_at_no_tick_before(
    running: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice a second a count of a million rows took 192 ms."""
    counted: list[bytes] = []
    count = EnrolStore.count

    async def noted(store: EnrolStore, study: bytes) -> int:
        counted.append(study)
        return await count(store, study)

    monkeypatch.setattr(EnrolStore, "count", noted)
    await running.enrol(3)
    for _ in range(3):
        await running.app.tick()
    assert [one.enrolled.number for one in await running.app.status()] == [0]
    assert counted == []
    running.clock.seconds = running.live.manifest.timetable.enrol_closes
    await running.app.tick()
    assert counted == [running.live.study]
    await running.app.tick()
    assert len(counted) == 1


async def test_an_applicant_is_passed_between_processes_whole(running: World) -> None:
    (peer,) = fresh(running, 0)
    opener, manifest = running.live.packet_intake.rules.opener, running.live.manifest
    given = (opener.secret, running.live.study, manifest.packets)
    applicant, word = enrolment_jobs.open_enrolments(*given, [peer.sealed_enrolment(), bytes(1500)])
    assert word == "sealed-to-another-key" and not isinstance(applicant, str)
    assert pickle.loads(pickle.dumps(applicant)) == applicant != evolve(applicant, digest=bytes(32))
