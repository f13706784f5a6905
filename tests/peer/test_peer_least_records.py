"""Studies that are meant for members with many records: their number changes nothing that leaves but the vector."""

from __future__ import annotations

from pathlib import Path

import pytest

from anon.protocols.sum.standing import arrangement_of
from anon.protocols.sum.vector import vector_of
from anon.queries.process import Work
from anon.vdaf.binding import sharing_nonce
from anon.wire.packets import Packet, share_info
from peer.data.evaluate import at_once, evaluated
from peer.data.importing import import_rows
from tests.support.fake_aggregator import FakeAggregator, advance, peer, until_closed
from tests.support.packets import packet_in
from tests.support.sums import MOMENTS, countersigned, many, opener, sum_study

NEEDED = 5
TEXT = sum_study(MOMENTS, keys=many(20, "person") + f"least_records = {NEEDED}\n")
NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
ENDLESS = f"SELECT ({NUMBERS}), {{}} FROM person"
COLUMNS = ("day", "age", "sleep", "cups", "tired")


def published(text: str = TEXT) -> FakeAggregator:
    aggregator = FakeAggregator.with_study(text)
    aggregator.publish("tellers", countersigned(aggregator.manifest))
    return aggregator


def holding(folder: Path, records: int) -> None:
    """The data has so many records, and as many rows without a key, which are none."""
    rows = [(day if day < records else None, 30, 8, "some", 1) for day in range(2 * records)]
    import_rows(folder / "data.sqlite", "person", COLUMNS, rows)


def contributed(aggregator: FakeAggregator) -> tuple[int, ...]:
    """The vector of the one packet, from the opened shares of all tellers."""
    study, (body,) = aggregator.manifest, aggregator.sent("packets")
    packet = packet_in(study, aggregator.opened("packets", body))
    assert isinstance(packet, Packet)
    arrangement = arrangement_of(study)
    prio3, context = arrangement.prio3(arrangement.sums[0]), arrangement.context(packet.occasion)
    nonce, begun = sharing_nonce(packet.tag), []
    for place, share in enumerate(packet.shares):
        shown = opener(place).open(share, share_info(packet.occasion, packet.tag, place))
        begun.append(prio3.verify_init(bytes(32), context, place, nonce, packet.report, shown))
    message = prio3.verifier_shares_to_message(context, [share for _, share in begun])
    return tuple(prio3.unshard([prio3.aggregate([prio3.verify_next(state, message)]) for state, _ in begun]))


@pytest.mark.slow
@pytest.mark.parametrize("records", [0, NEEDED - 1, NEEDED])
async def test_no_number_of_records_decides_whether_a_peer_enrols(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: int
) -> None:
    """A hostile query makes the number follow any value, which a refusal would tell uncharged. A yes runs none."""
    aggregator, ran = published(), list[float]()

    async def noted(work: Work, seconds: float) -> bytes:
        ran.append(seconds)
        return await at_once(work, seconds)

    monkeypatch.setattr("tests.support.fake_aggregator.at_once", noted)
    app = peer(tmp_path, aggregator)
    holding(tmp_path, records)
    assert (await app.join(aggregator.invite, aggregator.manifest.epsilon)).study == aggregator.study and ran == []
    await until_closed(app, aggregator)
    assert len(aggregator.enrolments) == 6 and ran == []
    await advance(app, aggregator, aggregator.manifest.surveys[0].window.closes)
    assert ran


@pytest.mark.slow
async def test_data_that_shrinks_after_a_yes_is_sent_as_ever(tmp_path: Path) -> None:
    """Kept, short of the least, and gone altogether: as many packets of the same sizes, at the same charge. Each holds
    the vector of what is there."""
    seen = set()
    for left in (NEEDED, NEEDED - 3, None):
        aggregator, folder = published(), tmp_path / str(left)
        folder.mkdir()
        app = peer(folder, aggregator)
        holding(folder, NEEDED)
        await app.join(aggregator.invite, aggregator.manifest.epsilon)
        await until_closed(app, aggregator)
        (folder / "data.sqlite").unlink()
        if left is not None:
            holding(folder, left)
        await advance(app, aggregator, aggregator.manifest.surveys[0].window.closes)
        (entry,) = app.budget().entries
        seen.add((len(aggregator.accepted), entry.spent, *map(len, aggregator.sent("packets"))))
        there = evaluated(aggregator.manifest, folder / "data.sqlite", 20.0).record
        assert len(there.rows) == (left or 0)
        assert contributed(aggregator) == tuple(vector_of(aggregator.manifest, aggregator.manifest.surveys[0], there))
        app.close()
    ((packets, spent, *sizes),) = seen
    assert (packets, spent, len(sizes)) == (1, aggregator.manifest.epsilon, 1)
