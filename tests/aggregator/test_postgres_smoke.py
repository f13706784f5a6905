"""PostgreSQL in every run of the tests where its server is: a study begins, is counted and compacted, and locks
hold."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy.exc import DBAPIError

from aggregator.rules.faults import DatabaseAway
from aggregator.store import postgres
from aggregator.store.postgres import PostgresDatabase
from anon.errors import Damaged, NoRoom
from tests.support.patience import turns
from tests.support.postgres import Server, programs
from tests.support.world import in_memory, study_text

here = pytest.mark.skipif(
    programs() is None, reason="PostgreSQL's server is missing (Debian: apt-get install postgresql)"
)


@pytest.mark.slow
@here
async def test_a_study_is_counted_and_its_locks_hold(postgres: Server, tmp_path: Path) -> None:
    async with in_memory(tmp_path / "home", study_text(), database_url=postgres.made()) as world:
        await world.collected(3)
        database, study = world.app._database, world.live.study
        assert isinstance(database, PostgresDatabase)
        order = list[str]()

        async def settling() -> None:
            async with database.write(settling=study):
                order.append("settled")

        async def writing() -> None:
            async with database.write():
                order.append("written")

        async with database.add(study), database.add(study):  # packets are being kept
            frozen = asyncio.create_task(settling())
            await turns()
            order.append("kept")
        await frozen
        async with database.write():  # a second one, of whichever process, waits for its end
            second = asyncio.create_task(writing())
            await turns()
            order.append("first")
        await second
        assert order == ["kept", "settled", "first", "written"]
        tools = world.live.tools
        await tools.packets.compact(study)
        assert sum((await tools.packets.counts(study)).values()) == 3
        await tools.packets.erase(study)
        assert await tools.packets.counts(study) == {}


@pytest.mark.parametrize(("code", "told"), [
    ("53100", NoRoom), ("XX001", Damaged), ("XX002", Damaged), ("08006", DatabaseAway), ("57P01", DatabaseAway),
    ("53300", DatabaseAway), ("42601", DBAPIError),
])  # fmt: skip
def test_a_server_s_fault_is_told_by_its_code(code: str, told: type[Exception]) -> None:
    database = PostgresDatabase("postgresql+asyncpg://somebody@nowhere/anonml")
    error = DBAPIError("SELECT 1", {}, SimpleNamespace(sqlstate=code))  # type: ignore[arg-type]
    assert type(database._translated(error)) is told


def test_a_server_that_goes_away_is_told_in_one_sentence_whatever_its_codes() -> None:
    database = PostgresDatabase("postgresql+asyncpg://somebody@nowhere/anonml")

    def said(code: str) -> str:
        return str(database._translated(DBAPIError("SELECT 1", {}, SimpleNamespace(sqlstate=code))))  # type: ignore[arg-type]

    assert {said("57P01"), said("57P03"), said("08003")} == {str(database._translated(ConnectionRefusedError()))}
    assert "28P01" in said("28P01"), "a password that is wrong is told"


class _Ended:
    """A session to which the server grants the leader's lock, and which it ends at the next statement after that."""

    def __init__(self) -> None:
        self.granted = self.invalidated = False

    async def execute(self, _statement: object) -> SimpleNamespace:
        self.granted = True
        return SimpleNamespace(scalar_one=lambda: True)

    async def exec_driver_sql(self, statement: str) -> None:
        if self.granted:
            raise ConnectionResetError(statement)

    async def invalidate(self) -> None:
        self.invalidated = True


async def test_a_leader_whose_session_ended_leads_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server freed its lock with the session, so another process leads by now."""
    monkeypatch.setattr(postgres, "_BETWEEN_SECONDS", 0.0)
    database, session = PostgresDatabase("postgresql+asyncpg://somebody@nowhere/anonml"), _Ended()
    with pytest.raises(ConnectionResetError):
        await database._hold(session)  # type: ignore[arg-type]
    assert session.granted and session.invalidated and not database._leading
