"""`anonml teller doctor`: one line for each check, one next action for each fault, and nothing is changed."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from anon.errors import Malformed, Unreachable
from anon.kit.diagnosis.checks import Check
from anon.teller import diagnosis
from anon.teller.cli import app
from anon.teller.diagnosis import findings
from anon.teller.home import DATABASE, SIGNING, TellerHome, existing_home
from anon.teller.service import ask_words, serve
from anon.transparency.fingerprint import teller_words
from tests.support.served_tellers import make_home


@pytest.fixture(autouse=True)
def no_installation_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those have tests of their own."""
    monkeypatch.setattr(diagnosis, "SERVICE_CHECKS", (lambda: Check("clock", True),))


@asynccontextmanager
async def served(folder: Path, name: str = "clinic") -> AsyncIterator[TellerHome]:
    make_home(folder, name)
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    home = existing_home(folder, os.urandom)
    task = asyncio.create_task(serve(home, os.urandom, ready.set_result, lambda _line: None, lambda *_: None))
    await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
    try:
        yield home
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def words_of(home: TellerHome) -> str:
    return teller_words(bytes(home.key.verify_key))


def away(_home: TellerHome) -> tuple[str, str]:
    raise Unreachable("the teller did not answer; nothing is lost, try again later")


def by_name(home: Path, ask: diagnosis.Ask) -> dict[str, Check]:
    return {one.name.partition(" ")[0]: one for one in findings(home, ask)}


async def test_a_served_teller_answers_with_its_own_words(tmp_path: Path) -> None:
    async with served(tmp_path / "home") as home:
        assert await ask_words(home) == ("clinic", words_of(home))
        found = await asyncio.to_thread(lambda: [*findings(home.path, lambda one: asyncio.run(ask_words(one)))])
        assert all(one.ok for one in found), found
        assert [one.name.partition(" ")[0] for one in found] == ["clock", "home", "words", "disk", "reachable"]
        assert words_of(home) in found[2].name and "clinic" in found[2].name


async def test_one_that_is_not_served_says_how_to_start_it(tmp_path: Path) -> None:
    make_home(tmp_path, "clinic")
    with pytest.raises(Unreachable, match="the teller did not answer"):
        await ask_words(existing_home(tmp_path, os.urandom))
    reached = by_name(tmp_path, away)["reachable"]
    assert not reached.ok and "start it: `anonml teller serve`" in reached.action


def test_another_teller_at_the_address_is_found_out(tmp_path: Path) -> None:
    make_home(tmp_path, "clinic")
    own = words_of(existing_home(tmp_path, os.urandom))
    for answer in (("clinic", "other words"), ("students", own)):
        reached = by_name(tmp_path, lambda _home, answer=answer: answer)["reachable"]
        assert not reached.ok and "another teller answers there" in reached.action
    assert by_name(tmp_path, lambda _home: ("clinic", own))["reachable"].ok


async def test_what_is_no_teller_is_no_answer(tmp_path: Path) -> None:
    place = make_home(tmp_path, "clinic")
    host, _, port = place.address.rpartition(":")

    async def page(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(page, host, int(port)):
        with pytest.raises(Malformed, match="is no teller"):
            await ask_words(existing_home(tmp_path, os.urandom))


def test_a_home_that_is_missing_or_damaged_and_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = by_name(tmp_path / "none", away)
    assert (
        not missing["home"].ok and "anonml teller init" in missing["home"].action and not (tmp_path / "none").exists()
    )
    make_home(tmp_path / "home", "clinic")
    monkeypatch.setattr(diagnosis, "ROOM", 2**70)
    full = by_name(tmp_path / "home", away)["disk"]
    assert not full.ok and "make room" in full.action
    (tmp_path / "home" / SIGNING).write_bytes(b"cut")
    (tmp_path / "home" / DATABASE).write_bytes(b"")
    damaged = by_name(tmp_path / "home", away)["home"]
    assert not damaged.ok and "3 bytes in place of 32" in damaged.action


def test_the_command_ends_with_1_for_a_fault(tmp_path: Path) -> None:
    make_home(tmp_path, "clinic")
    done = CliRunner().invoke(app, ["doctor", "--home", str(tmp_path), "--json"])
    told = {one["name"].partition(" ")[0]: one["ok"] for one in json.loads(done.output)}
    assert done.exit_code == 1 and told == {
        "clock": True,
        "home": True,
        "words": True,
        "disk": True,
        "reachable": False,
    }
