"""Every format that the page names goes through its preview into a table; unsafe archives end there, with a word."""

from __future__ import annotations

import io
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.real_exports import (
    edx_lines,
    moodle_csv,
    moodle_json,
    takeout_html,
    takeout_json,
    takeout_path,
    zipped,
)
from tests.support.visiting import Visited


def _sqlite(folder: Path) -> bytes:
    with closing(sqlite3.connect(folder / "x.sqlite")) as database:
        database.execute("CREATE TABLE sleep (hours)")
        database.execute("INSERT INTO sleep VALUES (7)")
        database.commit()
    return (folder / "x.sqlite").read_bytes()


def _parquet(folder: Path) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"hours": [7]}), folder / "x.parquet")
    return (folder / "x.parquet").read_bytes()


def _takeout(language: str, suffix: str, text: str) -> Callable[[Path], bytes]:
    return lambda folder: zipped(folder / "t.zip", {takeout_path(language, suffix): text}).read_bytes()


# file name -> its bytes, a word of its preview, the table that it becomes and its rows
FORMATS: dict[str, tuple[Callable[[Path], bytes], str, str, int]] = {
    "sleep.csv": (lambda _: b"hours\n7\n", "CSV", "sleep", 1),
    "sleep.jsonl": (lambda _: b'{"hours": 7}\n{"hours": 8}\n', "JSON", "sleep", 2),
    "x.sqlite": (_sqlite, "SQLite", "sleep", 1),
    "sleep.parquet": (_parquet, "Parquet", "sleep", 1),
    "tracking.log": (lambda _: "\n".join(edx_lines(4)).encode(), "edX", "events", 4),
    "logs_fi.csv": (lambda _: moodle_csv("fi").encode(), "Moodle", "moodle_log", 2),
    "logs.json": (lambda _: moodle_json().encode(), "Moodle", "moodle_log", 2),
    "takeout-de.zip": (_takeout("de", "json", takeout_json()), "Takeout", "takeout_activity", 2),
    "takeout-ar.zip": (_takeout("ar", "html", takeout_html("ar")), "Takeout", "takeout_activity", 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
async def test_every_listed_format_is_shown_before_it_is_kept(page: Visited, tmp_path: Path, name: str) -> None:
    make, says, table, rows = FORMATS[name]
    work = tmp_path / "work"
    work.mkdir()
    before = page.server.site.tables()
    shown = await page.upload(name, make(work))
    assert shown.status == 200 and says in shown.words and "Nothing is imported yet" in shown.words, shown.words
    assert page.server.site.tables() == before
    place = "/" + shown.url.split("/", 3)[3]
    done = await page.post(place, shown.form(place) | {"answer": "import", "mode": "replace"})
    assert "Imported: " in done.words, done.words
    assert set(page.server.site.tables()) - set(before) == {table}
    with closing(sqlite3.connect(page.home.data_path)) as database:
        assert database.execute(f'SELECT count(*) FROM "{table}"').fetchone() == (rows,)


def _bomb() -> bytes:
    packed = io.BytesIO()
    with (
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a.csv", "w", force_zip64=True) as stream,
    ):
        for _ in range(120):
            stream.write(b"0" * 1_000_000)
    return packed.getvalue()


def _leading_out() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("../../peer.sqlite", "x")
    return packed.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize(("make", "says"), [(_bomb, "times its size"), (_leading_out, "leads out")])
async def test_an_unsafe_archive_ends_at_the_page_with_one_word(
    page: Visited, make: Callable[[], bytes], says: str
) -> None:
    kept = (page.home.path / "peer.sqlite").read_bytes()
    refused = await page.upload("mine.zip", make())
    assert refused.status == 400 and says in refused.words and set(page.server.site.tables()) == {"person"}
    assert (page.home.path / "peer.sqlite").read_bytes() == kept
