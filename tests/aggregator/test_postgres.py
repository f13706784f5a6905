"""PostgreSQL: the order of arrival leaves its files, servers that would keep it are refused, and faults are told."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from math import erfc, sqrt
from pathlib import Path

import pytest
from scipy.stats import kendalltau
from sqlalchemy import text
from sqlalchemy.dialects.postgresql import asyncpg

from aggregator.app import AggregatorApp
from aggregator.rules.accepted import AcceptedPacket
from aggregator.rules.faults import DatabaseAway
from aggregator.store import dialects
from aggregator.store import packets as packets_table
from aggregator.store import postgres as postgres_dialect
from aggregator.store.dialects import set_up
from aggregator.store.home import backup, open_home
from aggregator.store.packets import PacketStore
from aggregator.store.postgres import PostgresDatabase
from aggregator.store.studies import StudyStore
from anon.errors import Malformed, Refused
from tests.support.clock import Clock
from tests.support.documents import plaintexts_of
from tests.support.postgres import Server
from tests.support.world import in_memory, make_app, sealed, study_text

pytestmark = pytest.mark.postgres
STUDY, OTHER = hashlib.sha256(b"one").digest(), hashlib.sha256(b"other").digest()
PACKETS, BATCH = 480, 8
MARK = b"a tag of "
FALSE_ALARM = 1e-5
"""Of one comparison, by the normal approximation of Kendall's tau."""


def packet(number: int, kind: str = "") -> AcceptedPacket:
    """Its tag tells nothing of its number, but can be found; the plaintext is as long as a real one."""
    tag = MARK + hashlib.sha384(f"{kind}{number}".encode()).digest()[len(MARK) :]
    body = hashlib.shake_256(tag).digest(600)
    shares = tuple(hashlib.sha512(tag + bytes([teller])).digest() for teller in range(2))
    return AcceptedPacket(0, tag, 0, body, hashlib.sha256(body).digest(), shares)


async def database_at(url: str, *studies: bytes) -> PostgresDatabase:
    """With the tables of an aggregator, and studies under a clock that nobody asks."""
    database = PostgresDatabase(url)
    await database.create(*dialects.TABLES)
    from nacl.signing import SigningKey

    for study in studies:
        await StudyStore(database).add(study, "round", b"manifest", SigningKey(bytes(32)))
    return database


def told(order: Sequence[bytes], found: Iterable[tuple[object, bytes]]) -> float:
    """How unlikely it is, by chance, that places found for tags go with their order of arrival as much as they do.

    `found`: pairs of a place and its tag. Fewer than 20 tags say nothing.
    """
    arrived = {tag: number for number, tag in enumerate(order)}
    pairs = sorted((place, arrived[tag]) for place, tag in found)
    if len(pairs) < 20:
        return 1.0
    ranks = {place: rank for rank, place in enumerate(dict.fromkeys(place for place, _ in pairs))}
    if len(ranks) == 1:
        return 1.0
    tau = kendalltau([ranks[place] for place, _ in pairs], [number for _, number in pairs]).statistic
    n = len(pairs)
    return erfc(abs(tau) / sqrt(2 * (2 * n + 5) / (9 * n * (n - 1))) / sqrt(2))


