"""The store grows alike whatever the values are. A long text once took pages more than a short one: on a disk with one
page left, whether packets came was decided by the owner's data."""

from __future__ import annotations

from pathlib import Path

import pytest

from peer.data.evaluate import answers_of, at_once, missing, snapshot_of
from peer.data.importing import import_rows
from peer.store.records import AnsweringStudy, DecidedStudy, Study
from tests.support.clock import Clock
from tests.support.fake_aggregator import PAPER, FakeAggregator, advance, peer

LONG = "\U00020000" * 390  # a letter of four bytes
TEXT = PAPER.replace('"many"', f'"{LONG}"').replace("positive = [1]", f'positive = [1, "{LONG}"]')
VALUES = [
    (30, LONG, LONG),
    (30, "none", 0),
    (None, None, None),
    (2.5e300, "no category", "no label"),
    (0.1, "some", 1.0),
]


async def answered(folder: Path, row: tuple[object, ...]) -> tuple[Study, int, int]:
    """A study that was evaluated over this row; the pages of the store at most, and the bytes of its file."""
    aggregator = FakeAggregator.with_study(TEXT, Clock())
    app = peer(folder, aggregator)
    import_rows(app._home.data_path, "person", ("age", "cups", "tired"), [row])  # type: ignore[list-item]
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await advance(app, aggregator, aggregator.manifest.timetable.enrol_closes - 1)
    aggregator.crowd(4)
    aggregator.clock.seconds = aggregator.manifest.timetable.enrol_closes
    aggregator.close()
    while not isinstance(study := app.store.study(aggregator.study), (AnsweringStudy, DecidedStudy)):
        aggregator.clock.seconds = max(aggregator.clock.seconds, await app.step(aggregator.study) or 0.0)
    (pages,) = app.store._connection.execute("PRAGMA page_count").fetchone()
    app.close()
    return study, pages, app._home.store_path.stat().st_size


@pytest.mark.slow
async def test_the_store_takes_as_much_room_for_every_record(tmp_path: Path) -> None:
    sizes = {(await answered(tmp_path / str(number), row))[1:] for number, row in enumerate(VALUES)}
    assert len(sizes) == 1


@pytest.mark.parametrize("row", VALUES)
async def test_stored_answers_are_as_long_for_every_record(tmp_path: Path, row: tuple[object, ...]) -> None:
    manifest = FakeAggregator.with_study(TEXT).manifest
    import_rows(tmp_path / "data.sqlite", "person", ("age", "cups", "tired"), [row])  # type: ignore[list-item]
    written = await answers_of(at_once, manifest, tmp_path / "data.sqlite", 20.0)
    assert len(written) == len(missing(manifest))
    age, cups, tired = row
    snapshot = snapshot_of(manifest, written)
    assert snapshot.values == {"age": age, "cups": cups if cups in (LONG, "none", "some") else None}
    assert snapshot.label == (tired if tired == LONG or isinstance(tired, (int, float)) else None)
