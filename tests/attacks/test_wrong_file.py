"""A wrong file that was imported is no dead end: the right one can take its place, by page and by command."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from peer.store.home import PeerHome
from tests.support.peer_command import Command
from tests.support.visiting import Visited, visited

RIGHT = b"age,cups,tired\n41,many,0\n"
WRONG = b"year,place\n1999,here\n"


@pytest.fixture
async def newcomer(tmp_path: Path) -> AsyncIterator[Visited]:
    """With a link that waits for an answer, and without data."""
    async with visited(tmp_path, data=False) as page:
        await page.submit("/start/connect", "/start/connect", link=page.aggregator.invite.link())
        await page.get("/start/data")
        yield page


async def _imported(page: Visited, name: str, content: bytes) -> str:
    """Import with what the page suggests; the words it showed before."""
    seen = await page.upload(name, content)
    place = seen.url.removeprefix(page.server.address)
    form = seen.form(place)
    lacking = {name: "-" for name in form if name.startswith("column.")}
    done = await page.post(place, form | lacking | {"answer": "import", "mode": "replace"})
    assert (await page.get(done.url)).status == 200
    return seen.words


async def test_the_right_file_takes_the_place_of_the_wrong_one(newcomer: Visited) -> None:
    page = newcomer
    words = await _imported(page, "old.csv", WRONG)
    assert "person : not there yet (this file lacks columns that they read)" in words
    assert page.server.site.tables() == {"person": ("year", "place")}
    words = await _imported(page, "sleep.csv", RIGHT)
    assert "person : there already; if it came from a wrong file, name it here, and these rows take its place" in words
    assert page.server.site.tables() == {"person": ("age", "cups", "tired")}
    assert "Did one of them come from a wrong file?" in (await page.get("/data")).words


async def test_a_file_that_does_not_fit_replaces_one_that_does_by_the_owners_word_on_every_column(
    newcomer: Visited,
) -> None:
    """The page compares it with the table that studies read; it is not there in that table's place before its owner
    says so."""
    page = newcomer
    await _imported(page, "sleep.csv", RIGHT)
    seen = await page.upload("old.csv", WRONG)
    place = seen.url.removeprefix(page.server.address)
    fields = seen.form(place) | {"answer": "import", "mode": "replace"}
    lacking = {f"column.{name}": "-" for name in ("age", "cups", "tired")}
    assert {name: fields[name] for name in lacking} == dict.fromkeys(lacking, ""), "nothing is answered beforehand"
    for silent in lacking:
        await page.post(place, fields | lacking | {silent: ""})
        assert page.server.site.tables() == {"person": ("age", "cups", "tired")}
    await page.post(place, fields | {"table": "old"})
    assert page.server.site.tables() == {"old": ("year", "place"), "person": ("age", "cups", "tired")}


async def test_an_owner_may_say_that_a_file_lacks_every_column(newcomer: Visited) -> None:
    page = newcomer
    await _imported(page, "sleep.csv", RIGHT)
    await _imported(page, "old.csv", WRONG)
    assert page.server.site.tables() == {"person": ("year", "place")}


def test_the_command_replaces_by_its_own_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    peer, wrong, right = Command(tmp_path / "home", capsys, monkeypatch), tmp_path / "old.csv", tmp_path / "sleep.csv"
    wrong.write_bytes(WRONG)
    right.write_bytes(RIGHT)
    for file, word in ((wrong, "--replace"), (right, "--replace"), (right, "--append")):
        assert peer("import", file, "--table", "person", word).code == 0
    with closing(sqlite3.connect(PeerHome(tmp_path / "home").data_path)) as connection:
        assert connection.execute("SELECT * FROM person").fetchall() == [(41, "many", 0)] * 2
