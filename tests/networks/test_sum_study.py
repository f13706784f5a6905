"""A whole study of exact sums in memory: consent, ledger, packets of three members, two tellers, model and its
check."""

from __future__ import annotations

from pathlib import Path

import pytest

from aggregator.protocols.sum.part import SumPart
from anon.protocols.charge import Budget, Measure, Unit
from anon.protocols.sum.standing import read_sum
from anon.sharing.round_document import RoundSums, SlotSum
from peer.app import PeerApp
from peer.data.importing import import_rows
from tests.support.fake_aggregator import peer
from tests.support.protocols import read_model
from tests.support.sum_lives import begun, together
from tests.support.sums import MARGINALS, MOMENTS, TABLES
from tests.support.tellers import World

ZCDP = Budget(Measure.ZCDP, Unit.PERSON)
IF = (
    "at least one of the tellers “clinic” and “students” keeps its shares to itself, "
    "adds its noise and signs one list only"
)
ROWS = [(30, 8, "many", 1), (70, 5, "none", 0), (10, 12, "some", 1)]


async def joined(folder: Path, world: World, design: str) -> list[PeerApp]:
    peers = []
    for number, (age, sleep, cups, tired) in enumerate(ROWS):
        (folder / f"peer {number}").mkdir()
        app = peer(folder / f"peer {number}", world.aggregator)
        row = (age, sleep, cups, tired)
        import_rows(folder / f"peer {number}" / "data.sqlite", "person", ("age", "sleep", "cups", "tired"), [row])
        consent = await app.join(world.aggregator.invite, world.aggregator.manifest.epsilon)
        assert (consent.charge.budget, consent.charge.condition) == (ZCDP, IF)
        assert (app.budget().held, app.budget().held_of(ZCDP)) == (0, world.aggregator.manifest.epsilon)
        peers.append(app)
    return peers


@pytest.mark.parametrize("design", [TABLES, MARGINALS, MOMENTS])
async def test_from_consent_to_a_model_that_anybody_checks(design: str, tmp_path: Path) -> None:
    world = begun(tmp_path, design)
    aggregator, study = world.aggregator, world.aggregator.manifest
    peers = await joined(tmp_path, world, design)
    await together(peers, aggregator, study.timetable.enrol_closes - 1)
    assert len(aggregator.enrolments) == len(ROWS)
    aggregator.clock.seconds = study.timetable.enrol_closes
    aggregator.close()
    await together(peers, aggregator, study.surveys[0].window.closes)
    packets = list(aggregator.accepted.values())
    assert len(packets) == len(ROWS)
    world.join_up()
    tags = world.settle(world.admit(packets))
    assert tags == frozenset(packet.tag for packet in packets)
    listed = world.list_of(tags)
    signatures = world.signatures(listed)
    body = RoundSums(
        study.study_id, 0, (SlotSum(0, listed, tuple(signatures), tuple(world.noisy(signatures))),)
    ).to_bytes()
    found = read_sum(study, 0, body)
    assert found.accepted == len(ROWS) and len(found.values) == study.surveys[0].m
    part = SumPart()
    assert part.check_sums(study, 0, body, len(tags), {0: sorted(tags)}) == {0: 0}
    model = part.learn(study, {("sums", 0): body}, {}).model
    assert read_model(model.to_json()) == model
    for app in peers:
        (entry,) = app.budget().entries
        assert (entry.spent, entry.reserved, entry.condition) == (study.epsilon, 0, IF)