def copied_tells(folder: Path, order: Sequence[bytes]) -> dict[str, float]:
    """For each file of a copied data directory, how unlikely the places of the tags in it are by chance."""
    told_by, known = {}, set(order)
    for path in (path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        first: dict[bytes, int] = {}
        for one in re.finditer(MARK, content):
            first.setdefault(content[one.start() : one.start() + 48], one.start())
        if found := [(place, tag) for tag, place in first.items() if tag in known]:
            told_by[path.relative_to(folder).as_posix()] = told(order, found)
    return told_by


async def rows_tell(database: PostgresDatabase, order: Sequence[bytes], column: str) -> float:
    """The same for a hidden column of the rows."""
    async with database.read() as connection:
        number = {"xmin": "xmin::text::bigint", "ctid": "(ctid::text::point)[0] * 1000 + (ctid::text::point)[1]"}[
            column
        ]
        rows = await connection.execute(
            text(f"SELECT {number}, tag FROM packets WHERE study = :study"), {"study": STUDY}
        )
        return told(order, [(row[0], row[1]) for row in rows])


async def test_a_copy_of_the_data_directory_does_not_tell_the_order_of_arrival(
    postgres: Server, tmp_path: Path
) -> None:
    """Rows, every file and the log tell it before; after compaction none does better than chance."""
    database = await database_at(postgres.made(), STUDY, OTHER)
    store = PacketStore(database)
    packets = [packet(number) for number in range(PACKETS)]
    for start in range(0, PACKETS, BATCH):
        await store.insert(STUDY, packets[start : start + BATCH])
        if start == PACKETS // 2:
            await store.insert(OTHER, packets[:BATCH])
            async with database.write() as connection:
                await connection.execute(text("ANALYZE packets"))
    order = [one.tag for one in packets]
    assert await rows_tell(database, order, "xmin") < FALSE_ALARM
    assert await rows_tell(database, order, "ctid") < FALSE_ALARM
    postgres.run("CHECKPOINT")
    shutil.copytree(postgres.data, tmp_path / "before")
    before = copied_tells(tmp_path / "before", order)
    assert {name.partition("/")[0] for name, chance in before.items() if chance < FALSE_ALARM} == {"base", "pg_wal"}

    await store.compact(STUDY)
    assert await rows_tell(database, order, "xmin") == 1.0, "all rows have one"
    assert await rows_tell(database, order, "ctid") > FALSE_ALARM
    postgres.control("stop", "-m", "fast")
    try:
        shutil.copytree(postgres.data, tmp_path / "after")
    finally:
        postgres.control("start")
    after = copied_tells(tmp_path / "after", order)
    assert after and min(after.values()) > FALSE_ALARM, after
    assert sum(name.startswith("base/") for name in after) >= 2, "a table and its index hold the tags"
    assert len(await plaintexts_of(store, OTHER, 0, 0)) == 0 and sum((await store.counts(OTHER)).values()) == BATCH
    assert sum((await store.counts(STUDY)).values()) == PACKETS
    await database.close()


async def test_what_is_erased_leaves_the_data_directory(postgres: Server, tmp_path: Path) -> None:
    database = await database_at(postgres.made(), STUDY, OTHER)
    store = PacketStore(database)
    packets = [packet(number, "erased") for number in range(40)]
    await store.insert(STUDY, packets)
    await store.insert(OTHER, [packet(0, "kept")])
    tags, shares = [one.tag for one in packets], [one.shares[1] for one in packets]
    await store.erase_shares(STUDY, [0])
    postgres.run("CHECKPOINT")
    assert held(postgres.data, shares) == set() and held(postgres.data, tags) != set()
    await store.erase(STUDY)
    await store.compact(STUDY)
    postgres.run("CHECKPOINT")
    assert held(postgres.data, tags) == set()
    assert held(postgres.data, [packet(0, "kept").tag]) != set()
    assert await store.counts(STUDY) == {} and await store.counts(OTHER) == {0: 1}
    await database.close()


def held(folder: Path, needles: Sequence[bytes]) -> set[str]:
    """The files that hold any of these."""
    any_of = re.compile(b"|".join(map(re.escape, needles)))
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix() for path in files if any_of.search(path.read_bytes())}


