"""Keys at rest, backup and restore, and what the database does not know."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

import pytest
from nacl.signing import SigningKey

from aggregator.rules.lifecycle import Phase
from aggregator.store import enrolments as enrol_store
from aggregator.store import packets as packet_store
from aggregator.store.home import backup, draw_study_secrets, open_home, restore
from aggregator.store.studies import StudyStore
from anon.errors import Damaged, Malformed, Refused
from anon.wire.messages import parse_seed, seed_commitment
from tests.support.packets import opened
from tests.support.world import World, in_memory, make_app, sealed, study_text


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_secrets_are_for_the_owner_alone(running: World) -> None:
    home = running.app.home.path
    assert _mode(home) == 0o700
    files = [path for path in home.rglob("*") if path.is_file() and not path.name.endswith(("-wal", "-shm"))]
    assert len(files) >= 3
    assert {_mode(path) for path in files} == {0o600}


def test_one_commitment_opens_both_hidden_values(tmp_path: Path) -> None:
    secrets = draw_study_secrets(os.urandom)
    public = secrets.public(bytes(32))
    assert public.seed_commitment == seed_commitment(secrets.seed_value)
    assert secrets.seed_value == seed_commitment(secrets.score_value)
    home = open_home(tmp_path / "home", os.urandom)
    home.store_secrets(bytes(32), secrets)
    assert open_home(tmp_path / "home", os.urandom).load_secrets(bytes(32)) == secrets
    with pytest.raises(Damaged, match="Restore a backup"):
        home.load_secrets(b"\1" * 32)


@pytest.mark.slow
async def test_what_was_recorded_opens_until_its_study_is_erased_and_never_after(tmp_path: Path) -> None:
    """Once its retention is over no file of the home holds the secret of its sealing key."""
    async with in_memory(tmp_path / "home", study_text()) as running:
        (peer, _), live = await running.collecting(2), running.live
        packet = peer.packet()
        recorded, secret = sealed(live, packet), running.app.home.load_secrets(live.study).sealing_key
        assert opened(live.manifest, secret, "packets", recorded) == packet.to_bytes()
        assert any(secret in kept for kept in _files(running.app.home.path))
        await running.go_to(live.manifest.timetable.ends)
        await running.go_to(live.manifest.timetable.ends + live.manifest.release.retention + 1)
        assert live.phase is Phase.ERASED
        assert not any(secret in kept for kept in _files(running.app.home.path))
        with pytest.raises(Damaged):
            running.app.home.load_secrets(live.study)


def _files(home: Path) -> list[bytes]:
    return [path.read_bytes() for path in home.rglob("*") if path.is_file()]


@pytest.mark.slow
async def test_a_backup_restores_keys_and_studies(tmp_path: Path) -> None:
    async with in_memory(tmp_path / "home", study_text()) as running:
        peers = await running.enrol(2)
        backup(tmp_path / "home", tmp_path / "backup.tar")
        assert _mode(tmp_path / "backup.tar") == 0o600
        with pytest.raises(Refused, match="already exists"):
            backup(tmp_path / "home", tmp_path / "backup.tar")
    restore(tmp_path / "backup.tar", tmp_path / "second")
    with pytest.raises(Refused, match="not empty"):
        restore(tmp_path / "backup.tar", tmp_path / "second")
    async with make_app(tmp_path / "second", running.clock) as app:
        live = app.study(running.live.study)
        assert app.home.public_key == running.app.home.public_key
        assert await live.enrol(peers[0].sealed_enrolment()) == "accepted"
        running.clock.seconds = live.manifest.timetable.enrol_closes
        await app.tick()
        for peer in peers:
            await peer.take_credential(live)


def test_what_is_no_backup_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"not a backup")
    with pytest.raises(Malformed, match="not a backup"):
        restore(tmp_path / "file", tmp_path / "home")


def test_a_database_without_its_key_is_not_given_a_new_one(tmp_path: Path) -> None:
    open_home(tmp_path / "home", os.urandom)
    (tmp_path / "home" / "signing.key").unlink()
    (tmp_path / "home" / "aggregator.sqlite").write_bytes(b"")
    with pytest.raises(Damaged, match="Restore a backup"):
        open_home(tmp_path / "home", os.urandom)


def test_one_home_is_served_by_one_process(tmp_path: Path) -> None:
    home = open_home(tmp_path / "home", os.urandom)
    held = home.lock()
    with pytest.raises(Refused, match="another process"):
        home.lock()
    held.close()
    home.lock().close()


def test_enrolments_and_packets_share_no_table() -> None:
    assert not set(enrol_store.TABLES.tables) & set(packet_store.TABLES.tables)


@pytest.mark.slow
async def test_nothing_stored_tells_when_or_in_which_order_packets_came(running: World) -> None:
    await running.collected(6)
    path = running.app.home.database
    with sqlite3.connect(path) as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(packets)")]
        assert columns == ["study", "slot", "tag", "survey", "plaintext", "digest"]
        with pytest.raises(sqlite3.OperationalError):
            connection.execute("SELECT rowid FROM packets")
        tags = [row[0] for row in connection.execute("SELECT tag FROM packets")]
        assert tags == sorted(tags)
    connection.close()
    log = path.with_name(path.name + "-wal")
    assert any(tag in log.read_bytes() for tag in tags), "while a study collects, the log still knows batches"
    await running.app._tools.packets.compact(running.live.study)
    assert log.stat().st_size == 0
    places = [path.read_bytes().find(tag) for tag in tags]
    assert all(place > 0 for place in places)


async def test_a_document_is_never_signed_twice(on_each_dialect: World) -> None:
    studies: StudyStore = on_each_dialect.app._tools.studies
    key: SigningKey = on_each_dialect.app.home.signing_key
    first = await studies.append(on_each_dialect.live.study, "abandoned", 0, b"one story", key)
    again = await studies.append(on_each_dialect.live.study, "abandoned", 0, b"another story", key)
    assert again == first and len(first) == 2
    assert await studies.body(on_each_dialect.live.study, 1) == b"one story"


@pytest.mark.slow
async def test_the_score_value_is_hidden_until_collection_has_closed(on_each_dialect: World) -> None:
    peers = await on_each_dialect.enrol(2)
    await on_each_dialect.close_enrolment(peers)
    value = on_each_dialect.live.secrets.score_value
    for head in on_each_dialect.live.chain:
        assert value not in await on_each_dialect.live.body_of(head.head)
    await on_each_dialect.go_to(on_each_dialect.closes)
    revealed = next(one.head for one in on_each_dialect.live.chain if (one.head.kind, one.head.part) == ("seed", 1))
    assert (
        parse_seed(
            await on_each_dialect.live.body_of(revealed),
            on_each_dialect.live.study,
            on_each_dialect.live.secrets.seed_value,
        )
        == value
    )
