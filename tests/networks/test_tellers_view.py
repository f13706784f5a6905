"""The view of an aggregator and of two tellers: no weights and no numbers of records are in it.

A study is lived twice with the same random bytes, and with other records, and more or fewer of them. All that comes to
the aggregator has the same lengths and times. The helper's shares are the same, and the leader's are what is left of
the vectors: each of them alone is uniform.

The bytes that cut a vector are drawn ones plus a mask of the answers (`SlotRandomness`). They are uniform for any
answers, but not the same for two. So here they are the drawn ones alone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from attrs import define, evolve

from anon.protocols.charge import Measure, Unit
from anon.protocols.sum.vector import vector_of
from anon.vdaf.field import Field
from anon.vdaf.prio3 import Prio3
from peer.data.evaluate import evaluated
from peer.data.importing import import_rows
from peer.release import SlotRandomness
from peer.rules.limits import BudgetLimit
from tests.support import draws
from tests.support.fake_aggregator import peer
from tests.support.masks_study import Rows
from tests.support.sum_lives import begun, together
from tests.support.sum_subjects import AVERAGING, RECORDS, other, party
from tests.support.sums import many
from tests.support.tellers import World
from tests.support.views import found, held, kept, of_integers

pytestmark = pytest.mark.slow
MEMBERS, SECONDS = 5, 60.0
COLUMNS = ("day", "age", "sleep", "cups", "tired")


@define
class Told:
    """A study of weights as it came to its aggregator and to two tellers. `outputs`: by teller its shares, by tag."""

    posts: list[tuple[str, int, float]]
    enrolments: list[bytes]
    outputs: list[dict[bytes, list[int]]]
    there: dict[str, bytes]
    vectors: list[list[int]]
    secrets: dict[str, bytes]
    field: Field

    @property
    def wholes(self) -> list[list[int]]:
        """The vectors that both shares of each tag make, in order."""
        leader, helper = self.outputs
        wholes = [self.field.add(share, helper[tag]) for tag, share in leader.items()]
        half, modulus = self.field.modulus // 2, self.field.modulus
        return sorted([entry - modulus * (entry > half) for entry in whole] for whole in wholes)


@pytest.fixture(autouse=True)
def alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors are cut by the bytes that were drawn at joining."""
    monkeypatch.setattr(SlotRandomness, "__init__", lambda self, stored, *_: setattr(self, "_left", stored))


async def told(folder: Path, rows: Sequence[Rows]) -> Told:
    """The study with these records, until the tellers have checked all packets. All draws are those of any other."""
    draws.begin("tellers")
    world = begun(folder, f'kind = "averaging"\n{AVERAGING}', many(RECORDS))
    aggregator, study = world.aggregator, world.aggregator.manifest
    peers = []
    for number, own in enumerate(rows):
        (home := folder / f"peer {number}").mkdir()
        peers.append(peer(home, aggregator))
        limit = BudgetLimit(Measure.ZCDP, Unit.RECORD, study.epsilon, study.epsilon)
        peers[-1].set_policy(evolve(peers[-1].policy(), limits=(*peers[-1].policy().limits, limit)))
        import_rows(home / "data.sqlite", "person", COLUMNS, [(*row[:3], "some", *row[3:]) for row in own])
        await peers[-1].join(aggregator.invite, study.epsilon)
    await together(peers, aggregator, study.timetable.enrol_closes)
    aggregator.close()
    await together(peers, aggregator, study.surveys[0].window.closes)
    world.join_up()
    assert len(world.settle(world.admit(list(aggregator.accepted.values())))) == len(rows)
    return _told(world, folder)


def _told(world: World, folder: Path) -> Told:
    aggregator, study = world.aggregator, world.aggregator.manifest
    (asked,) = world.arrangement.sums
    shares = world.arrangement.prio3(asked).circuit.field
    outputs, there = [], dict[str, bytes]()
    for number in range(len(world.tellers)):
        there |= {f"teller {number}, {place}": value for place, value in held(folder / f"{number}").items()}
        with closing(sqlite3.connect(folder / f"{number}" / "teller.sqlite")) as store:
            rows = store.execute("SELECT tag, output FROM shares").fetchall()
        outputs.append({tag: shares.decode(output, study.surveys[0].m, "output") for tag, output in rows})
    there |= {f"{number}": aggregator.opened(what, body) for number, (what, body, _at) in enumerate(aggregator.posts)}
    vectors, secrets = [], dict[str, bytes]()
    for home in sorted(folder.glob("peer *")):
        record = evaluated(study, home / "data.sqlite", SECONDS).record
        vectors.append([*vector_of(study, study.surveys[0], record)])
        if record.rows:
            secrets |= kept(home.name, study, study.surveys[0], record, b"")
            secrets |= of_integers(f"{home.name}'s vector", vectors[-1])
    return Told(
        [(what, len(body), at) for what, body, at in aggregator.posts],
        [aggregator.opened("enrol", body) for body in aggregator.sent("enrol")],
        outputs, there, sorted(vectors), secrets, shares,
    )  # fmt: skip


async def test_other_records_change_nothing_but_the_leaders_shares(tmp_path: Path) -> None:
    one = await told(tmp_path / "one", [party(number) for number in range(MEMBERS)])
    two = await told(tmp_path / "two", [other(number) for number in range(MEMBERS)])
    assert one.posts == two.posts and one.enrolments == two.enrolments
    assert one.outputs[1] == two.outputs[1] and len(one.outputs[1]) == MEMBERS
    entries = [entry for share in one.outputs[1].values() for entry in share]
    assert len({*entries}) == len(entries)
    assert one.vectors != two.vectors and one.wholes == one.vectors and two.wholes == two.vectors
    for life in (one, two):
        assert found(life.there, life.secrets) == []


async def test_a_share_that_hides_nothing_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The helper's shares are zeros, so that the leader has every vector; the aggregator still has none."""
    monkeypatch.setattr(Prio3, "_measurement", lambda self, *_: [0] * self.circuit.length)
    life = await told(tmp_path, [party(number) for number in range(MEMBERS)])
    there = found(life.there, life.secrets)
    assert len({name for name, _ in there}) == MEMBERS
    assert {place.partition(",")[0] for _, place in there} == {"teller 0"}