async def test_tags_are_looked_up_by_their_key_though_nothing_is_known_of_the_table(postgres: Server) -> None:
    """Reading all rows for each batch took 2 ms of the server a packet at 20,000."""
    database = await database_at(postgres.made(), STUDY)
    packets = [packet(number) for number in range(1000)]
    await PacketStore(database).insert(STUDY, packets)
    table, tags = packets_table.TABLES.tables["packets"], [one.tag for one in packets[:256]]
    here = (table.c.study == STUDY) & (table.c.slot == 0)
    query = database.found(here, table.c.tag, tags, table.c.digest)
    async with database.read() as connection:
        assert len(list(await connection.execute(query))) == 256
        asked = query.compile(dialect=asyncpg.dialect())
        values = tuple(asked.params[name] for name in asked.positiontup or ())
        plan = [row[0] for row in await connection.exec_driver_sql(f"EXPLAIN {asked}", values)]
    assert any("Index Cond" in line and "tag =" in line for line in plan) and not any(
        "Seq Scan" in line for line in plan
    ), plan
    await database.close()


async def test_a_server_that_keeps_the_order_is_refused(postgres: Server, tmp_path: Path) -> None:
    home, url = open_home(tmp_path / "home", os.urandom), postgres.made()
    await set_up(home, url)
    kept = {
        "track_commit_timestamp": "on", "wal_recycle": "on", "log_statement": "mod", "log_min_duration_statement": "0",
        "archive_mode": "on", "wal_keep_size": "16",
    }
    for setting, value in kept.items():
        postgres.run(f"ALTER SYSTEM SET {setting} = '{value}'")
    try:
        postgres.control("restart", "-m", "fast")
        with pytest.raises(Refused, match="keeps in which order packets came") as refused:
            async with AggregatorApp(home.path, Clock(), processes=0):
                pass
    finally:
        postgres.run("ALTER SYSTEM RESET ALL")
        postgres.control("restart", "-m", "fast")
    for setting, value in kept.items():
        assert f"{setting} = {value}" in str(refused.value) and f"ALTER SYSTEM SET {setting} = " in str(refused.value)
    async with AggregatorApp(home.path, Clock(), processes=0):
        pass


async def test_a_user_who_may_not_empty_the_log_is_refused_and_told_the_grants(
    postgres: Server, tmp_path: Path
) -> None:
    url = postgres.made()
    name = url.split("/")[3].partition("?")[0]
    postgres.run(f"CREATE USER {name}; ALTER DATABASE {name} OWNER TO {name}")
    theirs = url.replace("tester@", f"{name}@")
    home = open_home(tmp_path / "home", os.urandom)
    with pytest.raises(Refused, match="GRANT pg_checkpoint TO"):
        await set_up(home, theirs)
    postgres.run(f"GRANT pg_checkpoint TO {name}; GRANT EXECUTE ON FUNCTION pg_switch_wal() TO {name}", name)
    await set_up(home, theirs)
    async with make_app(home.path, Clock()) as app:
        assert app.studies() == ()


async def test_a_home_has_one_database(postgres: Server, tmp_path: Path) -> None:
    home, url = open_home(tmp_path / "home", os.urandom), postgres.made()
    with pytest.raises(Malformed, match="expected postgresql"):
        await set_up(home, "mysql://localhost/one")
    await set_up(home, url)
    await set_up(home, url)
    assert (home.path / "database.url").stat().st_mode & 0o777 == 0o600
    with pytest.raises(Refused, match="has a database already"):
        await set_up(home, postgres.made())
    with pytest.raises(Refused, match="pg_dump"):
        backup(home.path, tmp_path / "backup.tar")
    async with in_memory(tmp_path / "file", study_text()) as world:
        with pytest.raises(Refused, match="has a database already"):
            await set_up(world.app.home, url)


@pytest.mark.parametrize(("step", "said"), [(1, "newer anonml"), (-1, "no database of this anonml")])
async def test_tables_of_another_program_are_refused(postgres: Server, step: int, said: str) -> None:
    url = postgres.made()
    database = await database_at(url)
    async with database.write() as connection:
        await connection.execute(text(f"UPDATE schema_number SET number = number + {step}"))
    with pytest.raises(Refused, match=said):
        await database.create(*dialects.TABLES)
    await database.close()


