"""Files that were made to be read for ever, or to crash the reader; and what else a page does meanwhile."""

from __future__ import annotations

import asyncio
import gzip
import io
import tarfile
import zipfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import aiohttp
import pytest

from anon.errors import AnonmlError, Malformed, Refused
from anon.queries.sandbox import plain_tables_of
from anon.tables import streams as files
from peer.data import foreign
from peer.data.formats import json_text
from peer.data.importing import import_file, import_rows
from peer.data.preview import preview
from peer.web.views import data as data_pages
from tests.attacks import sqlite_bombs as bombs
from tests.support.patience import PATIENCE, until
from tests.support.visiting import Got, Visited, visited

BOMBS = (
    bombs.one_leaf_again_and_again,
    bombs.one_leaf_of_an_index,
    bombs.many_tables_of_one_page,
    bombs.a_list_of_tables_without_end,
)


@pytest.fixture
def _read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read in this process, which is watched, and not in a child."""
    monkeypatch.setattr(foreign, "has_children", lambda: False)


def ended(work: Callable[[], Any]) -> Any:
    """The value that the work returned, or the error that it raised. Fails when it does not end."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(work())
        except Exception as error:
            outcome.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert outcome, "it never ends"
    return outcome[0]


@pytest.mark.slow
@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.__name__)
def test_a_small_database_that_names_a_page_again_and_again_is_refused(
    tmp_path: Path, bomb: Callable[[Path], None]
) -> None:
    file, own = tmp_path / "bomb.sqlite", tmp_path / "data.sqlite"
    import_rows(own, "person", ("age",), [(30,)])
    bomb(file)
    assert file.stat().st_size < 450_000
    assert isinstance(ended(lambda: preview(file)), AnonmlError)
    assert isinstance(ended(lambda: import_file(own, file)), AnonmlError)
    assert plain_tables_of(own) == {"person": ("age",)}


@pytest.mark.slow
def test_a_default_that_no_row_holds_is_not_written_for_each_row(tmp_path: Path) -> None:
    file, own = tmp_path / "bomb.sqlite", tmp_path / "data.sqlite"
    bombs.one_long_text_again_and_again(file)
    assert isinstance(ended(lambda: import_file(own, file)), Refused)
    assert plain_tables_of(own) == {}


@pytest.mark.slow
def test_an_honest_database_stays_far_below_the_bound(tmp_path: Path) -> None:
    """The smallest rows there are: nothing but a row's number."""
    file, own = tmp_path / "small.sqlite", tmp_path / "data.sqlite"
    bombs._made(file, "CREATE TABLE person (age INTEGER PRIMARY KEY)", [(number,) for number in range(1, 30_000)])
    assert import_file(own, file).rows == 29_999
    assert preview(file).tables[0].count == 29_999


NAMES = (b'"\xe2(evil.', b"\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8", b'ev""\xe2(il', b"e\nv\x00\xe2il.")


@pytest.mark.parametrize("name", NAMES)
def test_a_table_whose_name_is_not_utf_8_is_no_crash(tmp_path: Path, name: bytes) -> None:
    file, own = tmp_path / "named.sqlite", tmp_path / "data.sqlite"
    bombs.with_names_of_bytes(file, name)
    for work in (lambda: preview(file), lambda: import_file(own, file)):
        outcome = ended(work)
        assert isinstance(outcome, Malformed) or "good" in repr(outcome)


@pytest.mark.parametrize("digits", ["9" * 5000, "9" * 20, "-1", "1e3", "\N{SUPERSCRIPT TWO}"])
def test_a_length_of_thousands_of_digits_in_a_tar_is_a_clear_error(tmp_path: Path, digits: str) -> None:
    file = tmp_path / "long.tar"
    with tarfile.open(file, "w", format=tarfile.PAX_FORMAT) as archive:
        entry = tarfile.TarInfo("person.csv")
        entry.pax_headers = {"size": digits, "comment": "x"}
        archive.addfile(entry, io.BytesIO())
    with pytest.raises(AnonmlError, match=r"length|unpacks to more"):
        preview(file)


