"""Peers and aggregator killed (SIGKILL) at random instants of whole studies, and started again at once.

The seed fixes who is killed and after how long; where a process stands by then differs in each run.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest
from attrs import define

from peer.rules.lifecycle import State
from tests.support.journal import Ended
from tests.support.killed_study import PAPER, KilledStudy, Resident, killed_study, over
from tests.support.spawned import Child

pytestmark = pytest.mark.process

PEERS = 6


@define
class Host:
    """A process that runs one peer or several; started again until they are through."""

    study: KilledStudy
    residents: list[Resident]
    child: Child

    async def keep(self) -> None:
        """Restart it whenever it was killed."""
        while await self.child.died():
            for resident in self.residents:
                resident.journal.look()
            self.child = self.study.run(*self.residents)


async def kill_one(study: KilledStudy, hosts: list[Host], random: Random) -> str:
    """Kill the aggregator, every second time, or a process of peers that is alive."""
    alive = [host for host in hosts if host.child.alive]
    if random.random() < 0.5 or not alive:
        study.kill_aggregator()
        with study.flow.held():
            await asyncio.sleep(random.uniform(0.0, 0.05))
        await study.start()
        return "aggregator"
    random.choice(alive).child.kill()
    return "peer"


async def study_with_kills(folder: Path, kills: int, random: Random) -> list[str]:
    """The killed processes of a whole study, `kills` of them, spread about evenly over its real duration."""
    async with killed_study(folder, PAPER, rate=16.0) as study:
        await study.publish()
        residents = await study.settle_in(PEERS)
        await study.start()
        for resident in residents:
            await study.join(resident)
        groups = [residents[:2], residents[2:4], *([one] for one in residents[4:])]
        hosts = [Host(study, group, study.run(*group)) for group in groups]
        killed = []
        async with asyncio.TaskGroup() as tasks:
            for host in hosts:
                tasks.create_task(host.keep())
            enrolling = kills // 5
            killed += await _kill_while(study, hosts, random, enrolling, 0.3)
            for resident in residents:
                await resident.enrolled()
            study.jump(study.manifest.timetable.enrol_closes - 3)
            left = study.manifest.timetable.ends - study.clock()
            killed += await _kill_while(study, hosts, random, kills - enrolling, left / study.flow.rate / (kills + 1))
            await study.published("report")
        ended = Ended(study)
        ended.demand_all(residents)
        check_outcome(study, ended)
        return killed


async def _kill_while(study: KilledStudy, hosts: list[Host], random: Random, kills: int, pause: float) -> list[str]:
    killed = []
    for _ in range(kills):
        await asyncio.sleep(random.uniform(0.5, 1.5) * pause)
        killed.append(await kill_one(study, hosts, random))
    return killed


def check_outcome(study: KilledStudy, ended: Ended) -> None:
    """Every peer ended, nobody paid for what was never made, and most packets arrived."""
    assert len(ended.roster) == PEERS
    assert "report" in ended.kinds and "abandoned" not in ended.kinds
    statuses = []
    for resident in study.residents:
        assert over(resident.state())
        assert resident.state() is State.FINISHED
        assert resident.journal.reserved == 0
        assert len(set(resident.wire.bodies("enrol"))) == 1
        statuses += resident.journal.statuses
    assert set(statuses) <= {"included", "given-up", "missed", "refused"}
    assert statuses.count("included") >= len(statuses) / 2


async def test_five_random_kills(tmp_path: Path) -> None:
    assert len(await study_with_kills(tmp_path, 5, Random(7))) == 5


@pytest.mark.soak
async def test_fifty_random_kills(tmp_path: Path) -> None:
    killed: list[str] = []
    for turn in range(5):
        killed += await study_with_kills(tmp_path / str(turn), 10, Random(turn))
    print(f"{killed.count('aggregator')} kills of the aggregator, {killed.count('peer')} of peers")
    assert len(killed) == 50
