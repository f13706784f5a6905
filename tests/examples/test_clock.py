"""The demo's virtual clock: its rules, and several processes that live by it while the machine does what it likes."""

from __future__ import annotations

import asyncio
import heapq
import json
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from anon.route import Response
from examples.clock import BEFORE, HeldRoute, Keeper, Party, Shifts, Timepiece, Turn
from tests.support.routes import Ask, Exchanges

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120.0
"""Real seconds after which a clock that stands still fails its test."""


# The rules


def test_the_time_goes_to_the_earliest_due_instant() -> None:
    turn = Turn.of([(30.0, False), (20.0, False), (40.0, True)], ahead=0.0)
    assert (turn.time, turn.until, turn.barred) == (20.0, 20.0, False)
    assert [turn.wakes(*party) for party in [(30.0, False), (20.0, False), (40.0, True)]] == [False, True, False]


def test_parties_run_ahead_no_further_than_they_may() -> None:
    turn = Turn.of([(20.0, False), (50.0, False), (81.0, False)], ahead=60.0)
    assert (turn.time, turn.until) == (20.0, 80.0)
    assert [turn.wakes(due, False) for due in (20.0, 50.0, 81.0)] == [True, True, False]


def test_nobody_passes_an_instant_that_bars() -> None:
    turn = Turn.of([(20.0, False), (50.0, False), (50.0, True)], ahead=60.0)
    assert turn.until == 50.0 - BEFORE and not turn.wakes(50.0, False) and not turn.wakes(50.0, True)


def test_who_bars_has_its_instant_for_itself() -> None:
    turn = Turn.of([(50.0, False), (50.0, True), (50.0, True), (60.0, True)], ahead=60.0)
    assert turn.barred and turn.time == turn.until == 50.0
    assert not turn.wakes(50.0, False) and turn.wakes(50.0, True) and not turn.wakes(60.0, True)


# One process


def lived(keeper: Keeper, bars: bool, work: object) -> None:
    party = Party(keeper.clock.path, keeper.place, bars)
    with asyncio.Runner(loop_factory=party.loop) as runner:
        runner.run(asyncio.wait_for(work(party), PATIENCE))  # type: ignore[operator]
    party.over()


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    return Keeper(tmp_path / "now", parties=1, start=1000.0)


def test_sleepers_wake_in_the_order_of_their_instants(keeper: Keeper) -> None:
    woke: list[tuple[float, float]] = []

    async def work(party: Party) -> None:
        async def sleeper(seconds: float) -> None:
            await party.sleep(seconds)
            woke.append((seconds, party()))

        lengths = [random.Random(5).uniform(0, 1e6) for _ in range(200)]
        await asyncio.gather(*map(sleeper, lengths))
        assert [seconds for seconds, _ in woke] == sorted(lengths)

    with keeper:
        lived(keeper, False, work)
    assert all(at == pytest.approx(1000 + seconds) for seconds, at in woke)


def test_the_time_stands_still_while_an_exchange_a_thread_or_a_machine_works(keeper: Keeper) -> None:
    release = threading.Event()

    class Slow(Exchanges):
        """Answers once the other sleeper has had every chance to be woken."""

        async def exchange(self, ask: Ask) -> Response:
            for _ in range(50):
                await asyncio.sleep(0)
            await asyncio.sleep(0.01)
            return Response(200, b"")

    async def work(party: Party) -> None:
        asleep = asyncio.create_task(party.sleep(5))
        began = party()
        await HeldRoute(Slow(), party).get("", "", 1)
        threading.Timer(0.02, release.set).start()
        await asyncio.to_thread(release.wait)
        time = Timepiece(party)
        with time.working():
            await asyncio.sleep(0.02)
            assert party() == began and not asleep.done()
            await time.sleep(1)
            assert party() == began + 1
            await asyncio.sleep(0.02)
            assert not asleep.done()
        await asleep
        assert party() == began + 5

    with keeper:
        lived(keeper, False, work)


