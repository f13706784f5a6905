"""How long a backup keeps a peer away says nothing about its owner's data: neither what a query does on them, nor how
many there are."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

import peer.store.backup.archive as backups
from anon.errors import Refused
from anon.queries.process import Work
from peer.data.evaluate import at_once, by_deadline
from peer.data.importing import import_rows
from peer.run.taking_back import Choice
from peer.store.backup.archive import backup, restore
from peer.store.home import PeerHome
from tests.support.fake_aggregator import DECLARED, FakeAggregator, peer

ALLOWED = 2.0
SLOW = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000000)"
    " SELECT CASE WHEN age = 44 THEN (SELECT count(*) FROM n) ELSE 0 END FROM person"
)
AIMED = DECLARED.replace("SELECT age FROM person", SLOW)


async def joined(home: Path, aggregators: list[FakeAggregator], age: int) -> PeerHome:
    """A home with a table and an enrolment in each of the studies."""
    app = peer(home, aggregators[0])
    import_rows(PeerHome(home).data_path, "person", ("age", "cups", "tired"), [(age, "some", 1)])
    for aggregator in aggregators:
        app._route_factory = lambda aggregator=aggregator: aggregator
        await app.join(aggregator.invite, aggregator.manifest.epsilon)
    app.close()
    return PeerHome(home)


async def test_a_backup_takes_as_long_whatever_a_query_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backups, "evaluation_allowance", lambda _table: ALLOWED)
    aggregator = FakeAggregator.with_study(AIMED)
    for age in (44, 20):
        home = await joined(tmp_path / str(age), [aggregator], age)
        slept: list[float] = []

        async def sleep(seconds: float, slept: list[float] = slept) -> None:
            slept.append(seconds)

        assert await backup(home, tmp_path / f"copy{age}", evaluate=by_deadline(sleep)) == 1
        assert slept == [ALLOWED]


async def test_without_being_told_how_it_waits_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The query is over at once, and the backup is not."""
    monkeypatch.setattr(backups, "evaluation_allowance", lambda _table: ALLOWED)
    home, said, slept = (
        await joined(tmp_path / "home", [FakeAggregator.with_study(AIMED)], 20),
        list[str](),
        list[float](),
    )

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(backups, "by_deadline", lambda: by_deadline(sleep))
    await backup(home, tmp_path / "copy", tell=said.append)
    assert slept == [ALLOWED]
    assert said == ["fixing your answers: this takes 2 seconds, whatever your data are ...", ""]


async def test_all_studies_are_evaluated_beside_each_other(tmp_path: Path) -> None:
    first, second = FakeAggregator.with_study(), FakeAggregator.with_study()
    home, events = await joined(tmp_path / "home", [first, second], 20), list[str]()

    async def evaluate(work: Work, seconds: float) -> bytes:
        events.append("begins")
        await asyncio.sleep(0.01)
        events.append("ends")
        return await at_once(work, seconds)

    assert await backup(home, tmp_path / "copy", evaluate=evaluate) == 2
    assert events == ["begins", "begins", "ends", "ends"]


async def test_the_tables_are_copied_after_the_home_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = await joined(tmp_path / "home", [FakeAggregator.with_study()], 20)
    free: dict[str, bool] = {}

    def noted(source: Path, target: Path) -> Path:
        free[source.name] = not is_held(home)
        return copied(source, target)

    def written(*arguments: object) -> None:
        free["the file"] = not is_held(home)
        write(*arguments)

    copied, write = backups._copied, backups._write
    monkeypatch.setattr(backups, "_copied", noted)
    monkeypatch.setattr(backups, "_write", written)
    await backup(home, tmp_path / "copy", evaluate=at_once)
    assert free == {"peer.sqlite": False, "settings.json": False, "data.sqlite": True, "the file": True}
    assert not any(home.scratch_path.iterdir())
    restore(PeerHome(tmp_path / "new"), tmp_path / "copy", 0.0)
    assert (tmp_path / "new" / "data.sqlite").exists()


def is_held(home: PeerHome) -> bool:
    """True if a run would be refused."""
    try:
        with home.running():
            return False
    except Refused:
        return True


async def test_nothing_is_deleted_or_restored_while_tables_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    aggregator = FakeAggregator.with_study()
    home = await joined(tmp_path / "home", [aggregator], 20)
    await backup(home, tmp_path / "older", evaluate=at_once)
    app = peer(home.path, aggregator)
    refused: list[str] = []

    def attempts(*arguments: object) -> None:
        with app.taking_back() as taking:
            for attempt in (lambda: taking.delete_table("person", Choice.GO_ON), lambda: taking.erase(tell=False)):
                with pytest.raises(Refused, match="backup of it is being written") as fault:
                    attempt()
                refused.append(str(fault.value))
        with pytest.raises(Refused, match="backup of it is being written"):
            restore(home, tmp_path / "older", 0.0)
        write(*arguments)

    write = backups._write
    monkeypatch.setattr(backups, "_write", attempts)
    await backup(home, tmp_path / "copy", evaluate=at_once)
    assert len(refused) == 2
    app.close()
    assert home.data_path.exists()


async def test_what_a_killed_backup_copied_goes_when_the_home_is_next_held(tmp_path: Path) -> None:
    """Also what an earlier program left, which lay in the folder itself."""
    home = await joined(tmp_path / "home", [FakeAggregator.with_study()], 20)
    for left in (home.scratch_path / "peer.sqlite", home.scratch_path / os.urandom(8).hex() / "data.sqlite"):
        left.parent.mkdir(parents=True, exist_ok=True)
        left.write_bytes(b"secrets")
    with home.running():
        assert not any(home.scratch_path.iterdir())
