"""A home out of a backup keeps a log as every other does. It once kept a rollback journal for ever: whoever read the
home held its packets up, and erased values were unlinked with the journal and not overwritten."""

from __future__ import annotations

import shutil
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from anon.errors import Damaged, Malformed, NoRoom, Refused
from anon.queries.sandbox import plain_tables_of
from peer.app import PeerApp
from peer.data.deleting import delete_table
from peer.data.evaluate import at_once
from peer.data.importing import import_rows
from peer.store.backup.archive import backup, restore
from peer.store.database import store_file
from peer.store.home import PeerHome
from peer.store.store import Store
from tests.support.fake_aggregator import DECLARED, FakeAggregator, peer, reopened

SECRET = "4711-of-a-diary"


async def copied(folder: Path, aggregator: FakeAggregator) -> Path:
    """A backup of a home that joined a study and holds data."""
    app = peer(folder / "old", aggregator)
    import_rows(app._home.data_path, "diary", ("text",), [(SECRET * 9,)] * 50)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    app.close()
    await backup(PeerHome(folder / "old"), folder / "backup", evaluate=at_once)
    return folder / "backup"


async def came_back(folder: Path, aggregator: FakeAggregator) -> PeerApp:
    home = PeerHome(folder / "new")
    restore(home, await copied(folder, aggregator), aggregator.clock())
    return reopened(home, aggregator)


async def test_a_reader_that_stands_still_does_not_stop_a_restored_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_file, "BUSY_SECONDS", 0.05)
    aggregator = FakeAggregator.with_study(DECLARED)
    app = await came_back(tmp_path, aggregator)
    with closing(sqlite3.connect(app._home.store_path, isolation_level=None)) as status:
        status.execute("BEGIN")
        status.execute("SELECT count(*) FROM studies").fetchone()  # `anonml peer status`, stopped by Ctrl-Z
        await app.step(aggregator.study)
    assert len(aggregator.sent("enrol")) == 1
    assert app.store.state(aggregator.study) == "enrolled"
    app.close()


async def test_a_deleted_table_of_a_restored_home_is_in_no_journal(tmp_path: Path) -> None:
    aggregator = FakeAggregator.with_study(DECLARED)
    app = await came_back(tmp_path, aggregator)
    app.close()
    data = app._home.data_path
    seen: list[str] = []
    delete_table(data, "diary", before=lambda: seen.extend(path.name for path in data.parent.glob("*-journal")))
    assert seen == []
    assert SECRET.encode() not in data.read_bytes()


async def test_a_restore_that_is_killed_leaves_no_older_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another program has the store open, a consent may stand in its log alone; and the log was removed first."""
    aggregator = FakeAggregator.with_study(DECLARED)
    app = peer(tmp_path / "home", aggregator)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await backup(app._home, tmp_path / "file", evaluate=at_once)
    app.close()

    replaced = Path.replace

    def killed(file: Path, target: Path) -> Path:
        if file.name == "peer.sqlite":
            raise KeyboardInterrupt
        return replaced(file, target)

    with monkeypatch.context() as killing:
        killing.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            restore(app._home, tmp_path / "file", aggregator.clock())
    with pytest.raises(Damaged, match="missing"):
        reopened(PeerHome(tmp_path / "home"), aggregator)
    restore(PeerHome(tmp_path / "home"), tmp_path / "file", aggregator.clock())
    assert reopened(PeerHome(tmp_path / "home"), aggregator).budget().available == 0


@pytest.mark.slow
async def test_a_backup_without_tables_leaves_those_that_are_there(tmp_path: Path) -> None:
    """The log of the owner's tables was removed, with the rows that stood in it alone."""
    aggregator = FakeAggregator.with_study(DECLARED)
    app = peer(tmp_path / "home", aggregator)
    app.close()
    await backup(app._home, tmp_path / "file", evaluate=at_once)
    data = app._home.data_path
    with closing(sqlite3.connect(data)) as reader:
        import_rows(data, "mine", ("a",), [(1,)])
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM mine").fetchall()
        import_rows(data, "diary", ("text",), [("kept",)])  # what is read cannot be moved out of the log
        reader.rollback()
        restore(app._home, tmp_path / "file", aggregator.clock())
    assert sorted(plain_tables_of(data)) == ["diary", "mine"]


@pytest.mark.parametrize("name", ["peer.sqlite", "data.sqlite"])
async def test_a_journal_that_a_killed_program_left_is_not_played_into_what_is_restored(
    tmp_path: Path, name: str
) -> None:
    aggregator = FakeAggregator.with_study(DECLARED)
    file = await copied(tmp_path, aggregator)
    home = PeerHome(tmp_path / "new")
    home.prepare()
    left = home.path / f"{name}-journal"
    left.write_bytes(b"the pages of another file")
    restore(home, file, aggregator.clock())
    assert not left.exists()


async def test_a_restore_whose_log_cannot_be_emptied_puts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restore's bookings (budget that may have been spent) would stay behind in the database's log."""
    aggregator = FakeAggregator.with_study(DECLARED)
    file = await copied(tmp_path, aggregator)
    monkeypatch.setattr(Store, "close", lambda self: None)
    with pytest.raises(NoRoom, match="log"):
        restore(PeerHome(tmp_path / "new"), file, aggregator.clock())
    assert not (tmp_path / "new" / "peer.sqlite").exists()


@pytest.mark.parametrize("ledger", [b"", b"x"])
@pytest.mark.parametrize("final", [False, True])
async def test_a_backup_with_an_emptied_ledger_brings_no_budget_back(
    tmp_path: Path, ledger: bytes, final: bool
) -> None:
    """SQLite takes a file of less than a page for an empty database, and a new ledger would be made in it."""
    whole, emptied = await copied(tmp_path, FakeAggregator.with_study(DECLARED)), tmp_path / "emptied"
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(emptied, "w") as new:
        for name in old.namelist():
            new.writestr(name, ledger if name == "peer.sqlite" else old.read(name))
        if final:
            new.writestr("final", b"")
    home = PeerHome(tmp_path / "new")
    with pytest.raises(Malformed, match="not the backup of a peer"):
        restore(home, emptied)
    assert not home.store_path.exists() and not home.data_path.exists()


async def test_a_backup_that_unpacks_to_more_than_the_disk_has_is_refused_before_a_byte(tmp_path: Path) -> None:
    """A megabyte holds a gigabyte of zeros."""
    aggregator = FakeAggregator.with_study(DECLARED)
    file, home = await copied(tmp_path, aggregator), PeerHome(tmp_path / "new")
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
    swollen = bytearray(file.read_bytes())
    for entry in entries:
        at = swollen.rindex(entry.filename.encode()) - 46  # in the directory at the end
        swollen[at + 24 : at + 28] = (2**32 - 2).to_bytes(4, "little")
    file.write_bytes(swollen)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=len(entries) * (2**32 - 2) - 1))
        with pytest.raises(Refused, match=r"takes [0-9,]+ MiB .* and [0-9,]+ MiB are free"):
            restore(home, file, aggregator.clock())
    assert not home.store_path.exists() and not any(home.scratch_path.iterdir())
