"""Homes of the toy `letters` that are killed, moved, restored and copied between and within rounds."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from anon.crypto.sealing.opening import Opener
from anon.wire.letters import AGGREGATOR, letter_info
from anon.wire.packets import TAG_BYTES, Packet
from examples.testing import MemoryRoute
from peer.data.evaluate import at_once
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from peer.store.backup.archive import UNCONFIRMED, backup, restore
from peer.store.home import PeerHome
from tests.support import letters
from tests.support.letters_world import (
    after,
    audited,
    bodies_of,
    demand_promises,
    expected,
    go_on,
    killer,
    learned,
    members,
    outbox,
    own_data,
    sent,
    surveys_sent,
)
from tests.support.tries import soaked
from tests.support.world import World

pytestmark = pytest.mark.slow
KEYS, ROWS, SHARES, VECTOR, CAME, OPENING = ALL = range(6)


def before(turn: int) -> list[int]:
    """The surveys of earlier rounds."""
    return [survey for survey in ALL if letters.ROUND_OF[survey] < turn]


@pytest.mark.parametrize("turn", soaked(4, range(4)))
async def test_a_home_that_starts_again_between_rounds_goes_on(tmp_path: Path, turn: int) -> None:
    async with members(tmp_path, [1, 1, 0]) as world:
        await go_on(world, until=after(world, turn))
        for number in range(3):
            world.restart(number)
        await go_on(world)
        bodies = await bodies_of(world)
        assert learned(bodies)[:2] == ("2", "3")
        assert (await audited(world, bodies)).ok, (await audited(world, bodies)).lines()
        assert [surveys_sent(world, number) for number in range(3)] == [list(ALL)] * 3
        demand_promises(world)


async def moved(world: World, number: int, word: float, final: bool) -> None:
    """The home is lost, and another comes out of its backup in its place."""
    app, home = world.peers[number], world._home(number)
    app.close()
    file = home.path.with_suffix(".backup")
    await backup(home, file, final=final, evaluate=at_once)
    shutil.rmtree(home.path)
    restore(PeerHome(home.path), file, word)
    world.peers[number] = world._peer(number)


@pytest.mark.parametrize("turn", soaked(4, range(4)))
@pytest.mark.parametrize("sure", [True, False])
async def test_a_restored_home_sends_nothing_more(tmp_path: Path, turn: int, sure: bool) -> None:
    async with members(tmp_path, [1, 1, 0, 1]) as world:
        await go_on(world, until=after(world, turn))
        sent_so_far = surveys_sent(world, 3)
        await moved(world, 3, world.clock() if sure else UNCONFIRMED, final=False)
        await go_on(world)
        bodies = await bodies_of(world)
        assert learned(bodies)[:2] == expected(bodies, world, [1, 1, 0, 1])
        assert surveys_sent(world, 3) == sent_so_far == before(turn + 1)
        (status,) = world.peers[3].status()
        assert status.spent == world.live.manifest.epsilon  # the whole reservation


@pytest.mark.parametrize("turn", soaked(4, range(4)))
async def test_a_home_that_moves_by_a_final_backup_goes_on(tmp_path: Path, turn: int) -> None:
    async with members(tmp_path, [1, 1, 0]) as world:
        await go_on(world, until=after(world, turn))
        await moved(world, 2, world.clock(), final=True)
        await go_on(world)
        bodies = await bodies_of(world)
        assert learned(bodies)[:2] == ("2", "3")
        assert surveys_sent(world, 2) == list(ALL)
        demand_promises(world)


def copied(world: World, number: int, answer: int | None = None) -> int:
    """Another folder with the same home, in which its owner may change the data; its number."""
    world.peers[number].close()
    twin = len(world.peers)
    shutil.copytree(world._home(number).path, world._home(twin).path)
    if answer is not None:
        own_data(world._home(twin).data_path, answer)
    world.routes.append(MemoryRoute(world.live, world.clock))
    world.peers.append(world._peer(twin))
    world.peers[number] = world._peer(number)
    return twin


def by_survey(world: World, number: int) -> dict[int, Packet]:
    return {packet.survey: packet for packet in sent(world, number)}


def share_for_the_seat(world: World, packet: Packet) -> bytes:
    study = world.live.manifest
    written = study.survey(SHARES).parse_written(packet.report)
    info = letter_info(study.study_id, SHARES, packet.token[:TAG_BYTES], AGGREGATOR)
    return Opener(world.live.packet_intake.rules.sealing_key).open(written.letters[0], info)


@pytest.mark.parametrize("when", ["before the first window", "after it"])
async def test_copies_with_the_same_answers_write_the_same_under_other_seals(tmp_path: Path, when: str) -> None:
    """The one whose shares are not on the page falls silent. Both knew the same mask."""
    async with members(tmp_path, [1, 1, 0]) as world:
        table = world.live.manifest.timetable
        at = {"before the first window": table.enrol_closes + 1, "after it": after(world, 0)}
        await go_on(world, until=at[when])
        twin = copied(world, 2)
        await go_on(world)
        bodies = await bodies_of(world)
        assert learned(bodies)[:2] == ("2", "3")
        assert (await audited(world, bodies)).ok, (await audited(world, bodies)).lines()
        one, other = by_survey(world, 2), by_survey(world, twin)
        for survey in one.keys() & other.keys() - {SHARES}:
            assert one[survey] == other[survey]
        assert share_for_the_seat(world, one[SHARES]) == share_for_the_seat(world, other[SHARES])
        assert one[SHARES] != other[SHARES]
        silent, other = sorted((one, other), key=max)
        assert max(silent) == SHARES and other.keys() >= {SHARES, VECTOR, CAME, OPENING}
        demand_one_plaintext(world, 2, twin)


async def test_copies_made_after_the_shares_write_all_that_follows_byte_for_byte(tmp_path: Path) -> None:
    """Their shares, which are on the page, are those of both."""
    async with members(tmp_path, [1, 1, 0]) as world:
        await go_on(world, until=after(world, 1))
        twin = copied(world, 2, answer=1)
        await go_on(world)
        bodies = await bodies_of(world)
        assert learned(bodies)[:2] == ("2", "3")
        one, other = by_survey(world, 2), by_survey(world, twin)
        assert other.keys() == {VECTOR, CAME, OPENING} and all(one[survey] == other[survey] for survey in other)


def demand_one_plaintext(world: World, *homes: int) -> None:
    """Each home by itself kept its promises."""
    for number in homes:
        bodies = {packet.survey: packet.to_bytes() for packet in sent(world, number)}
        assert len(bodies) == len({packet.to_bytes() for packet in sent(world, number)})


async def test_copies_with_other_answers_have_other_keys_and_one_falls_silent(tmp_path: Path) -> None:
    async with members(tmp_path, [1, 1, 1]) as world:
        await go_on(world, until=world.live.manifest.timetable.enrol_closes + 1)
        twin = copied(world, 2, answer=0)
        assert world.peers[twin].status()[0].state is State.ENROLLED
        await go_on(world)
        bodies = await bodies_of(world)
        assert learned(bodies)[:2] == expected(bodies, world, [1, 1, 1, 0])
        packets = [by_survey(world, number) for number in (2, twin)]
        assert packets[0][KEYS] != packets[1][KEYS] and packets[0][KEYS].tag == packets[1][KEYS].tag
        assert sorted(map(len, packets)) == [2, 6]
        silent = min((2, twin), key=lambda number: len(sent(world, number)))
        assert sorted(by_survey(world, silent)) == [KEYS, ROWS]
        missed = [entry.survey for entry in outbox(world, silent) if entry.status is Status.MISSED]
        assert missed == [SHARES, VECTOR, CAME, OPENING]


POINTS = [
    f"{side}-{what}"
    for what in ("commit-of-evaluation", "commit-of-release", "commit-of-attempt", "send-of-packet", "commit-of-answer")
    for side in ("before", "after")
]
LOST = ("after-commit-of-evaluation", "before-commit-of-release")
"""Between them the making of a window was begun and is not done: letters are not written then."""
LEFT = ("after-send-of-packet", "before-commit-of-answer", "after-commit-of-answer")
"""There the packet has left. A death before may draw it a time that is too late, by the chance of its window's end."""


@pytest.mark.parametrize("point", soaked(6, POINTS))
async def test_killed_at_every_place_of_every_round(
    tmp_path: Path, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five members, one a round, are killed there and started again; three are not."""
    answers = [1, 1, 0, 1, 0, 1, 1, 1]
    async with members(tmp_path, answers) as world:
        kills = killer(world, monkeypatch)
        settled = world.live.manifest.timetable.settled
        opens = [settled - 1200.0, *(after(world, turn) for turn in range(4))]
        kills.armed |= {number: (point, since) for number, since in enumerate(opens)}
        await go_on(world, kills=kills)
        assert sorted(kills.deaths) == [(number, point) for number in range(5)]
        bodies = await bodies_of(world)
        demand_promises(world)
        assert learned(bodies)[:2] == expected(bodies, world, answers)
        assert (await audited(world, bodies)).ok, (await audited(world, bodies)).lines()
        for turn in range(5):
            if point in LOST:
                assert surveys_sent(world, turn) == before(turn) + [ROWS] * (turn == 0)
            elif point in LEFT:
                assert set(surveys_sent(world, turn)) >= {*before(turn + 1)}


