"""Two studies consented at once, by two processes racing on one home, cannot overrun its one budget."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import pytest

from anon.ldp import nano
from anon.wire.invite import Invite
from peer.rules.ledger import Ledger
from tests.support.journal import Ended
from tests.support.killed_study import ONE_PACKET, KilledStudy, Resident, killed_study, over
from tests.support.shared_clock import SharedClock
from tests.support.spawned import Child, barrier, peer_app, pipe, race_to_join, set_policy

pytestmark = pytest.mark.process

ROUNDS = 8
CHEAP = ONE_PACKET.replace("epsilon = 2.0", "epsilon = 1.5").replace("Killed", "Cheap")


def ledger_of(home: Path, clock: SharedClock) -> Ledger:
    with closing(peer_app(home, clock)) as app:
        return app.budget()


async def race(home: Path, clock: SharedClock, invites: list[Invite], epsilon: float) -> list[str]:
    """Each invite is accepted by a process of its own, all at one instant; the outcomes."""
    start = barrier(len(invites))
    channels = [pipe() for _ in invites]
    children = [
        Child(race_to_join, home, clock.path, invite.link(), epsilon, start, sending)
        for invite, (_, sending) in zip(invites, channels, strict=True)
    ]
    for child in children:
        assert not await child.died()
    return [receiving.recv() for receiving, _ in channels]


def invites_of(residents: list[Resident]) -> list[Invite]:
    return [one.invite for one in residents]


async def test_two_consents_at_once(tmp_path: Path) -> None:
    async with killed_study(tmp_path / "dear", rate=20.0) as dear, killed_study(tmp_path / "cheap", CHEAP) as cheap:
        cheap.clock = dear.clock
        for study in (dear, cheap):
            await study.publish()
            await study.settle_in(3)
            await study.start()
        await _race_for_what_only_one_can_have(tmp_path, dear, cheap)
        await _race_for_the_same_study(tmp_path, dear)
        await _take_part_in_both(dear, cheap)


async def _race_for_what_only_one_can_have(tmp_path: Path, dear: KilledStudy, cheap: KilledStudy) -> None:
    invites = [dear.residents[0].invite, cheap.residents[0].invite]
    for number in range(ROUNDS):
        home = tmp_path / f"poor-{number}"
        assert not await Child(set_policy, home, dear.clock.path, 3.4).died()
        outcomes = await race(home, dear.clock, invites, 2.0)
        assert sorted(outcomes) == ["joined", "refused"]
        ledger = ledger_of(home, dear.clock)
        joined = (dear, cheap)[outcomes.index("joined")].manifest
        assert [(entry.study, entry.reserved, entry.spent) for entry in ledger.entries] == [
            (joined.study_id, joined.epsilon, 0)
        ]
        assert ledger.held <= ledger.lifetime


async def _race_for_the_same_study(tmp_path: Path, study: KilledStudy) -> None:
    home = tmp_path / "twice"
    assert not await Child(set_policy, home, study.clock.path, 10.0).died()
    outcomes = await race(home, study.clock, [study.residents[0].invite] * 2, 2.0)
    assert sorted(outcomes) == ["conflict", "joined"]
    assert ledger_of(home, study.clock).held == study.manifest.epsilon


async def _take_part_in_both(dear: KilledStudy, cheap: KilledStudy) -> None:
    """With a budget for exactly both, three peers live through both studies, each home in one process."""
    both = nano(3.5)
    for resident, other in zip(dear.residents, cheap.residents, strict=True):
        assert not await Child(set_policy, resident.home, dear.clock.path, 3.5).died()
        assert await race(resident.home, dear.clock, [resident.invite, other.invite], 2.0) == ["joined", "joined"]
        assert ledger_of(resident.home, dear.clock).available == both - dear.manifest.epsilon - cheap.manifest.epsilon
    hosts = [dear.run(resident) for resident in dear.residents]
    for resident in dear.residents:
        await resident.until(lambda state: state is not None)
        await _enrolled_in_both(resident.home, dear.clock)
    closes = max(study.manifest.timetable.enrol_closes for study in (dear, cheap))
    for study in (dear, cheap):
        study.jump(closes - 2)
    for host in hosts:
        assert not await host.died()
    for study in (dear, cheap):
        assert len(Ended(study).accepted) == 3
    for resident in dear.residents:
        assert over(resident.state())
        spent = {entry.study: (entry.spent, entry.reserved) for entry in ledger_of(resident.home, dear.clock).entries}
        assert spent == {study.manifest.study_id: (study.manifest.epsilon, 0) for study in (dear, cheap)}


async def _enrolled_in_both(home: Path, clock: SharedClock) -> None:
    for _ in range(600):
        with closing(peer_app(home, clock)) as app:
            if [one.state for one in app.status()] == ["enrolled", "enrolled"]:
                return
        await asyncio.sleep(0.05)
    raise AssertionError("enrolment was not acknowledged")
