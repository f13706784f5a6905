"""Sealed shares are kept beside their packets, shown to one teller at a time in the order of tags, and erased."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from aggregator.rules.accepted import AcceptedPacket
from aggregator.store import packets, sqlite
from aggregator.store.database import Database
from aggregator.store.home import KEPT as KEPT_HERE
from aggregator.store.packets import PacketStore
from aggregator.store.postgres import PostgresDatabase
from aggregator.store.sqlite import SqliteDatabase
from anon.crypto import labels
from anon.storage.durable import guarded
from anon.storage.migration import KEPT
from anon.wire.cbor import sha256
from anon.wire.packets import Occasion, Packet, Relayed
from tests.support.documents import plaintexts_of

STUDY, OTHER = bytes(range(32)), bytes(32)
COUNT = packets._RELAYED_AT_ONCE + 3


def packet(number: int, slot: int = 0, survey: int = 0, study: bytes = STUDY) -> Packet:
    tag = hashlib.sha384(bytes([number])).digest()
    shares = tuple(b"%d for teller %d of slot %d" % (number, teller, slot) for teller in range(2))
    return Packet(Occasion(study, slot, slot), survey, b"report", shares, tag + bytes(336))


def kept(sent: Packet) -> AcceptedPacket:
    plaintext = sent.published().to_bytes()
    digest = sha256(labels.PACKET_DIGEST, plaintext)
    return AcceptedPacket(sent.occasion.slot, sent.tag, sent.survey, plaintext, digest, sent.shares)


@pytest.fixture
async def store(tmp_path: Path, database_url: str) -> AsyncIterator[PacketStore]:
    database: Database = SqliteDatabase(tmp_path / "aggregator.sqlite")
    if database_url:
        database = PostgresDatabase(database_url)
    await database.create(packets.TABLES)
    async with database.write() as connection:
        for study in (STUDY, OTHER):
            await database.begin_study(connection, study)
    store = PacketStore(database)
    await store.insert(STUDY, [kept(packet(number)) for number in range(COUNT)])
    await store.insert(STUDY, [kept(packet(number, slot=1, survey=1)) for number in range(3)])
    await store.insert(OTHER, [kept(packet(0, study=OTHER))])
    yield store
    await database.close()


async def shown(store: PacketStore, slot: int = 0, teller: int = 0, study: bytes = STUDY) -> list[Relayed]:
    return [one async for one in store.relayed(study, slot, slot, teller)]


@pytest.mark.parametrize("teller", [0, 1])
async def test_a_teller_is_shown_its_shares_in_the_order_of_tags(store: PacketStore, teller: int) -> None:
    sent = sorted((packet(number) for number in range(COUNT)), key=lambda one: one.tag)
    assert await shown(store, teller=teller) == [one.relayed(teller) for one in sent]
    assert len(await shown(store, slot=1, teller=teller)) == 3
    assert await shown(store, teller=2) == []


async def test_nothing_that_is_published_holds_a_share(store: PacketStore) -> None:
    published = b"".join(await plaintexts_of(store, STUDY, 0, 0))
    assert len(published) > 0 and not any(
        share in published for number in range(COUNT) for share in packet(number).shares
    )
    again = await store.insert(STUDY, [kept(packet(0))])
    assert again[0, packet(0).tag] == kept(packet(0)).digest


async def test_erased_shares_leave_their_packets(store: PacketStore, tmp_path: Path, database_url: str) -> None:
    before = await plaintexts_of(store, STUDY, 0, 0)
    await store.erase_shares(STUDY, [0])
    assert [await shown(store, teller=teller) for teller in (0, 1)] == [[], []]
    assert await plaintexts_of(store, STUDY, 0, 0) == before
    assert len(await shown(store, slot=1)) == 3 and len(await shown(store, study=OTHER)) == 1
    await store.erase(STUDY)
    assert await shown(store, slot=1) == [] and len(await shown(store, study=OTHER)) == 1
    await store.compact(STUDY)
    if not database_url:
        assert b"for teller 1 of slot 1" not in (tmp_path / "aggregator.sqlite").read_bytes()


@pytest.mark.parametrize("database_url", [""])
async def test_a_damaged_share_is_shown_to_nobody(store: PacketStore, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "aggregator.sqlite")) as connection, connection:
        tag = packet(1).tag
        connection.execute("UPDATE packet_shares SET share = x'00' WHERE slot = 0 AND teller = 1 AND tag = ?", (tag,))
    assert len(await shown(store, teller=0)) == COUNT
    assert len(await shown(store, teller=1)) == COUNT - 1 and tag not in {
        one.tag for one in await shown(store, teller=1)
    }


@pytest.mark.parametrize("database_url", [""])
async def test_a_packet_that_was_left_out_is_relayed_to_no_teller(store: PacketStore, tmp_path: Path) -> None:
    """Also once its row is whole again: a teller and the transcript have the same packets."""
    tag = packet(1).tag
    with closing(sqlite3.connect(tmp_path / "aggregator.sqlite")) as connection, connection:
        connection.execute("INSERT INTO damaged_packets (study, slot, tag) VALUES (?, 0, ?)", (STUDY, tag))
    for teller in (0, 1):
        relayed = await shown(store, teller=teller)
        assert len(relayed) == COUNT - 1 and tag not in {one.tag for one in relayed}


async def test_of_two_orders_of_arrival_the_compacted_file_is_the_same(tmp_path: Path) -> None:
    contents = []
    for name, order in (("one", 1), ("other", -1)):
        (tmp_path / name).mkdir()
        database = SqliteDatabase(tmp_path / name / "aggregator.sqlite")
        await database.create(packets.TABLES)
        store, arrived = PacketStore(database), [kept(packet(number)) for number in range(48)][::order]
        for start in range(0, len(arrived), 8):
            await store.insert(STUDY, arrived[start : start + 8])
        await store.compact(STUDY)
        await database.close()
        contents.append((tmp_path / name / "aggregator.sqlite").read_bytes()[100:])  # its header counts changes
    assert contents[0] == contents[1] and packet(1).tag in contents[0]


def open_without_a_name(folder: Path) -> bool:
    """True if this process holds a file of the folder that was unlinked."""
    held = (str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink())
    return any(name.startswith(f"{folder}/") and name.endswith(" (deleted)") for name in held)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are read from /proc")
async def test_compaction_goes_by_way_of_the_homes_folder_and_gives_the_bytes_that_memory_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, seen = tmp_path / "staff's home", list[bool]()
    home.mkdir()
    file, plain = home / "aggregator.sqlite", tmp_path / "plain.sqlite"

    def watched(*given: object) -> Callable[..., sqlite3.Connection]:
        def make(*words: Any, **options: Any) -> sqlite3.Connection:
            made = guarded(file, KEPT_HERE)(*words, **options)
            made.set_progress_handler(lambda: seen.append(open_without_a_name(home)), 1000)
            return made

        return make

    monkeypatch.setattr(sqlite, "guarded", watched)
    database = SqliteDatabase(file)
    await database.create(packets.TABLES)
    long = [evolve(kept(packet(number)), plaintext=bytes([number]) * 50_000) for number in range(200)]
    await PacketStore(database).insert(STUDY, long)
    with closing(sqlite3.connect(file)) as before, closing(sqlite3.connect(plain)) as copy:
        before.backup(copy)
        copy.execute("PRAGMA temp_store=MEMORY")
        copy.execute("VACUUM")
    seen.clear()
    await database.compact(STUDY)
    async with database.read() as connection:
        assert (await connection.exec_driver_sql("PRAGMA temp_store")).scalar_one() == 2
        assert (await connection.exec_driver_sql("PRAGMA temp_store_directory")).scalar() in (None, "")
    await database.close()
    assert any(seen), "nothing was written beside the database"
    assert file.read_bytes()[100:] == plain.read_bytes()[100:]  # its header counts changes
    assert sorted(path.name for path in home.iterdir()) == [file.name, f"{file.name}.lived"]


async def test_a_compacted_file_leaves_no_copy_of_before(tmp_path: Path) -> None:
    file = tmp_path / "aggregator.sqlite"
    database = SqliteDatabase(file)
    await database.create(packets.TABLES)
    copy = file.with_name(f"{file.name}.v1{KEPT}")
    copy.write_bytes(b"packets in the order in which they came")
    await database.compact(STUDY)
    await database.close()
    assert file.exists() and not copy.exists()
