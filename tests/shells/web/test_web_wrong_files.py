"""Twelve wrong files on the way from a link to its consent screen: the page says what to do, and two clicks put each
right. The link that was given before stays."""

from __future__ import annotations

import io
import sqlite3
import zipfile
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.visiting import Visited, visited
from tests.support.workbooks import encrypted, repacked, workbook

RIGHT = b"age,cups,tired\n41,many,0\n"


def _zip(names: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in names.items():
            archive.writestr(name, content)
    return packed.getvalue()


# name -> its bytes, and the words of the page that lead on
WRONG: dict[str, tuple[Callable[[], bytes], str]] = {
    "sleep.xls": (lambda: encrypted("Workbook"), "open it in Excel and save it as .xlsx or CSV"),
    "secret.xlsx": (lambda: encrypted("EncryptedPackage"), "take the password away"),
    "empty.xlsx": (lambda: workbook([]), "check that it is the right file"),
    "sleep.ods": (lambda: _zip({"mimetype": b"x", "content.xml": b"x"}), "open it there and save it as CSV"),
    "sleep.xlsb": (lambda: repacked(workbook([]), {"xl/workbook.bin": b"x"}), "save it as CSV in Excel"),
    "diary.docx": (
        lambda: _zip({"[Content_Types].xml": b"x", "word/document.xml": b"x"}), "copy its table into a spreadsheet"
    ),
    "cut.xlsx": (lambda: workbook([["age"], [1]])[:-200], "download it again"),
    "picture.png": (lambda: b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "it must be text that names the columns"),
    "sleep.7z": (lambda: b"7z\xbc\xaf\x27\x1c" + bytes(40), "unpack it first"),
    "page.html": (lambda: b"<html><body>no</body></html>", "expected CSV"),
    "photos.zip": (lambda: _zip({"a.jpg": b"x"}), "expected CSV"),
    "list.json": (lambda: b"[" * 100_000, "expected CSV"),
}  # fmt: skip
READ: dict[str, tuple[Callable[[], bytes], str]] = {
    "workbook.csv": (lambda: workbook([["age", "cups", "tired"], [41, "many", 0]]), "Found: an Excel file"),
    "text.xlsx": (lambda: RIGHT, "Found: a CSV file"),
    "titled.xlsx": (
        lambda: workbook([["My sleep"], [], ["age", "cups", "tired"], [41, "many", 0]]),
        "1 row above the heading is left out",
    ),
}  # fmt: skip


@pytest.fixture
async def newcomer(tmp_path: Path) -> AsyncIterator[Visited]:
    """With a link that waits for an answer, and without data."""
    pytest.importorskip("openpyxl", reason="openpyxl is missing: install the extra `test`")
    async with visited(tmp_path, data=False) as page:
        await page.submit("/start/connect", "/start/connect", link=page.aggregator.invite.link())
        await page.get("/start/data")
        yield page


async def _imported(page: Visited, name: str, content: bytes) -> str:
    """Look at the file, the first click, and import it; the words in between."""
    seen = await page.upload(name, content, "start")
    place = seen.url.removeprefix(page.server.address)
    done = await page.post(place, seen.form(place) | {"answer": "import", "mode": "replace"})
    done = await page.get(done.url)
    assert done.url.endswith(page.invite), "the answer to the link is next"
    with closing(sqlite3.connect(page.home.data_path)) as database:
        assert database.execute("SELECT age, cups, tired FROM person").fetchall() == [(41, "many", 0)]
    return seen.words


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
async def test_a_wrong_file_is_put_right_in_two_clicks(newcomer: Visited, name: str) -> None:
    make, said = WRONG[name]
    refused = await newcomer.upload(name, make(), "start")
    assert refused.status == 400 and said in refused.words, refused.words
    assert newcomer.server.site.tables() == {}
    assert 'href="/start/data">Try again' in refused.text
    again = await newcomer.get("/start/data")  # the first click
    assert 'type="file"' in again.text
    await _imported(newcomer, "sleep.csv", RIGHT)  # the second: Look at it


@pytest.mark.slow
@pytest.mark.parametrize("name", READ)
async def test_what_only_looks_wrong_is_read(newcomer: Visited, name: str) -> None:
    make, said = READ[name]
    assert said in await _imported(newcomer, name, make())
