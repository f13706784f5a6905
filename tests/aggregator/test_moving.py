"""A home's studies move from its file to a PostgreSQL server, and go on there."""

from __future__ import annotations

import argparse
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from aggregator.store import dialects
from aggregator.store.home import open_home
from aggregator.store.moving import move
from aggregator.store.postgres import PostgresDatabase
from aggregator.store.sqlite import SqliteDatabase
from anon.errors import Malformed, Refused
from benchmarks import workers
from tests.support.postgres import Server
from tests.support.world import in_memory, make_app, sealed, study_text

pytestmark = pytest.mark.postgres


async def test_a_study_goes_on_in_the_middle_of_its_window(postgres: Server, tmp_path: Path) -> None:
    url = postgres.made()
    async with in_memory(tmp_path / "home", study_text()) as world:
        peers, clock, manifest, closes = await world.collecting(4), world.clock, world.live.manifest, world.closes
        for peer in peers[:2]:
            assert await world.live.submit(sealed(world.live, peer.packet())) == "accepted"
        chain, home = world.live.chain, world.app.home
        with closing(home.lock()), pytest.raises(Refused, match="another process is serving it"):
            await move(home, url)
    twin = open_home(shutil.copytree(home.path, tmp_path / "twin"), bytes)
    assert await move(home, url) == 1
    assert not list(home.path.glob("aggregator.sqlite*"))
    name = url.split("/")[3].partition("?")[0]
    assert postgres.run("SELECT count(*), count(DISTINCT xmin::text) FROM packets", name) == "2|1"
    tags = postgres.run("SELECT encode(tag, 'hex') FROM packets ORDER BY ctid", name).splitlines()
    assert tags == sorted(tags)
    async with make_app(home.path, clock) as app:
        live = app.study(manifest.study_id)
        assert live.chain == chain
        for peer in peers:
            assert await live.submit(sealed(live, peer.packet())) in ("accepted", "tag-spent")
        clock.seconds = closes
        await app.tick()
        assert (live.state, live.trouble, sum((await live.accepted()).values())) == ("published", "", 4)
    with pytest.raises(Refused, match="no studies in a file"):
        await move(home, url)
    async with in_memory(tmp_path / "other", study_text()) as other:
        other_home = other.app.home
    for refused, why in ((other_home, "another aggregator"), (twin, "has studies already")):
        with pytest.raises(Refused, match=why):
            await move(refused, url)
        assert refused.database.exists()


async def test_every_row_is_the_same_afterwards(postgres: Server, tmp_path: Path) -> None:
    url = postgres.made()
    async with in_memory(tmp_path / "home", study_text()) as world:
        await world.collected(3)
        left, home = await _rows(SqliteDatabase(world.app.home.database)), world.app.home
    assert await move(home, url) == 1
    assert await _rows(PostgresDatabase(url)) == left and sum(map(len, left.values())) > 20


async def test_a_home_without_a_file_or_an_address_of_another_kind(tmp_path: Path) -> None:
    home = open_home(tmp_path / "home", bytes)
    with pytest.raises(Refused, match="no studies in a file"):
        await move(home, "postgresql+asyncpg://nobody@/none")
    async with in_memory(tmp_path / "full", study_text()) as world:
        full = world.app.home
    with pytest.raises(Malformed, match="expected postgresql"):
        await move(full, "mysql://localhost/one")
    assert full.database.exists()


@pytest.mark.process
@pytest.mark.soak
async def test_a_measured_row_counts_what_real_processes_accepted(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The benchmark of several processes moves a prepared home, serves it by the command, and leaves the database
    empty."""
    monkeypatch.setattr(workers, "WARM_UP", 2)
    url = postgres.made()
    asked = argparse.Namespace(url=url, workers=[1, 2], rate=50.0, packets=6, processes=0, kept=tmp_path)
    rows = await workers.measure(asked)
    facts = [(row["workers"], row["accepted"], row["again_accepted"], row["lost"], row["doubled"]) for row in rows]
    assert facts == [(1, 6, 1, 0, 0), (2, 6, 1, 0, 0)]
    assert (
        postgres.run(
            "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace",
            url.split("/")[3].partition("?")[0],
        )
        == "0"
    )


async def _rows(database: SqliteDatabase | PostgresDatabase) -> dict[str, list[tuple[object, ...]]]:
    async with database.read() as connection:
        found = {
            table.name: sorted(map(tuple, await connection.execute(table.select())), key=repr)
            for group in dialects.TABLES
            for table in group.sorted_tables
        }
    await database.close()
    return found
