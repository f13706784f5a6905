"""A whole study in memory in which five members hold many records each: packets, two tellers, sum, model and its
check."""

from __future__ import annotations

from math import sqrt
from pathlib import Path
from random import Random

import pytest
from attrs import evolve

from aggregator.protocols.sum.part import SumPart
from anon.errors import Refused
from anon.ldp import NANO
from anon.protocols.charge import Budget, Measure, Unit
from anon.protocols.models.linear import LinearModel
from anon.protocols.sum.standing import arrangement_of, read_sum
from anon.protocols.sum.vector import vector_of
from anon.queries.answers import Request
from anon.queries.process import Work
from anon.sharing.round_document import RoundSums, SlotSum
from peer.app import PeerApp
from peer.data.evaluate import at_once, evaluated
from peer.data.importing import import_rows
from peer.rules.limits import BudgetLimit
from tests.support.fake_aggregator import peer
from tests.support.protocols import read_model
from tests.support.sum_lives import begun, together
from tests.support.sums import MOMENTS, many
from tests.support.tellers import World

BY_RECORD = Budget(Measure.ZCDP, Unit.RECORD)
MOST, COLUMNS = 400, ("day", "age", "sleep", "cups", "tired")
Rows = list[tuple[object, ...]]


def rows_of(number: int) -> Rows:
    """The last member has more records than are taken; the first but one has strange values; the first has none."""
    spring = Random(number)
    if number == 0:
        return []
    if number == 1:
        strange = [None, "text", float("inf"), -1e300, "", 5]
        return [(day, value, value, "some", value) for day, value in enumerate(strange)]
    days = range(MOST + 25 if number == 4 else 300)
    found: Rows = []
    for day in days:
        sleep = spring.uniform(2, 12)
        found.append((day, spring.uniform(0, 100), sleep, "some", int(sleep < 7)))
    return found


async def joined(folder: Path, world: World) -> list[PeerApp]:
    peers = []
    for number in range(5):
        home = folder / f"peer {number}"
        home.mkdir()
        app = peer(home, world.aggregator)
        import_rows(home / "data.sqlite", "person", COLUMNS, rows_of(number))
        epsilon = world.aggregator.manifest.epsilon
        if number == 0:
            with pytest.raises(Refused, match="record"):  # the owner has set no limit of this budget
                await app.join(world.aggregator.invite, epsilon)
        limit = BudgetLimit(Measure.ZCDP, Unit.RECORD, NANO, NANO)
        app.set_policy(evolve(app.policy(), limits=(*app.policy().limits, limit)))
        consent = await app.join(world.aggregator.invite, epsilon)
        assert consent.charge.budget == BY_RECORD and app.budget().held_of(BY_RECORD) == epsilon
        peers.append(app)
    return peers


@pytest.mark.slow
async def test_five_members_of_many_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[bytes] = []

    async def watched(work: Work, seconds: float) -> bytes:
        if work.foreign:
            seeds.append(bytes.fromhex(Request.from_bytes(work.told).seed))
        return await at_once(work, seconds)

    monkeypatch.setattr("tests.support.fake_aggregator.at_once", watched)
    world = begun(tmp_path, MOMENTS, many(MOST))
    aggregator, study = world.aggregator, world.aggregator.manifest
    peers = await joined(tmp_path, world)
    await together(peers, aggregator, study.timetable.enrol_closes - 1)
    assert len(aggregator.enrolments) == 5
    aggregator.clock.seconds = study.timetable.enrol_closes
    aggregator.close()
    await together(peers, aggregator, study.surveys[0].window.closes)
    packets = list(aggregator.accepted.values())
    assert len(set(seeds)) == 5 and {*map(len, seeds)} == {32}
    assert len(packets) == 5 and len({len(packet.to_bytes()) for packet in packets}) == 1
    world.join_up()
    tags = world.settle(world.admit(packets))
    listed = world.list_of(tags)
    signatures = world.signatures(listed)
    body = RoundSums(
        study.study_id, 0, (SlotSum(0, listed, tuple(signatures), tuple(world.noisy(signatures))),)
    ).to_bytes()
    found = read_sum(study, 0, body)
    assert found.accepted == 5
    deviation = sqrt(2 * arrangement_of(study).sums[0].sigma_squared)
    expected = 16 * 16 * (6 + 300 + 300 + MOST)  # the constant's square, of each record that counts
    assert abs(found.values[0] - expected) < 8 * deviation < expected / 2
    part = SumPart()
    assert part.check_sums(study, 0, body, len(tags), {0: sorted(tags)}) == {0: 0}
    model = part.learn(study, {("sums", 0): body}, {}).model
    assert isinstance(model, LinearModel) and read_model(model.to_json()) == model
    for app in peers:
        (entry,) = app.budget().entries
        assert (entry.spent, entry.reserved, entry.unit) == (study.epsilon, 0, Unit.RECORD)


def test_records_of_a_member_are_drawn_alike_whenever_they_are_evaluated(tmp_path: Path) -> None:
    world = begun(tmp_path, MOMENTS, many(MOST))
    study, file = world.aggregator.manifest, tmp_path / "data.sqlite"
    import_rows(file, "person", COLUMNS, rows_of(4))
    first, again, other = (evaluated(study, file, 20.0, seed).record for seed in (b"one", b"one", b"two"))
    assert len(first.rows) == MOST and first == again != other
    vectors = [vector_of(study, study.surveys[0], one) for one in (first, other)]
    assert vectors[0][0] == vectors[1][0] == 256 * MOST and vectors[0] != vectors[1]