def _of_many_files(file: Path, count: int) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(count):
            archive.writestr(f"{number}.csv", "age,cups\n1,some\n")


@pytest.mark.slow
@pytest.mark.usefixtures("_read_here")
def test_an_archive_of_many_files_is_not_read_anew_for_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """40 kB with 400 files took 37 seconds, four times as many files sixteen times as long."""
    packed, tape, opened = tmp_path / "many.zip", tmp_path / "many.tar.gz", []
    _of_many_files(packed, 400)
    with zipfile.ZipFile(packed) as archive, tarfile.open(tape, "w:gz") as written:
        for name in archive.namelist():
            entry = tarfile.TarInfo(name)
            entry.size = len(archive.read(name))
            written.addfile(entry, io.BytesIO(archive.read(name)))
    read_index, unzip = zipfile.ZipFile.__init__, files._unzipping
    monkeypatch.setattr(
        zipfile.ZipFile, "__init__", lambda *all_of, **named: opened.append(1) or read_index(*all_of, **named)
    )
    monkeypatch.setattr(files, "_unzipping", lambda file: opened.append(1) or unzip(file))
    for file, most in ((packed, 2), (tape, 6)):
        opened.clear()
        assert len(preview(file).tables) == 400
        assert len(opened) <= most


def test_an_archive_of_too_many_tables_is_refused_before_all_are_looked_at(tmp_path: Path) -> None:
    file = tmp_path / "tables.zip"
    _of_many_files(file, 1_100)
    with pytest.raises(Refused, match="more than 1000 tables"):
        preview(file)


def test_a_reading_ends_when_it_is_stopped_also_in_one_endless_line(tmp_path: Path) -> None:
    file, stop = tmp_path / "line.csv.gz", Event()
    with gzip.open(file, "wb", compresslevel=1) as packed:
        packed.write(b"age\n")
        for _ in range(32):
            packed.write(bytes(range(33, 97)) * 2**14)
    stop.set()
    with pytest.raises(Refused, match="stopped"):
        preview(file, stop=stop)
    with pytest.raises(Refused, match="stopped"):
        import_file(tmp_path / "data.sqlite", file, stop=stop)


@pytest.mark.usefixtures("_read_here")
def test_a_file_of_blank_lines_is_told_and_one_with_a_blank_line_after_each_row_is_read(tmp_path: Path) -> None:
    """28 kB of packed line feeds took ten seconds."""
    limits, file = files.ImportLimits(blank_lines=1_000), tmp_path / "a.csv"
    file.write_bytes(b"age\n" + b"1\n\n" * 2_000)
    assert import_file(tmp_path / "data.sqlite", file, limits=limits).rows == 2_000
    for name, first in (("a.csv", b"age\n"), ("a.jsonl", b'{"age": 1}\n')):
        (tmp_path / name).write_bytes(first + b"\n" * 30_000)
        with pytest.raises(Refused, match="more than 1000 lines of the file are blank"):
            import_file(tmp_path / "data.sqlite", tmp_path / name, limits=limits)


@pytest.mark.usefixtures("_read_here")
def test_json_that_is_nested_deeply_never_reaches_its_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, told, file = json_text.json_value, list[bytes](), tmp_path / "a.json"
    monkeypatch.setattr(json_text, "json_value", lambda raw: told.append(raw) or read(raw))
    file.write_bytes(b'[{"age": ' + b"[" * 501 + b"]" * 501 + b'}, {"age": 1}, {"age": 2}, {"age": ' + b"[" * 300_000)
    done = import_file(tmp_path / "data.sqlite", file)
    assert (done.rows, done.skipped) == (2, 2)
    assert set(told) == {b' {"age": 1}', b' {"age": 2}'}


# The page


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Visited]:
    async with visited(tmp_path) as found:
        yield found


