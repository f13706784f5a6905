"""A newer program opens what an older one left in the middle of two studies, and finishes both.

The homes in `homes-COMMIT.zip` were written by the code of that commit (see `make_homes`).
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

import aggregator.store.migrations
import anon.storage.migration
import peer.store.database.migrations
from aggregator.app import AggregatorApp
from aggregator.store.home import open_home
from anon.errors import Refused
from anon.storage.crash_points import VARIABLE
from anon.storage.migration import KEPT, Schema, upgrade, version_of
from peer.app import PeerApp
from peer.rules.lifecycle import State
from peer.rules.packet_lifecycle import Status
from peer.store.backup.archive import restore
from peer.store.home import PeerHome
from peer.store.pausing import FOREVER
from peer.store.store import Store
from tests.support.clock import Clock
from tests.upgrade.left_homes import Left
from tests.upgrade.two_studies import FIRST, PEERS, SECOND, Leading, Town, town

pytestmark = pytest.mark.process
OLDEST, LATER_ONES = "2b36bc0", ("41e11d4", "fc63503")
"""The commits whose programs wrote the homes."""

LATER = ("pauses", "waiting", "damaged_packets", "enrolment_checks", "enrolled", "packet_shares", "lists", "buckets", "answers", "tellers")
COLUMNS_LATER = ("evaluation", "unit", "condition", "round")
STORES = {"ada": "peer.sqlite", "aggregator": "aggregator.sqlite"}
WHOLE = {"ada": peer.store.database.migrations.SCHEMA, "aggregator": aggregator.store.migrations.SCHEMA}


def _unpacked(commit: str, folder: Path) -> Left:
    with zipfile.ZipFile(Path(__file__).parent / f"homes-{commit}.zip") as archive:
        archive.extractall(folder)
    return Left(folder, json.loads((folder / "clock.json").read_text()))


@pytest.fixture
def left(tmp_path: Path) -> Left:
    """Homes of the oldest schemas."""
    return _unpacked(OLDEST, tmp_path / "homes")


@pytest.fixture(params=[OLDEST, *LATER_ONES])
def left_by_each(tmp_path: Path, request: pytest.FixtureRequest) -> Left:
    """Homes of each older program."""
    return _unpacked(request.param, tmp_path / "homes")


def _opened(folder: Path, name: str) -> None:
    """Open a home as its program does."""
    if name == "aggregator":
        asyncio.run(_aggregator(folder / name))
    else:
        PeerApp(PeerHome(folder / name), Leading, Clock(0.0), os.urandom).close()


async def _aggregator(home: Path) -> None:
    async with AggregatorApp(home, Clock(0.0), os.urandom, processes=0):
        pass


def _packet(file: Path) -> bytes:
    with closing(sqlite3.connect(file)) as connection:
        ((packet,),) = connection.execute("SELECT packet FROM outbox WHERE packet IS NOT NULL").fetchall()
        return bytes(packet)


def _everything(file: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table, but for the tables, columns and limits that came later."""
    with closing(sqlite3.connect(file)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = {name: connection.execute(f"SELECT {_columns(connection, name)} FROM {name}").fetchall() for name in tables if name not in LATER}
    if "meta" in rows:
        kept = [row for row in rows["meta"] if not str(row[0]).startswith(("paused", "digest"))]
        rows["meta"] = [(key, {**json.loads(value), "minimum_window": None, "designs": None}) if key == "policy" else (key, value) for key, value in kept]
    return {name: sorted(found, key=repr) for name, found in rows.items()}


def _columns(connection: sqlite3.Connection, table: str) -> str:
    return ", ".join(row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[1] not in COLUMNS_LATER)


def _copies(home: Path) -> list[str]:
    return sorted(one.name for one in home.glob(f"*{KEPT}*"))


def test_the_homes_are_of_the_schemas_before_these(left: Left) -> None:
    assert {name: version_of(left.folder / name / file) for name, file in STORES.items()} == {"ada": 1, "aggregator": 0}


async def test_both_studies_are_finished_and_the_queued_packet_leaves_byte_for_byte(left_by_each: Left) -> None:
    left = left_by_each
    written = version_of(left.folder / "ada" / "peer.sqlite")
    waiting = _packet(left.folder / "ada" / "peer.sqlite")
    async with town(left.folder, left.clock) as here:
        (queued,) = here.peer("ada").store.outbox_entries(here.study(FIRST))
        assert queued.status is Status.QUEUED and here.peer("eve").store.state(here.study(FIRST)) is State.SENT
        older = written < WHOLE["ada"].version
        assert _copies(left.folder / "ada") == ([f"peer.sqlite.v{written}{KEPT}"] if older else [])
        await here.until(queued.send_at + 5, *PEERS)
        assert waiting in here.route.packets
        await _finished(here, FIRST, PEERS)
        await _finished(here, SECOND, ("ada", "ben"))
        assert here.route.packets.count(waiting) == 1 and len(here.route.packets) == 4  # ada's and ben's, twice
    assert all(_copies(left.folder / name) == [] for name in ("ada", "ben", "aggregator"))  # nothing erased is kept


async def _finished(here: Town, title: str, members: tuple[str, ...]) -> None:
    study = here.study(title)
    await here.until(here.aggregator.study(study).manifest.timetable.ends + 30, *PEERS)
    assert str(here.aggregator.study(study).phase) == "published"
    for name in members:
        (receipt,) = [one for one in here.peer(name).receipts() if one.study == study]
        assert (receipt.status, receipt.word) == (Status.INCLUDED, "accepted"), name
        assert here.peer(name).store.state(study) is State.FINISHED


async def test_a_pause_of_before_holds(left_by_each: Left) -> None:
    left = left_by_each
    async with town(left.folder, left.clock) as here:
        ben, second = here.peer("ben"), here.study(SECOND)
        assert ben.paused_until(second) == left.clock + 1500 and ben.paused_until() is None
        assert here.peer("ada").paused_until(second) is None


@pytest.mark.parametrize("spoilt", ["", "soon", "nan", "-1"])
def test_a_pause_of_before_that_cannot_be_read_has_no_end(left: Left, spoilt: str) -> None:
    home = PeerHome(left.folder / "ada")
    with closing(sqlite3.connect(home.store_path)) as connection, connection:
        connection.execute("INSERT INTO meta VALUES ('paused', ?)", (spoilt,))
    peer.store.database.migrations.upgrade_home(home)
    with closing(Store(home.store_path, os.urandom)) as store:
        assert store.paused_until() == FOREVER


@pytest.mark.parametrize("name", STORES)
def test_the_copy_is_the_old_file_for_its_owner_alone(left: Left, name: str) -> None:
    file = left.folder / name / STORES[name]
    number, rows = version_of(file), _everything(file)
    _opened(left.folder, name)
    copy = file.with_name(f"{file.name}.v{number}{KEPT}")
    assert (version_of(copy), version_of(file)) == (number, WHOLE[name].version)
    assert _everything(copy) == rows == _everything(file)
    assert copy.stat().st_mode & 0o777 == 0o600
    _opened(left.folder, name)
    assert _copies(file.parent) == [copy.name]


@pytest.mark.parametrize("name", STORES)
def test_a_home_of_a_newer_program_is_refused_and_nothing_is_changed(left: Left, name: str) -> None:
    file = left.folder / name / STORES[name]
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA user_version = {WHOLE[name].version + 1}")
    before = {one: one.read_bytes() for one in file.parent.rglob("*") if one.is_file()}
    with pytest.raises(Refused, match=r"written by a newer anonml .* install that one again") as refused:
        _opened(left.folder, name)
    assert "\n" not in str(refused.value)
    assert {one: one.read_bytes() for one in before} == before and _copies(file.parent) == []


def _killed(folder: Path, name: str, point: str) -> None:
    os.environ[VARIABLE] = point
    _opened(folder, name)


@pytest.mark.parametrize("name", STORES)
@pytest.mark.parametrize("point", anon.storage.migration.POINTS)
def test_a_kill_leaves_the_old_file_or_the_new_one(left: Left, name: str, point: str) -> None:
    file = left.folder / name / STORES[name]
    number, rows = version_of(file), _everything(file)
    child = multiprocessing.get_context("forkserver").Process(target=_killed, args=(left.folder, name, point))
    child.start()
    child.join(60)
    assert child.exitcode == -9
    assert version_of(file) == (WHOLE[name].version if point.startswith("after") else number)
    assert _everything(file) == rows
    _opened(left.folder, name)
    assert version_of(file) == WHOLE[name].version and _everything(file) == rows
    assert _copies(file.parent) == [f"{file.name}.v{number}{KEPT}"]


def test_a_step_that_fails_leaves_the_old_file(left: Left) -> None:
    def fails(connection: sqlite3.Connection) -> None:
        connection.execute("DROP TABLE outbox")
        raise sqlite3.OperationalError("no space")

    home = PeerHome(left.folder / "ada")
    rows = _everything(home.store_path)
    with pytest.raises(sqlite3.OperationalError):
        upgrade(home.store_path, Schema(2, {1: fails}), home.running)
    assert version_of(home.store_path) == 1 and _everything(home.store_path) == rows


def test_while_an_older_program_runs_the_home_nothing_is_changed(left: Left, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anon.storage.migration, "PATIENCE_SECONDS", 0.3)
    home = PeerHome(left.folder / "ada")
    with home.running(), pytest.raises(Refused, match="another process runs this peer"):
        peer.store.database.migrations.upgrade_home(home)
    held = open_home(left.folder / "aggregator", os.urandom).lock()
    with closing(held), pytest.raises(Refused, match="another process is serving it"):
        asyncio.run(_aggregator(left.folder / "aggregator"))
    assert (version_of(home.store_path), _copies(home.path)) == (1, [])


def test_who_finds_it_done_meanwhile_goes_on(left: Left) -> None:
    home, looks = PeerHome(left.folder / "ada"), 0

    def busy_then_done(seconds: float) -> None:
        nonlocal looks
        looks += 1
        held.__exit__(None, None, None)
        peer.store.database.migrations.upgrade_home(home)

    held = home.running()
    held.__enter__()
    assert upgrade(home.store_path, peer.store.database.migrations.SCHEMA, home.running, busy_then_done) is None
    assert looks == 1 and version_of(home.store_path) == WHOLE["ada"].version


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


def test_a_backup_of_an_older_program_is_restored_and_one_of_a_newer_is_refused(left: Left, tmp_path: Path) -> None:
    home, fresh, other = (PeerHome(path) for path in (left.folder / "ada", tmp_path / "fresh", tmp_path / "other"))
    restore(fresh, _backup_of(home, 1, tmp_path / "older"), left.clock)
    assert version_of(fresh.store_path) == WHOLE["ada"].version and _copies(fresh.path) == []
    with closing(Store(fresh.store_path, os.urandom)) as store:
        assert len(store.studies()) == 2
    with pytest.raises(Refused, match="newer anonml"):
        restore(other, _backup_of(home, WHOLE["ada"].version + 1, tmp_path / "newer"), left.clock)
    assert not other.store_path.exists()


def test_a_store_whose_making_was_killed_is_made_again(tmp_path: Path) -> None:
    home = PeerHome(tmp_path / "home")
    home.prepare()
    with closing(sqlite3.connect(home.store_path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    assert home.store_path.stat().st_size > 0
    with closing(Store(home.store_path, os.urandom)) as store:
        assert store.studies() == [] and version_of(home.store_path) == WHOLE["ada"].version


def _with_rounds(file: Path) -> tuple[dict[int, int], bytes]:
    """Make the stored study one of several rounds, as a paper's has, with a packet of its last survey and a dummy."""
    from tests.support.fake_aggregator import PAPER, FakeAggregator

    manifest = FakeAggregator.with_study(PAPER).manifest
    rounds = {survey.survey: survey.round for survey in manifest.surveys}
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DELETE FROM outbox")
        study = bytes(connection.execute("SELECT study FROM studies").fetchone()[0])
        connection.execute("UPDATE studies SET manifest = ? WHERE study = ?", (manifest.to_bytes(), study))
        for slot, survey in [*enumerate(rounds), (300, max(rounds))]:
            connection.execute(
                "INSERT INTO outbox (study, slot, survey, epsilon, send_at, status) VALUES (?, ?, ?, 7, 1.5, 'queued')",
                (study, slot, survey),
            )
    return rounds, study


def test_a_packet_of_before_has_the_round_of_its_survey(left: Left) -> None:
    home = PeerHome(left.folder / "ada")
    rounds, study = _with_rounds(home.store_path)
    peer.store.database.migrations.upgrade_home(home)
    with closing(Store(home.store_path, os.urandom)) as store:
        entries = store.outbox_entries(study)
    assert [(one.slot, one.survey, one.round) for one in entries[:-1]] == [
        (slot, survey, rounds[survey]) for slot, survey in enumerate(rounds)
    ]
    assert max(rounds.values()) > 0, "the study has one round, and shows nothing"
    assert (entries[-1].slot, entries[-1].round) == (300, 0)
    assert {(one.epsilon, one.send_at, one.status) for one in entries} == {(7, 1.5, Status.QUEUED)}


def test_a_study_whose_manifest_cannot_be_read_keeps_its_packets(left: Left) -> None:
    home = PeerHome(left.folder / "ada")
    before = _packet(home.store_path)
    with closing(sqlite3.connect(home.store_path)) as connection, connection:
        connection.execute("UPDATE studies SET manifest = x'00'")
    peer.store.database.migrations.upgrade_home(home)
    assert _packet(home.store_path) == before
