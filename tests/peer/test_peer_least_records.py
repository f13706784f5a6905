"""Studies that take only members with many records: counted in the child before a yes, and never after it."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from anon.errors import Refused
from anon.protocols.sum.standing import arrangement_of
from anon.queries.process import Work
from anon.vdaf.binding import sharing_nonce
from anon.wire.packets import Packet, share_info
from peer.app import PeerApp
from peer.data.evaluate import LOOK_SECONDS, at_once, evaluated
from peer.data.importing import import_rows
from peer.protocols.sum.part import vector_of
from peer.rules.consent import Policy
from peer.store.home import PeerHome
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


def untouched(app: PeerApp, aggregator: FakeAggregator) -> bool:
    """Nothing was stored or sent."""
    return (app.status(), app.budget().entries, aggregator.posts) == ([], (), [])


async def test_an_owner_with_too_few_records_does_not_join_and_one_with_enough_does(tmp_path: Path) -> None:
    aggregator = published()
    app = peer(tmp_path, aggregator)
    asked = aggregator.manifest.epsilon
    for records in (0, NEEDED - 2, NEEDED - 1):
        holding(tmp_path, records)
        with pytest.raises(Refused) as refused:
            await app.join(aggregator.invite, asked)
        assert str(refused.value) == (
            f"not joined: it takes only members with at least {NEEDED} records, and finds {records} of yours; import "
            "more data, or decline"
        )
        assert untouched(app, aggregator)
    holding(tmp_path, NEEDED)
    assert (await app.join(aggregator.invite, asked)).study == aggregator.study
    assert len(app.status()) == 1


@pytest.mark.parametrize(("least", "counts"), [(1, []), (2, [LOOK_SECONDS])])
async def test_records_are_counted_where_a_study_needs_more_than_one(
    tmp_path: Path, least: int, counts: list[float]
) -> None:
    """Elsewhere a yes runs no query. The count is foreign work, which a child does, for exactly its time."""
    aggregator, taken = published(TEXT.replace("least_records = 5", f"least_records = {least}")), list[float]()

    async def noted(work: Work, seconds: float) -> bytes:
        assert work.foreign
        taken.append(seconds)
        return await at_once(work, seconds)

    app = peer(tmp_path, aggregator)
    app._tools = evolve(app._tools, evaluate=noted)
    holding(tmp_path, 2)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    assert taken == counts


async def test_hostile_queries_of_a_count_run_in_the_child_until_its_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Endless queries, on the real clock. The loop goes on meanwhile, and the yes ends at its time."""
    text, seconds, ticks = TEXT, 1.0, list[float]()
    for name in ("age", "sleep", "tired"):
        text = text.replace(f"SELECT day, {name} FROM person", ENDLESS.format(name))
    aggregator = published(text)

    def forbidden(*_given: Any) -> bytes:
        raise AssertionError("a query ran beside the keys")

    async def ticking() -> None:
        while True:
            ticks.append(time.monotonic())
            await asyncio.sleep(0.02)

    monkeypatch.setattr("peer.data.evaluate.LOOK_SECONDS", seconds)
    monkeypatch.setattr("anon.queries.process._here", forbidden)
    holding(tmp_path, NEEDED)
    app = PeerApp(PeerHome(tmp_path), lambda: aggregator, aggregator.clock, os.urandom, policy=Policy(minimum_cohort=3))
    await app.manifest(aggregator.invite)
    beside, began = asyncio.create_task(ticking()), time.monotonic()
    with pytest.raises(Refused, match="import"):
        await app.join(aggregator.invite, aggregator.manifest.epsilon)
    assert time.monotonic() - began >= seconds
    assert len([at for at in ticks if began < at < began + seconds]) > 10, "the loop stood still"
    beside.cancel()
    assert untouched(app, aggregator)


async def test_a_count_that_never_came_is_no_count_of_none(tmp_path: Path) -> None:
    aggregator = published()

    async def dead(_work: Work, _seconds: float) -> bytes:
        return b""

    app = peer(tmp_path, aggregator)
    app._tools = evolve(app._tools, evaluate=dead)
    holding(tmp_path, NEEDED)
    with pytest.raises(Refused, match="too much time or memory to count your records; import fewer rows"):
        await app.join(aggregator.invite, aggregator.manifest.epsilon)
    assert untouched(app, aggregator)


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