class Slow:
    """Stands in for a preview that never ends by itself."""

    def __init__(self) -> None:
        self.begun: list[Event] = []

    def __call__(self, _file: Path, *, stop: Event) -> Any:
        self.begun.append(stop)
        assert stop.wait(PATIENCE), "never stopped"
        raise Refused("stopped")


async def _chosen(page: Visited, name: str) -> str:
    """Upload without looking; where its preview is."""
    return await page.server.site.staging.take(name, _piece())


async def _piece() -> AsyncIterator[bytes]:
    yield b"age\n1\n"


async def test_six_endless_previews_block_neither_pages_nor_an_evaluation(
    page: Visited, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, looking = Slow(), []
    monkeypatch.setattr(data_pages, "look_at", slow)
    monkeypatch.setattr("peer.web.site.PATIENCE_SECONDS", 0.0)
    for number in range(40):  # as many threads as any machine's loop has of its own, and more
        key = await _chosen(page, f"{number}.csv")
        looking.append(f"/data/preview/{key}?back=")
        waiting = await page._got("GET", looking[-1])
        assert 'http-equiv="refresh"' in waiting.text
    await until(lambda: len(slow.begun) > 0)
    async with asyncio.timeout(PATIENCE):
        assert await asyncio.to_thread(lambda: "evaluated") == "evaluated"
        assert (await page.get("/data")).status == 200
    assert len(slow.begun) <= 2  # a few threads of their own


async def test_a_preview_ends_when_it_is_dropped_replaced_or_the_page_is_closed(
    page: Visited, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow()
    monkeypatch.setattr(data_pages, "look_at", slow)
    monkeypatch.setattr("peer.web.site.PATIENCE_SECONDS", 0.0)
    place, waiting, dropped = await _looking(page, slow)
    assert "Stop</button>" in waiting.text
    await page.post(place, waiting.form(place) | {"answer": "stop"})
    await until(dropped.is_set)
    _place, _waiting, replaced = await _looking(page, slow)
    form = (await page.get("/data")).form("/data/upload")
    await page.post("/data/upload", {}, _a_file(form))
    await until(replaced.is_set)
    _place, _waiting, closed = await _looking(page, slow)
    await page.server.site.close()
    await until(closed.is_set)


async def _looking(page: Visited, slow: Slow) -> tuple[str, Got, Event]:
    """A preview that has begun: its page, what that says, and what stops it."""
    before = len(slow.begun)
    place = f"/data/preview/{await _chosen(page, 'person.csv')}?back="
    waiting = await page._got("GET", place)
    await until(lambda: len(slow.begun) > before)
    assert not slow.begun[-1].is_set()
    return place, waiting, slow.begun[-1]


def _a_file(form: dict[str, str]) -> aiohttp.FormData:
    found = aiohttp.FormData(quote_fields=False)
    for key, value in form.items():
        found.add_field(key, value)
    found.add_field("file", b"age\n1\n", filename="again.csv", content_type="text/csv")
    return found


async def test_an_import_that_is_stopped_leaves_the_tables_as_they_were(
    page: Visited, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = Event()

    def slow_import(database: Path, file: Path, *rest: Any, stop: Event, **choices: Any) -> Any:
        begun.set()
        assert stop.wait(PATIENCE)
        return import_file(database, file, *rest, stop=stop, **choices)

    monkeypatch.setattr(data_pages, "import_file", slow_import)
    key = await _chosen(page, "person.csv")
    place = f"/data/preview/{key}?back="
    form = (await page.get(place)).form(place)
    monkeypatch.setattr("peer.web.site.PATIENCE_SECONDS", 0.0)
    await page.post(place, form | {"answer": "import", "table": "person"})
    waiting = f"/data/imported/{key}?back="
    page_text = await page._got("GET", waiting)
    await until(begun.is_set)
    told = await page.post(waiting, page_text.form(waiting))
    if 'http-equiv="refresh"' in told.text:
        told = await page.get(waiting)
    assert told.status == 400 and "nothing was imported" in told.words
    assert page.server.site.tables() == {"person": ("age", "cups", "tired")}
