"""Rows that unpack without end stop where packets would find no room any more."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import pytest

from tests.support.visiting import Visited


async def test_an_import_that_would_fill_the_disk_is_taken_back(page: Visited, monkeypatch: pytest.MonkeyPatch) -> None:
    got = await page.upload("person.csv", b"age,cups,tired\n" + b"40,many,0\n" * 20)
    [action] = [one for one in got.attribute("action") if one.startswith("/data/preview/")]
    room = shutil.disk_usage(page.home.path)._replace(free=2**20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: room)
    done = await page.post(action, got.form(action) | {"table": "person", "answer": "import", "mode": "replace"})
    assert done.status == 400 and "disk is nearly full" in done.words
    with closing(sqlite3.connect(page.home.data_path)) as connection:
        assert connection.execute("SELECT age FROM person").fetchall() == [(30,)]
