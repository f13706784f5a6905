"""The toy `letters` over loopback, between separate apps and between programs, with the audit of an export at its
end."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from aggregator.audit import audit
from aggregator.audit.exporting import export_study
from anon.protocols.board import read_page
from anon.sharing.round_document import UnsummedRound, Why
from anon.wire.cbor import decode
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from tests.support import letters
from tests.support.course import course, live_on
from tests.support.letters_processes import LettersStudy, by_programs
from tests.support.letters_world import PROTOCOLS, STUDY, learned
from tests.support.world import published

pytestmark = pytest.mark.slow


async def test_a_whole_study_over_loopback_is_audited(tmp_path: Path) -> None:
    async with course(tmp_path, "ada", "grace", "emmy", "sofia", protocols=PROTOCOLS) as (clock, people):
        host, *guests = people
        manifest = await host.aggregator.create_study(PROTOCOLS.proposal(STUDY))
        invites = await host.aggregator.create_invites(manifest.study_id, len(guests), host.address)
        for guest, invite in zip(guests, invites, strict=True):
            sheet = await guest.peer.look(invite)
            assert sheet.epsilon == manifest.epsilon and sheet.packets == 6 and not sheet.objections
            await guest.peer.join(invite, sheet.epsilon)
        await live_on(clock, people, manifest.timetable.ends + 8 * 86400.0)
        for guest in guests:
            (status,) = [one for one in guest.peer.status() if one.study == manifest.study_id]
            assert (status.state, [slot.status for slot in status.slots]) == (State.FINISHED, [Status.INCLUDED] * 6)
            assert status.spent == manifest.epsilon
        live = host.aggregator.study(manifest.study_id)
        assert learned(await published(live))[:2] == ("3", "3")
        await export_study(live, tmp_path / "out")
        result = audit(tmp_path / "out", protocols=PROTOCOLS)
        assert result.ok and result.packets == 18, result.lines()


ANSWERS = (1, 0, 1, 1, 1, 1, 1, 0)
KILLED, MOVED, RESTORED = 2, 3, 4
BEFORE_SHARES, BEFORE_DIGESTS = 5, 6
"""Members that go for good, by the round that they do not see any more."""
TO_THE_END = (0, 1, KILLED, MOVED, 7)


def demand_audited(figures: dict[str, Any]) -> None:
    """All was checked but the seat's document, which nobody can make again: the command's exit code says so."""
    (unchecked,) = figures["not_checked"]
    assert unchecked.startswith("seat 3: the aggregator made it from secrets of its own")
    assert (figures["findings"], figures["code"], figures["key_checked"]) == ([], 9, True), figures


@pytest.mark.soak
@pytest.mark.process
@pytest.mark.timeout(900)
def test_programs_that_are_killed_moved_and_lost_have_the_sum_of_those_who_came(tmp_path: Path) -> None:
    """Two members go for good. One home is killed, and one moves by a final backup: both go on.

    A home out of another backup sends nothing more. The first half of the members hear each other, and nobody else.
    """

    async def live(study: LettersStudy) -> None:
        await study.after(0)
        first = study.writers()[: len(ANSWERS) // 2]
        await study.lose(BEFORE_SHARES)
        await study.after(1)
        await study.end(KILLED, signal.SIGKILL)
        await study.run(KILLED)
        assert "1 studies release nothing more" in await study.move(RESTORED)
        await study.after(2)
        await study.lose(BEFORE_DIGESTS)
        assert "release nothing" not in await study.move(MOVED, "--final")
        await study.to_the_end()
        came = [ANSWERS[number] for number in (*TO_THE_END, BEFORE_DIGESTS)]
        assert learned(study.documents())[:2] == (str(sum(came)), str(len(came)))
        whole = study.manifest.epsilon
        for number in TO_THE_END:
            assert study.stands(number) == ("finished", ["included"] * 6, whole)
        assert study.stands(BEFORE_SHARES)[1] == ["delivered"] * 2
        assert study.stands(BEFORE_DIGESTS)[1] == ["delivered"] * 4
        assert study.stands(RESTORED) == ("finished", ["included"] * 3 + ["missed"] * 3, whole)
        for number, heard in enumerate(await study.heard()):
            others = {*first} - {number, BEFORE_SHARES} if number in {*first} & {*TO_THE_END} else ()
            assert len({*heard}) == len(heard) == len(others)
        figures = await study.audited()
        demand_audited(figures)
        assert (figures["packets"], figures["model_checked"]) == (5 * 6 + 2 + 4 + 3, True)

    by_programs(tmp_path, ANSWERS, live)


@pytest.mark.soak
@pytest.mark.process
@pytest.mark.timeout(900)
def test_programs_of_too_few_open_nothing(tmp_path: Path) -> None:
    """All four numbers are there under their masks. Two members alone say who came, and three are needed."""

    async def live(study: LettersStudy) -> None:
        await study.after(2)
        await study.lose(0)
        await study.lose(1)
        await study.to_the_end()
        bodies = study.documents()
        assert len(read_page(study.manifest, 2, bodies["page", 2]).texts(letters.VECTOR)) == 4
        assert decode(bodies[letters.SEAT], "seat")[1] == letters.NOTHING
        assert bodies["unsummed", 0] == UnsummedRound(study.manifest.study_id, 3, Why.TOO_FEW, b"").to_bytes()
        assert not {("page", 4), letters.RESULT} & bodies.keys()
        assert [study.stands(number)[0] for number in range(4)] == ["checked"] * 2 + ["finished"] * 2
        assert await study.heard() == [[]] * 4
        demand_audited(await study.audited())

    by_programs(tmp_path, (1, 0, 1, 1), live)