async def test_a_server_that_is_away_is_told_without_its_password(postgres: Server, tmp_path: Path) -> None:
    home = open_home(tmp_path / "home", os.urandom)
    for url in (
        f"postgresql+asyncpg://tester:secret@/none?host={tmp_path}",
        postgres.url("none").replace("@", ":secret@"),
    ):
        with pytest.raises(DatabaseAway, match="does not answer") as away:
            await set_up(home, url)
        assert "secret" not in str(away.value) and "tester:***@" in str(away.value)
    assert not (home.path / "database.url").exists()


async def test_a_study_lives_on_a_server_to_its_erasure(postgres: Server, tmp_path: Path) -> None:
    """Also through a restart between two phases; its rows and tables are gone in the end."""
    url = postgres.made()
    async with in_memory(tmp_path / "home", study_text("quantile"), database_url=url) as world:
        manifest, clock, peers = world.live.manifest, world.clock, await world.enrol(6)
        assert await world.live.withdraw(peers.pop().sealed_withdrawal()) == "withdrawn"
        await world.close_enrolment(peers)
        for closes in sorted({survey.window.closes for survey in manifest.surveys}):
            clock.seconds = closes - 1
            await world.app.tick()
            for peer in peers:
                if manifest.survey(peer.drawn()).window.closes == closes:
                    assert await world.live.submit(sealed(world.live, peer.packet())) == "accepted"
    async with make_app(tmp_path / "home", clock) as app:
        live = app.study(manifest.study_id)
        clock.seconds = manifest.timetable.ends
        await app.tick()
        assert (live.state, live.trouble) == ("published", "")
        (status,) = await app.status()
        assert (status.accepted.number, status.enrolled.number) == (5, 5)
        clock.seconds += manifest.release.retention
        await app.tick()
        assert (live.state, live.trouble) == ("erased", "")
        name = url.split("/")[3].partition("?")[0]
        tables = postgres.run("SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r'", name)
        assert sorted(table.rpartition("_")[0] for table in tables.splitlines()) == ["buckets", "documents"]
        assert (
            postgres.run("SELECT count(*) FROM documents WHERE kind = 'transcript' AND body IS NOT NULL", name) == "0"
        )


async def test_a_reader_that_comes_during_compaction_finds_all_rows(postgres: Server) -> None:
    """It waits for the new partition. One whose snapshot were older than its rows would find none of them."""
    database = await database_at(postgres.made(), STUDY)
    store = StudyStore(database)
    whole = await store.chain(STUDY)
    async with database.write(STUDY) as connection:
        for table in database._partitioned():
            await postgres_dialect._rewrite(connection, table, STUDY)
        readers = [asyncio.create_task(store.chain(STUDY)), asyncio.create_task(store.body(STUDY, 0))]
        await asyncio.sleep(0.3)
        assert not any(reader.done() for reader in readers)
    assert await asyncio.gather(*readers) == [whole, b"manifest"] and len(whole) == 1
    await database.close()


async def test_a_copy_of_the_data_directory_holds_no_share_that_was_erased(postgres: Server, tmp_path: Path) -> None:
    database = await database_at(postgres.made(), STUDY, OTHER)
    store, packets = PacketStore(database), [packet(number, "erased") for number in range(BATCH)]
    for study in (STUDY, OTHER):
        await store.insert(study, packets if study == STUDY else packets[:1])

    def held(name: str) -> set[bytes]:
        postgres.run("CHECKPOINT")
        postgres.control("stop", "-m", "fast")
        try:
            shutil.copytree(postgres.data, tmp_path / name)
        finally:
            postgres.control("start")
        copied = b"".join(path.read_bytes() for path in (tmp_path / name).rglob("*") if path.is_file())
        return {share for one in packets for share in one.shares if share in copied}

    everything = {share for one in packets for share in one.shares}
    assert held("before") == everything
    await store.erase_shares(STUDY, [0])
    assert held("after") == set(packets[0].shares), "those of the other study stay"
