"""The runner of migrations moves both homes on by a toy step: the old file or the new one, and a copy meanwhile."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import aggregator.store.migrations
import aggregator.store.sqlite
import anon.storage.migration
import peer.store.backup.archive
import peer.store.database.migrations
import peer.store.database.store_file
from aggregator.store.home import open_home
from anon.errors import Refused
from anon.storage.crash_points import VARIABLE
from anon.storage.migration import KEPT, Schema, upgrade, version_of
from peer.app import PeerApp
from peer.store.backup.archive import restore
from peer.store.home import PeerHome
from peer.store.store import Store
from tests.support.clock import Clock
from tests.support.fake_aggregator import FakeAggregator, until_closed
from tests.support.fake_aggregator import peer as peer_of
from tests.support.forks import FORKS
from tests.support.studies import income_study
from tests.support.world import in_memory, make_app

pytestmark = pytest.mark.process
STORES = {"peer": "peer.sqlite", "aggregator": "aggregator.sqlite"}
OWN = {"peer": peer.store.database.migrations.SCHEMA, "aggregator": aggregator.store.migrations.SCHEMA}
HOLDERS = {
    "peer": (peer.store.database.migrations, peer.store.database.store_file, peer.store.backup.archive),
    "aggregator": (aggregator.store.migrations, aggregator.store.sqlite),
}
"""The modules that know the number."""


def _toy_step(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE toy (place INTEGER, value INTEGER)")


def _with_step(name: str, step: Callable[[sqlite3.Connection], None] = _toy_step) -> Schema:
    own = OWN[name]
    return Schema(own.version + 1, {own.version: step}, own.kept)


@contextmanager
def newer(name: str) -> Iterator[Schema]:
    """The program of one schema later."""
    schema = _with_step(name)
    with pytest.MonkeyPatch.context() as patch:
        for module in HOLDERS[name]:
            patch.setattr(module, "SCHEMA", schema)
        yield schema


@pytest.fixture
async def left(tmp_path: Path) -> Path:
    """Homes in the middle of a study: the peer's has a queued packet, the aggregator's an enrolment."""
    fake = FakeAggregator.with_study()
    app = peer_of(tmp_path / "peer", fake)
    await app.join(fake.invite, fake.manifest.epsilon)
    await until_closed(app, fake)
    app.close()
    async with in_memory(tmp_path / "aggregator", income_study()) as world:
        await world.enrol(1)
    return tmp_path


def _opened(folder: Path, name: str) -> None:
    """Open a home as its program does."""
    if name == "aggregator":
        asyncio.run(_aggregator(folder / name))
    else:
        PeerApp(PeerHome(folder / name), lambda: None, Clock(0.0), os.urandom).close()  # type: ignore[arg-type, return-value]


async def _aggregator(home: Path) -> None:
    async with make_app(home, Clock(0.0)):
        pass


def _everything(file: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table, but the toy and the digest, which tells the schema's number."""
    with closing(sqlite3.connect(file)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables if name != "toy"}
    return {name: sorted((row for row in found if row[0] != "digest"), key=repr) for name, found in rows.items()}


def _copies(home: Path) -> list[str]:
    return sorted(copy.name for copy in home.glob(f"*{KEPT}*"))


