"""Members of the toy `letters` that drop out: the sum is that of those who came, and below the threshold nothing
opens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from attrs import evolve, frozen

from anon.ldp import NanoEpsilon
from anon.protocols.board import BoardEntry, BoardPage
from anon.protocols.contract import Round
from anon.protocols.registry import ProtocolParts
from anon.protocols.resolve import resolve
from anon.sharing.round_document import UnsummedRound, Why
from anon.study.manifest import Manifest
from anon.wire.cbor import decode
from anon.wire.letters import TextAndLetters
from peer.protocols.contract import Correspondence
from peer.rules.letters_words import about_letters
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from peer.run.packets.inputs import PacketInputs
from peer.run.packets.letters import silenced
from peer.store.records import OutboxEntry
from tests.support import letters
from tests.support.letters_study import KEYS as STUDY_KEYS
from tests.support.letters_study import STUDY
from tests.support.letters_world import (
    LETTERS,
    after,
    audited,
    bodies_of,
    due_for,
    go_on,
    learned,
    members,
    outbox,
    spent,
    surveys_sent,
)
from tests.support.protocols import with_toy
from tests.support.tries import soaked
from tests.support.world import World

pytestmark = pytest.mark.slow
KEYS, ROWS, SHARES, VECTOR, CAME, OPENING = range(6)
SENT_UNTIL = {0: [KEYS, ROWS], 1: [KEYS, ROWS, SHARES], 2: [KEYS, ROWS, SHARES, VECTOR]}
"""By the round after which a member goes, what it has sent."""
ANSWERS = [1, 0, 1, 1, 1]


@pytest.mark.parametrize(
    "case", soaked(3, [((0, 1), ("2", "3")), ((0, 2), ("3", "4")), ((1, 2), ("3", "4")), ((2, 2), ("4", "5"))])
)
async def test_two_drop_out_and_the_sum_of_those_who_came_is_right(
    tmp_path: Path, case: tuple[tuple[int, int], tuple[str, str]]
) -> None:
    """The last two, after keys, after shares or after vectors; the shares of a mask outlive whoever cut it."""
    gone, row = case
    async with members(tmp_path, ANSWERS) as world:
        away = {3: after(world, gone[0]), 4: after(world, gone[1])}
        await go_on(world, away=away)
        bodies = await bodies_of(world)
        assert learned(bodies)[:2] == row
        assert (await audited(world, bodies)).ok, (await audited(world, bodies)).lines()
        for number, turn in zip((3, 4), gone, strict=True):
            assert surveys_sent(world, number) == SENT_UNTIL[turn]
        for number in range(len(ANSWERS)):
            assert spent(world, number) == due_for(world, number)


@frozen
class Sessions(letters.Shared):
    """The last two rounds are a session of their own: whoever has shares can open, though it sent no vector."""

    def rounds(self, study: Manifest) -> tuple[Round, ...]:
        first = super().rounds(study)
        return (*first[:3], *(evolve(turn, session=1) for turn in first[3:]))


SESSIONS = ProtocolParts(Sessions(), letters.Peer(), letters.Aggregator())


def sent_packet(survey: int, digest: bytes) -> OutboxEntry:
    return OutboxEntry(survey, survey, NanoEpsilon(0), None, digest, 0.0, 1, Status.DELIVERED, "")


async def test_a_member_that_was_away_writes_again_in_the_next_session(tmp_path: Path) -> None:
    """It misses the vectors, and comes back for the opening: without it too few would open."""
    text = STUDY.replace("least = 3", "least = 4").replace("minimum = 3", "minimum = 4")
    async with members(tmp_path, [1, 1, 0, 1, 1], text, with_toy(SESSIONS)) as world:
        (sentence,) = [line for line in map(str, about_letters(world.live.manifest)) if "sessions" in line]
        assert "5 rounds of letters in 2 sessions" in sentence
        await go_on(world, until=after(world, 1))
        await go_on(world, until=after(world, 2), away={0: 0.0})
        await go_on(world, away={4: 0.0})
        assert surveys_sent(world, 0) == [KEYS, ROWS, SHARES, CAME, OPENING]
        assert learned(await bodies_of(world))[:2] == ("3", "4")


@pytest.mark.parametrize(("keys", "shares", "silent"), [
    (b"own", b"own", []), (b"own", None, [KEYS, SHARES, VECTOR]), (b"own", b"other", LETTERS), (None, b"own", LETTERS),
])  # fmt: skip
def test_a_letter_that_it_did_not_send_ends_all_sessions_of_a_copy(
    keys: bytes | None, shares: bytes | None, silent: Sequence[int]
) -> None:
    """Its own that is not there ends its session alone; but its key is for all of them."""
    tag, study = b"t" * 48, resolve(with_toy(SESSIONS).proposal(STUDY), STUDY_KEYS, now=0)
    entries = {KEYS: keys, SHARES: shares}
    pages = {
        number: BoardPage({survey: {tag: BoardEntry(TextAndLetters(b"", ()), digest)} if digest else {}}, ())
        for number, (survey, digest) in enumerate(entries.items())
    }
    slots = [(slot.slot, row.survey) for slot in study.slots for row in slot.rows]
    inputs = PacketInputs(study, None, None, b"", slots, (), Correspondence(tag, {}, {}, pages))  # type: ignore[arg-type]
    left = [sent_packet(survey, b"own") for survey in LETTERS]
    assert [dict(slots)[slot] for slot in silenced(inputs, left)] == list(silent)


ENDS = {
    "keys": ({0: -1, 1: -1}, 0),
    "shares": ({0: 0, 1: 0}, 1),
    "vectors": ({0: 1, 1: 1}, 2),
    "who came": ({0: 2, 1: 2}, 3),
    "opening": ({0: 3, 1: 3}, 4),
}
"""The members that the study loses, after which round, and the round that ends it."""


async def ended(world: World, name: str) -> int:
    away, turn = ENDS[name]
    settled = float(world.live.manifest.timetable.settled)
    await go_on(world, away={number: after(world, last) if last >= 0 else settled for number, last in away.items()})
    return turn


@pytest.mark.parametrize("name", ENDS)
async def test_below_the_threshold_nothing_opens_wherever_it_ends(tmp_path: Path, name: str) -> None:
    """Four members and three are needed: two that are away end the study, with a sentence for staff and owners."""
    async with members(tmp_path, [1, 0, 1, 1]) as world:
        turn = await ended(world, name)
        assert world.live.state == "ended"
        bodies = await bodies_of(world)
        assert UnsummedRound(world.live.study, turn, Why.TOO_FEW, b"").to_bytes() == bodies["unsummed", 0]
        demand_nothing_opened(world, bodies, turn)
        assert (await audited(world, bodies)).ok, (await audited(world, bodies)).lines()
        assert f"round {turn + 1} has no sum, and the study ends: too few packets" in world.live.ended
        for number in (2, 3):
            assert {letters.ROUND_OF[survey] for survey in surveys_sent(world, number)} == {*range(turn + 1)}
            (own,) = world.peers[number].status()
            assert own.state is State.FINISHED
            assert f"ended after its round {turn + 1}: too few members took part" in own.reason
            assert own.spent == due_for(world, number) == sum(entry.epsilon for entry in outbox(world, number))


def demand_nothing_opened(world: World, bodies: dict[tuple[str, int], bytes], turn: int) -> None:
    """No page after the last, no transcript and no result; the seat tells no mask, and nobody a sum of shares."""
    kinds = [kind for kind, _ in bodies]
    assert kinds.count("page") == turn + 1 and not {"transcript", "rows", "report"} & set(kinds)
    if turn < 3:
        assert "seat" not in kinds
    if turn == 3:
        assert decode(bodies[letters.SEAT], "seat")[1] == letters.NOTHING


async def test_an_audit_finds_an_aggregator_that_goes_on_though_too_few_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(letters.Aggregator, "ends", lambda *_: False)
        async with members(tmp_path, [1, 0, 1, 1]) as world:
            away = dict.fromkeys((0, 1), after(world, 2))
            await go_on(world, until=world.live.rounds[4].window.closes - 1, away=away)
            bodies = await bodies_of(world)
            patch.undo()
            found = {(finding.document, finding.fault) for finding in (await audited(world, bodies)).findings}
            assert ("page 3", "too few wrote, and the study went on") in found


async def test_an_audit_finds_an_aggregator_that_ends_though_enough_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with members(tmp_path, [1, 0, 1, 1]) as world:
        with monkeypatch.context() as patch:
            patch.setattr(letters.Aggregator, "ends", lambda _self, _study, number, _documents: number == 2)
            await go_on(world)
        bodies = await bodies_of(world)
        assert world.live.state == "ended"
        found = {(finding.document, finding.fault) for finding in (await audited(world, bodies)).findings}
        assert ("page 2", "enough wrote, and the study ended") in found