def test_the_time_stands_still_while_a_task_that_has_slept_waits_for_a_thread_of_a_database(keeper: Keeper) -> None:
    """Such a thread is not the loop's: a study was asked for before the aggregator had loaded it."""

    async def work(party: Party) -> None:
        shifts = Shifts(party)

        async def clockwork() -> float:
            await shifts.sleep(0.5)
            await shifts.sleep(0.5)
            loop = asyncio.get_running_loop()
            loaded = loop.create_future()
            threading.Timer(0.3, lambda: loop.call_soon_threadsafe(loaded.set_result, None)).start()
            await loaded
            return party()

        async def asleep(seconds: float) -> float:
            await party.sleep(seconds)
            return party()

        others = [asyncio.create_task(asleep(seconds)) for seconds in (0, 2, 5)]
        assert await asyncio.create_task(clockwork()) == 1001
        assert await asyncio.gather(*others) == [1000, 1002, 1005], "and goes on after the task's end"

        between = asyncio.create_task(shifts.sleep(3))
        await asyncio.gather(shifts.sleep(2), party.sleep(7))
        assert between.done() and party() == 1012, "a task that has ended holds nothing"

    with keeper:
        lived(keeper, False, work)


def test_a_machine_keeps_its_own_time_among_those_that_run_ahead(tmp_path: Path) -> None:
    async def work(party: Party) -> None:
        async def woken(instant: float) -> tuple[float, float]:
            time = Timepiece(party)
            await time.until(instant)
            return time(), party()

        assert await asyncio.gather(woken(1010.0), woken(1050.0)) == [(1010.0, 1010.0), (1050.0, 1010.0)]
        assert await woken(1069.0) == (1069.0, 1010.0)  # it may go so far without being woken
        assert await woken(1071.0) == (1071.0, 1071.0)

    with Keeper(tmp_path / "now", parties=1, ahead=60.0, start=1000.0) as keeper:
        lived(keeper, False, work)


def test_a_held_keeper_wakes_nobody(keeper: Keeper) -> None:
    async def work(party: Party) -> None:
        with keeper.held():
            asleep = asyncio.create_task(party.sleep(1))
            await asyncio.sleep(0.3)
            assert not asleep.done()
        await asleep

    with keeper:
        lived(keeper, False, work)


# Several processes

PROGRAM = """
import asyncio, json, random, sys
from pathlib import Path
from examples.clock import Party, Timepiece

number, file, keeper, bars = int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4] == "bars"
drawn, party, woke = random.Random(number), Party(file, keeper, bars), []

async def machine():
    time = Timepiece(party)
    for _ in range(30):
        await time.sleep(drawn.uniform(0, 100))
        with time.working():
            sum(range(drawn.randrange(20_000)))
            await asyncio.sleep(drawn.choice((0, 0, 0.001)))
        woke.append((time(), party()))

async def live():
    await asyncio.gather(*(machine() for _ in range(1 if bars else 8)))

with asyncio.Runner(loop_factory=party.loop) as runner:
    runner.run(live())
party.over()
print(json.dumps(woke))
"""


@pytest.mark.slow
def test_processes_never_part_by_more_than_they_may_run_ahead(tmp_path: Path) -> None:
    """Three processes of eight machines, and one that bars: every instant is met, by a clock that never goes back."""
    ahead = 25.0
    with Keeper(tmp_path / "now", parties=4, ahead=ahead, start=1000.0) as keeper:
        words = [str(keeper.clock.path), str(keeper.place)]
        started = [
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(number), *words, "bars" if number == 0 else ""],
                stdout=subprocess.PIPE, text=True, cwd=ROOT,
            )
            for number in range(4)
        ]  # fmt: skip
        said = [json.loads(process.communicate(timeout=PATIENCE)[0]) for process in started]
    barred, *others = said
    assert [len(woke) for woke in said] == [30, 240, 240, 240]
    assert all(own == pytest.approx(shared) for own, shared in barred)
    for woke in others:
        assert all(shared <= own + 1e-6 and own <= shared + ahead + 1e-6 for own, shared in woke)
    bars = [own for own, _ in barred]
    for own, shared in heapq.merge(*map(sorted, others)):
        passed = [bar for bar in bars if shared < bar < own]
        assert not passed, f"a machine stood at {own} before the one that bars was at {passed}"