def _files(home: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", STORES)
def test_the_copy_is_the_old_file_for_its_owner_alone(left: Path, name: str) -> None:
    file = left / name / STORES[name]
    number, rows = version_of(file), _everything(file)
    assert sum(map(len, rows.values())) > 5, "an empty home shows nothing"
    with newer(name) as schema:
        _opened(left, name)
        copy = file.with_name(f"{file.name}.v{number}{KEPT}")
        assert (version_of(copy), version_of(file)) == (number, schema.version) == (OWN[name].version, number + 1)
        assert _everything(copy) == rows == _everything(file)
        assert copy.stat().st_mode & 0o777 == 0o600
        _opened(left, name)
        assert _copies(file.parent) == [copy.name]


def test_what_is_erased_afterwards_is_in_no_copy(left: Path) -> None:
    home = PeerHome(left / "peer")
    with newer("peer"):
        peer.store.database.migrations.upgrade_home(home)
        with closing(Store(home.store_path, os.urandom)) as store:
            assert _copies(home.path) != []
            store.set_policy(store.policy())
        assert _copies(home.path) == []


async def test_compacting_leaves_no_copy(left: Path) -> None:
    with newer("aggregator"):
        async with make_app(left / "aggregator", Clock(0.0)) as app:
            assert _copies(left / "aggregator") != []
            await (study := app.studies()[0]).tools.packets.compact(study.study)
            assert _copies(left / "aggregator") == []


@pytest.mark.parametrize("name", STORES)
def test_a_home_of_a_newer_program_is_refused_and_nothing_is_changed(left: Path, name: str) -> None:
    with newer(name):
        _opened(left, name)
    for copy in _copies(left / name):
        (left / name / copy).unlink()
    before = _files(left / name)
    with pytest.raises(Refused, match=r"written by a newer anonml .* install that one again") as refused:
        _opened(left, name)
    assert "\n" not in str(refused.value)
    assert {path: path.read_bytes() for path in before} == before and _copies(left / name) == []


@pytest.mark.parametrize("name", STORES)
def test_a_home_of_before_the_first_release_is_refused_and_nothing_is_changed(left: Path, name: str) -> None:
    file = left / name / STORES[name]
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA user_version = {OWN[name].version - 1}")
    before = _files(left / name)
    with pytest.raises(Refused, match=r"finish its studies with that one, or begin in another folder with --home"):
        _opened(left, name)
    assert {path: path.read_bytes() for path in before} == before and _copies(left / name) == []


def _killed(folder: Path, name: str, point: str) -> None:
    os.environ[VARIABLE] = point
    with newer(name):
        _opened(folder, name)


@pytest.mark.parametrize("name", STORES)
@pytest.mark.parametrize("point", anon.storage.migration.POINTS)
def test_a_kill_leaves_the_old_file_or_the_new_one(left: Path, name: str, point: str) -> None:
    file = left / name / STORES[name]
    number, rows = version_of(file), _everything(file)
    child = FORKS.Process(target=_killed, args=(left, name, point))
    child.start()
    child.join(60)
    assert child.exitcode == -9
    assert version_of(file) == (number + 1 if point.startswith("after") else number)
    assert _everything(file) == rows
    with newer(name):
        _opened(left, name)
    assert version_of(file) == number + 1 and _everything(file) == rows
    assert _copies(file.parent) == [f"{file.name}.v{number}{KEPT}"]


def test_a_step_that_fails_leaves_the_old_file(left: Path) -> None:
    def fails(connection: sqlite3.Connection) -> None:
        connection.execute("DROP TABLE outbox")
        raise sqlite3.OperationalError("no space")

    home = PeerHome(left / "peer")
    rows = _everything(home.store_path)
    with pytest.raises(sqlite3.OperationalError):
        upgrade(home.store_path, _with_step("peer", fails), home.running)
    assert version_of(home.store_path) == OWN["peer"].version and _everything(home.store_path) == rows


def test_while_an_older_program_runs_the_home_nothing_is_changed(left: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anon.storage.migration, "PATIENCE_SECONDS", 0.3)
    home = PeerHome(left / "peer")
    with newer("peer"), home.running(), pytest.raises(Refused, match="another process runs this peer"):
        peer.store.database.migrations.upgrade_home(home)
    held = open_home(left / "aggregator", os.urandom).lock()
    with newer("aggregator"), closing(held), pytest.raises(Refused, match="another process is serving it"):
        asyncio.run(_aggregator(left / "aggregator"))
    assert (version_of(home.store_path), _copies(home.path)) == (OWN["peer"].version, [])


def test_who_finds_it_done_meanwhile_goes_on(left: Path) -> None:
    home, looks = PeerHome(left / "peer"), 0
    schema = _with_step("peer")

    def busy_then_done(seconds: float) -> None:
        nonlocal looks
        looks += 1
        held.__exit__(None, None, None)
        upgrade(home.store_path, schema, home.running)

    held = home.running()
    held.__enter__()
    assert upgrade(home.store_path, schema, home.running, busy_then_done) is None
    assert looks == 1 and version_of(home.store_path) == schema.version


def _backup_of(home: PeerHome, number: int, file: Path) -> Path:
    """As a program whose schema has this number writes it."""
    copy = file.with_suffix(".sqlite")
    with closing(sqlite3.connect(home.store_path)) as old, closing(sqlite3.connect(copy)) as new:
        old.backup(new)
        new.execute("PRAGMA journal_mode = DELETE")
        new.execute(f"PRAGMA user_version = {number}")
    with zipfile.ZipFile(file, "w") as archive:
        archive.write(copy, "peer.sqlite")
    return file


def test_a_backup_of_an_older_program_is_restored_and_one_of_a_newer_is_refused(left: Path, tmp_path: Path) -> None:
    home, fresh, other = (PeerHome(path) for path in (left / "peer", tmp_path / "fresh", tmp_path / "other"))
    number = OWN["peer"].version
    with newer("peer"):
        restore(fresh, _backup_of(home, number, tmp_path / "older"), 0.0)
        assert version_of(fresh.store_path) == number + 1 and _copies(fresh.path) == []
        with closing(Store(fresh.store_path, os.urandom)) as store:
            assert len(store.studies()) == 1
    for name, wrong, said in (("newer", number + 1, "newer anonml"), ("before", number - 1, "begin in another folder")):
        with pytest.raises(Refused, match=said):
            restore(other, _backup_of(home, wrong, tmp_path / name), 0.0)
        assert not other.store_path.exists()


def test_a_store_whose_making_was_killed_is_made_again(tmp_path: Path) -> None:
    home = PeerHome(tmp_path / "home")
    home.prepare()
    with closing(sqlite3.connect(home.store_path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    assert home.store_path.stat().st_size > 0
    with closing(Store(home.store_path, os.urandom)) as store:
        assert store.studies() == [] and version_of(home.store_path) == OWN["peer"].version
