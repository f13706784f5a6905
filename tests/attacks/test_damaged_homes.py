"""A damaged home works unharmed or says which file is damaged, what was lost, and how to restore. Never anything else.

The whole sweep is soak; a sample of every file runs each time.
"""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from anon.errors import AnonmlError, Damaged, Malformed, NoRoom, Refused
from anon.queries.sandbox import plain_tables_of
from peer.app import PeerApp
from peer.cli.main import app as commands
from peer.data.evaluate import at_once
from peer.data.importing import import_rows
from peer.store.backup.archive import backup, restore
from peer.store.home import PeerHome
from peer.store.ledger_marker import begin_anew
from peer.store.store import Store
from tests.attacks.damage import Harm, harms
from tests.support.fake_aggregator import FakeAggregator, advance, peer, reopened, until_closed
from tests.support.tries import examples

SAMPLE, WHOLE = examples(30), 2000


async def _lived(folder: Path) -> tuple[PeerHome, FakeAggregator]:
    """A home with a packet in its outbox, an imported table and settings."""
    aggregator = FakeAggregator.with_study()
    PeerHome(folder).prepare()
    rows = [(20 + number, "some", number % 2) for number in range(300)]
    import_rows(PeerHome(folder).data_path, "person", ("age", "cups", "tired"), rows)
    app = peer(folder, aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await until_closed(app, aggregator)
    await advance(app, aggregator, aggregator.manifest.timetable.settled - 1)
    assert app.store.outbox(aggregator.study)
    app.close()
    home = PeerHome(folder)
    with closing(sqlite3.connect(home.store_path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return home, aggregator


def _seen(app: PeerApp) -> tuple[object, ...]:
    """Everything that an owner can see of it."""
    return (
        app.status(),
        app.receipts(),
        app.budget(),
        app.policy(),
        app.paused_until(),
        app.evidence(),
        app.store.retired(),
    )


def _clear(fault: AnonmlError, file: Path) -> None:
    said = str(fault)
    assert isinstance(fault, (Damaged, Refused, Malformed)), (type(fault), said)
    assert file.name in said, said
    assert (
        "Restore a backup" in said or "restore a backup" in said or "name another file" in said or "correct" in said
    ), said


def _copy(home: PeerHome, to: Path) -> PeerHome:
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(home.path, to)
    return PeerHome(to)


async def _sweep(tmp_path: Path, name: str, most: int) -> dict[str, int]:
    home, aggregator = await _lived(tmp_path / "home")
    whole = reopened(home, aggregator)
    expected = _seen(whole)
    whole.close()
    if (home.path / name).stat().st_size == 0:
        raise AssertionError(f"{name} is empty")
    outcomes = {"unharmed": 0, "told": 0}
    for harm in harms(home.path / name, most):
        copy = _copy(home, tmp_path / "copy")
        harm.do(copy.path / name)
        try:
            app = reopened(copy, aggregator)
            try:
                seen = _seen(app)
                assert name == "settings.json" or seen == expected, harm
                plain_tables_of(copy.data_path)
                import_rows(copy.data_path, "more", ("a",), [(1,)])
                await backup(copy, tmp_path / "copy" / "backup", evaluate=at_once)
            finally:
                app.close()
            outcomes["unharmed"] += 1
        except AnonmlError as fault:
            _clear(fault, copy.path / name)
            outcomes["told"] += 1
    return outcomes


@pytest.mark.slow
@pytest.mark.parametrize("name", ["peer.sqlite", "data.sqlite", "settings.json"])
async def test_every_damage_of_a_peers_home_is_harmless_or_told(tmp_path: Path, name: str) -> None:
    outcomes = await _sweep(tmp_path, name, SAMPLE)
    assert outcomes["told"] > 0, outcomes


@pytest.mark.soak
@pytest.mark.parametrize("name", ["peer.sqlite", "data.sqlite", "settings.json"])
async def test_every_damage_of_a_peers_home_is_harmless_or_told_everywhere(tmp_path: Path, name: str) -> None:
    await _sweep(tmp_path, name, WHOLE)


async def _backups(tmp_path: Path, most: int) -> None:
    home, aggregator = await _lived(tmp_path / "home")
    file = tmp_path / "backup"
    await backup(home, file, evaluate=at_once)
    restore(PeerHome(tmp_path / "first"), file, aggregator.clock())
    first = reopened(PeerHome(tmp_path / "first"), aggregator)
    expected = _seen(first)[1:2]
    first.close()
    for harm in harms(file, most):
        shutil.copyfile(file, tmp_path / "spoilt")
        harm.do(tmp_path / "spoilt")
        place = PeerHome(tmp_path / "new")
        shutil.rmtree(place.path, ignore_errors=True)
        try:
            restore(place, tmp_path / "spoilt", aggregator.clock())
        except AnonmlError as fault:
            assert isinstance(fault, (Damaged, Malformed)) and "spoilt" in str(fault), (harm, fault)
            assert "another" in str(fault)
            assert not place.store_path.exists() and not place.data_path.exists(), "nothing is put by halves"
            continue
        app = reopened(place, aggregator)
        assert _seen(app)[1:2] == expected, harm
        app.close()


async def test_every_damage_of_a_backup_is_harmless_or_told(tmp_path: Path) -> None:
    await _backups(tmp_path, SAMPLE)


@pytest.mark.soak
async def test_every_damage_of_a_backup_is_harmless_or_told_everywhere(tmp_path: Path) -> None:
    await _backups(tmp_path, WHOLE)


async def test_a_number_that_changed_by_itself_gives_no_budget_back(tmp_path: Path) -> None:
    """SQLite finds nothing wrong with it."""
    home, aggregator = await _lived(tmp_path / "home")
    with closing(sqlite3.connect(home.store_path)) as connection, connection:
        connection.execute("UPDATE ledger SET spent = 0, reserved = 0")
    with pytest.raises(Damaged, match="a value in it is not the one that was written"):
        reopened(home, aggregator)


@pytest.mark.parametrize("also", [(), ("settings.json",), ("data.sqlite",)])
async def test_a_ledger_that_is_gone_is_not_begun_again_without_a_word(tmp_path: Path, also: tuple[str, ...]) -> None:
    home, aggregator = await _lived(tmp_path / "home")
    for name in ("peer.sqlite", "peer.sqlite-wal", "peer.sqlite-shm", *also):
        (home.path / name).unlink(missing_ok=True)
    with pytest.raises(Damaged, match="missing or emptied, though this home had one") as told:
        reopened(home, aggregator)
    assert "anonml peer restore FILE" in str(told.value) and "begin-anew" in str(told.value)
    assert not home.store_path.exists()
    begin_anew(home)
    app = reopened(home, aggregator)
    assert app.budget().available == 0
    with pytest.raises(Refused):
        await app.join(aggregator.invite, aggregator.manifest.epsilon)
    app.close()


async def test_beginning_anew_is_for_homes_that_lost_their_ledger(tmp_path: Path) -> None:
    home, aggregator = await _lived(tmp_path / "home")
    with pytest.raises(Refused, match="whole"):
        begin_anew(home)
    with pytest.raises(Refused, match="no peer lived here"):
        begin_anew(PeerHome(tmp_path / "other"))
    Harm("zeros", 0).do(home.store_path)
    ran = CliRunner().invoke(commands, ["begin-anew", "--yes", "--home", str(home.path)])
    assert ran.exit_code == 0, ran.output
    assert "counts as spent" in ran.output and "peer.sqlite.damaged" in ran.output.replace("\n", "")
    assert reopened(home, aggregator).budget().available == 0


def test_data_that_came_before_the_ledger_is_no_sign_of_one(tmp_path: Path) -> None:
    home = PeerHome(tmp_path)
    import_rows(home.data_path, "mine", ("a",), [(1,)])
    Store(home.store_path, os.urandom).close()


async def test_the_log_of_a_damaged_ledger_is_overwritten_when_a_home_begins_anew(tmp_path: Path) -> None:
    """It holds secrets, and was unlinked as it was."""
    home, _aggregator = await _lived(tmp_path / "home")
    Harm("zeros", 0).do(home.store_path)
    log = home.store_path.with_name(home.store_path.name + "-wal")
    log.write_bytes(b"a secret of a study " * 500)
    with log.open("rb") as blocks:
        begin_anew(home)
        assert b"secret" not in blocks.read()
    assert not log.exists() or b"secret" not in log.read_bytes()
    assert Store(home.store_path, os.urandom).ledger().available == 0


async def test_a_full_disk_under_the_ledger_is_told_and_loses_nothing(tmp_path: Path) -> None:


    home, aggregator = await _lived(tmp_path / "home")
    app = reopened(home, aggregator)
    before = _seen(app)
    connection = app.store._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    connection.execute("PRAGMA freelist_count")
    with pytest.raises(NoRoom, match=r"peer\.sqlite”: cannot be written \(SQLITE_FULL\)") as told:
        app.store.end(aggregator.study, *_ending())
    assert "Make room" in str(told.value) and _seen(app) == before
    connection.execute("PRAGMA max_page_count = 1000000")
    app.store.end(aggregator.study, *_ending())
    app.close()


def _ending() -> tuple[object, ...]:
    from peer.rules.lifecycle import Event

    return Event.OWNER_STOPPED, "ended", os.urandom(200_000)


async def test_a_full_disk_stops_no_run_and_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    home, aggregator = await _lived(tmp_path / "home")
    app = reopened(home, aggregator)
    runner = app._following.runner(aggregator.study)

    async def full() -> float:
        raise NoRoom("peer.sqlite: cannot be written (SQLITE_FULL). Make room on that disk")

    with monkeypatch.context() as filled:
        filled.setattr(runner, "step", full)
        await app.run(once=True)
        await app.run(once=True)
    lines = [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR]
    assert len(lines) == 1 and "peer.sqlite" in lines[0] and "Make room" in lines[0]
    await app.run(once=True)
    app.close()


async def test_a_bit_of_a_key_in_the_ledger_is_damage(tmp_path: Path) -> None:
    """The table and its index both hold the key. The digest once read the index's copy, and the ledger the table's: a
    study then seemed to have spent nothing."""
    home, aggregator = await _lived(tmp_path / "home")
    whole = home.store_path.read_bytes()
    at, told = -1, 0
    while (at := whole.find(aggregator.study, at + 1)) >= 0:
        copy = _copy(home, tmp_path / f"copy {at}")
        Harm("bit", at).do(copy.store_path)
        try:
            app = reopened(copy, aggregator)
        except Damaged:
            told += 1
            continue
        assert app.budget().entry(aggregator.study) is not None and app.status()[0].slots
        app.close()
    assert told >= 4
