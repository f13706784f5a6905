"""No data, and no time that work on data takes, change what members of the toy `letters` send, when, or what it
costs."""

from __future__ import annotations

from pathlib import Path

import pytest

from anon.queries.process import Work
from peer.data.evaluate import Evaluate, at_once
from peer.data.importing import import_file
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from tests.networks.test_letters_lives import Killer, LivingWorld, RoughRoute, Seen, joins, seen_of
from tests.support import letters
from tests.support.letters_world import (
    PROTOCOLS,
    STUDY,
    audited,
    bodies_of,
    demand_promises,
    go_on,
    learned,
    members,
    own_data,
    spent,
)
from tests.support.world import World, in_memory

pytestmark = pytest.mark.slow
TABLES = [
    None,
    "age,cups,tired\nmany,,\n",
    "age,cups,tired\n1e300,x,1\n",
    "age,cups,tired\n,,\n",
    "other\n1\n",
    "age,cups,tired\n33,a,0\n",
    "age,cups,tired\n33,a," + "9" * 1000 + "\n",
    "age,cups,tired\n33,a,1\n33,a,1\n",
]
"""No data, a text, a number far outside, columns of nothing, another table, an ordinary one, a long one, two rows."""


async def test_no_data_change_what_members_send_or_spend(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "home", STUDY, protocols=PROTOCOLS) as world:
        await world.settle_in(len(TABLES))
        for number, text in enumerate(TABLES):
            _table(world, tmp_path / f"{number}", number, text)
        await go_on(world)
        sent = [[len(one.body or b"") for one in route.packets()] for route in world.routes]
        assert {tuple(lengths) for lengths in sent} == {(sent[0][0],) * 6}
        for app in world.peers:
            (status,) = app.status()
            assert (status.state, status.spent) == (State.FINISHED, world.live.manifest.epsilon)
            assert [slot.status for slot in status.slots] == [Status.INCLUDED] * 6
        bodies = await bodies_of(world)
        assert learned(bodies)[1] == str(len(TABLES)) and (await audited(world, bodies)).ok
        demand_promises(world)


def _table(world: World, folder: Path, number: int, text: str | None) -> None:
    if text is not None:
        (table := folder / "person.csv").parent.mkdir()
        table.write_text(text, encoding="utf-8")
        import_file(world._home(number).data_path, table, None, "replace", lambda _rows: None)


def late(queries: bool, making: bool) -> Evaluate:
    """Work whose result is not there at its deadline."""

    async def evaluate(work: Work, seconds: float) -> bytes:
        return b"" if (queries if work.foreign else making) else await at_once(work, seconds)

    return evaluate


async def _seen(folder: Path, evaluate: Evaluate, row: tuple[str, str], seed: int = 7) -> list[Seen]:
    async with in_memory(folder / "home", STUDY, protocols=PROTOCOLS) as made:
        world = LivingWorld(made.app, made.live, made.clock, made.invites, PROTOCOLS, seed)
        world.evaluates[0] = evaluate
        for number in range(3):
            await joins(world, number)
            assert isinstance(world.routes[number], RoughRoute)
            own_data(world._home(number).data_path, 1)
        await go_on(world)
        bodies = await bodies_of(world)
        assert learned(bodies)[:2] == row and (await audited(world, bodies)).ok
        demand_promises(world)
        return [seen_of(world, number, Killer(world.clock)) for number in range(3)]


async def test_work_that_is_late_changes_what_is_said_and_nothing_that_is_seen(tmp_path: Path) -> None:
    """The member counts as if its value were missing; it writes all letters at the same times."""
    timely = await _seen(tmp_path / "timely", at_once, ("3", "3"))
    assert [len(seen[1]) for seen in timely] == [6] * 3
    for name, queries, making in (("queries", True, False), ("making", False, True), ("both", True, True)):
        assert await _seen(tmp_path / name, late(queries, making), ("2", "3")) == timely, name


async def test_whoever_reads_no_record_in_a_round_is_shown_none_and_pays_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first tag of the board alone adds its number; the others send the masks of nothing."""
    writes = letters.Peer.letters

    def reads(_self, _study, survey, tag, pages) -> bool:
        return survey.survey == letters.VECTOR and tag == letters.members(pages)[0]

    def says(self, study, survey, record, known, documents, random_bytes):
        if survey.survey == letters.VECTOR:
            assert (record is None) == (known.tag != letters.members(known.pages)[0])
            if record is None:
                mask, second, *_ = letters._drawn(known)
                return letters.OpenShares(letters.spelled(mask + second), ())
        return writes(self, study, survey, record, known, documents, random_bytes)

    monkeypatch.setattr(letters.Peer, "reads", reads)
    monkeypatch.setattr(letters.Peer, "letters", says)
    async with members(tmp_path, [1, 1, 1]) as world:
        await go_on(world)
        assert learned(await bodies_of(world))[:2] == ("1", "3")
        rows, vector = (int(world.live.manifest.survey(survey).epsilon) for survey in (letters.ROWS, letters.VECTOR))
        assert sorted(spent(world, number) for number in range(3)) == [rows, rows, rows + vector]
        lengths = [[len(one.body or b"") for one in route.packets()] for route in world.routes]
        assert lengths[0] == lengths[1] == lengths[2]
