"""A whole study of one peer against the aggregator in memory."""

from pathlib import Path

import pytest
from village import BINNED, DECLARED, PAPER, Village, advance, peer

from anon.encoding import encode
from peer.records import Status
from peer.session import State


async def to_the_end(app, village: Village) -> None:
    table = village.manifest.timetable
    await app.join(village.invite, village.manifest.epsilon)
    await advance(app, village, table.enrol_closes - 1)
    village.crowd(5)
    village.clock.seconds = table.enrol_closes
    village.close()
    turns = sorted({(s.window.closes, s.round) for s in village.manifest.surveys if s.kind != "histogram"})
    for closes, turn in turns:
        await advance(app, village, closes)
        final = turn == turns[-1][1]
        village.publish("edges" if final else "thresholds", counts(village, turn, final), 0 if final else turn + 1)
    await advance(app, village, max(s.window.closes for s in village.manifest.surveys))
    village.transcribe()
    assert await advance(app, village) is None


def counts(village: Village, turn: int, final: bool) -> bytes:
    found = {}
    for survey in village.manifest.surveys:
        if survey.kind != "histogram" and survey.round == turn:
            found[survey.features[0]] = [40, [5] * survey.m] if survey.kind == "quantile" else [40, 30]
    return encode([1, village.study, found] if final else [1, village.study, turn + 1, found])


@pytest.mark.parametrize(("text", "packets"), [(DECLARED, 1), (BINNED, 1), (PAPER, 3)])
async def test_every_slot_is_sent_once_and_found_in_the_transcript(tmp_path: Path, text: str, packets: int) -> None:
    village = Village.found(text)
    app = peer(tmp_path, village)
    await to_the_end(app, village)
    (status,) = app.status()
    assert status.state is State.FINISHED, status.reason
    assert [slot.status for slot in status.slots] == [Status.INCLUDED] * packets
    assert len(village.sent("packets")) == packets
    assert status.reserved == 0
    assert status.spent == sum(slot.epsilon for slot in status.slots) > 0
    assert all(slot.sealed is None and slot.digest is None for slot in status.slots)
    assert app.store.study(village.study).secrets is None
