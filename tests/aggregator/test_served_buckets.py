"""An aggregator whose study's documents are in buckets: what it stores, serves, keeps through restarts, and erases."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from aggregator.network import http
from aggregator.rules.lifecycle import Phase
from aggregator.study.bucketing import publish_in_buckets, roster_buckets
from anon.route import DirectRoute
from anon.transparency import buckets
from anon.transparency.bucketed import digests_of, read_packets_bucket, read_transcript
from anon.transparency.buckets import parse_bucket, parse_bucket_document
from anon.transparency.documents import find
from tests.support.clock import Clock
from tests.support.world import World, begin, in_memory, make_app, sealed, study_text


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six members have two buckets."""
    monkeypatch.setattr(buckets, "THRESHOLD", 4)
    monkeypatch.setattr(buckets, "MEAN", 2)


@asynccontextmanager
async def served(world: World) -> AsyncIterator[tuple[DirectRoute, str]]:
    runner, port = await http.start({world.live.study: world.live}, "127.0.0.1", 0)
    try:
        yield DirectRoute(), f"127.0.0.1:{port}"
    finally:
        await runner.cleanup()


@pytest.mark.slow
async def test_buckets_over_http_lead_to_the_signed_root(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "home", study_text()) as world:
        await world.collected(6)
        await world.go_to(world.closes)
        live = world.live
        numbers = {one.head.kind: one.head.number for one in live.chain}
        assert live.rostered == 6 and sum((await live.accepted()).values()) == 6
        async with served(world) as (route, address):

            async def asked(what: str) -> tuple[int, bytes]:
                answer = await route.get(address, f"/v1/{live.study.hex()}/{what}", 10**6)
                return answer.status, answer.body

            shown = 0
            for kind in ("roster", "credentials", "transcript"):
                number = numbers[kind]
                document = parse_bucket_document((await asked(f"documents/{number}"))[1], live.study, kind, 0)
                assert (document.count, document.buckets) == (6, 2)
                for bucket in range(2):
                    status, sent = await asked(f"buckets/{number}/{bucket}")
                    body = parse_bucket(sent, document, bucket).body
                    content = (await asked(f"contents/{number}/{bucket}"))[1]
                    assert status == 200
                    if kind == "transcript":
                        assert digests_of(content, live.study, 0) == body
                        shown += len(read_packets_bucket(document, bucket, read_transcript(live.study, content)))
                    else:
                        assert content == body
            assert shown == 6
            for what in (
                "buckets/0/0", f"buckets/{numbers['seed']}/0", f"buckets/{numbers['roster']}/2", "buckets/99/0",
                "buckets/1/00", f"buckets/{numbers['model']}/0", f"contents/{numbers['roster']}/2", "buckets/1",
                "contents/1/-1",
            ):
                assert await asked(what) == (404, b"")


@pytest.mark.slow
async def test_a_study_in_buckets_goes_on_after_each_restart(tmp_path: Path) -> None:
    clock = Clock()
    async with make_app(tmp_path, clock) as app:
        world = await begin(app, clock, study_text())
        study, peers = world.live.study, await world.enrol(6)
        clock.seconds = world.live.manifest.timetable.enrol_closes
        await app.tick()
    async with make_app(tmp_path, clock) as app:
        live = app.study(study)
        assert live.rostered == 6
        for one in peers:
            await one.take_credential(live)
        clock.seconds = world.opens
        await app.tick()
        for one in peers:
            assert await live.submit(sealed(live, one.packet())) == "accepted"
        clock.seconds = world.closes
        await app.tick()
    async with make_app(tmp_path, clock) as app:
        live = app.study(study)
        assert live.phase is Phase.PUBLISHED and sum((await live.accepted()).values()) == 6
        head = find(live.chain, "roster")
        assert head is not None
        before = live.chain
        await publish_in_buckets(live, "roster", 0, roster_buckets(live, b""))
        assert live.chain == before, "a repeated step signs no second head"
        assert len([bucket async for bucket in live.contents(head)]) == 2
        clock.seconds = live.manifest.timetable.published + live.manifest.release.retention + 10_000
        await app.tick()
        assert live.phase is Phase.ERASED
        of_transcript = find(live.chain, "transcript")
        assert of_transcript is not None
        assert await live.served_bucket(of_transcript.number, 0, whole=True) is None
        assert await live.served_bucket(head.number, 0, whole=True) is not None
        assert await live.counted() is None
    with closing(sqlite3.connect(tmp_path / "aggregator.sqlite")) as connection:
        assert connection.execute(
            "SELECT count(*) FROM buckets WHERE number = ?", (of_transcript.number,)
        ).fetchone() == (0,)


@pytest.mark.slow
@pytest.mark.parametrize("column", ["content", "leaf", "number", "bucket"])
async def test_a_damaged_bucket_is_not_served_and_staff_are_told(tmp_path: Path, column: str) -> None:
    async with in_memory(tmp_path / "home", study_text()) as world:
        await world.close_enrolment(await world.enrol(6))
        live = world.live
    with closing(sqlite3.connect(tmp_path / "home" / "aggregator.sqlite")) as connection, connection:
        row = f"number = {find(live.chain, 'roster').number} AND bucket = 1"  # type: ignore[union-attr]
        (value,) = connection.execute(f"SELECT {column} FROM buckets WHERE {row}").fetchone()
        other = value + 64 if isinstance(value, int) else value[:-1] + bytes([value[-1] ^ 1])
        rows = row.partition(" AND ")[0] if column == "number" else row  # all of them: as if there were none
        connection.execute(f"UPDATE buckets SET {column} = ? WHERE {rows}", (other,))
    async with make_app(tmp_path / "home", world.clock) as app:
        live = app.study(live.study)
        number = find(live.chain, "roster").number  # type: ignore[union-attr]
        assert await live.served_bucket(number, 1, whole=False) is None
        assert "roster 0" in live.trouble


async def test_a_bucket_that_nobody_would_fetch_is_not_signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aggregator.rules.lengths.MOST", 2)
    async with in_memory(tmp_path / "home", study_text()) as world:
        await world.enrol(6)
        await world.go_to(world.live.manifest.timetable.enrol_closes)
        assert "into one bucket" in world.live.trouble
        assert [one.head.kind for one in world.live.chain] == ["manifest"]
