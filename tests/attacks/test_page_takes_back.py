"""Taking data back on the page: files of every kind that were uploaded, looked at, imported or refused are in no byte
of the home or of the temporary folder afterwards, and a running peer is halted for it."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import os
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from peer.data.importing import import_rows
from peer.pairing.allowed import ALLOWED
from peer.rules.lifecycle import State
from peer.run.supervisor import Running, Supervisor
from peer.store.home import PeerHome
from peer.web.uploads import Staging
from tests.support.canaries import CANARIES, NUMBER, TEXT, WHOLE, forgetful_sqlite, traces
from tests.support.fake_aggregator import advance, until_closed
from tests.support.patience import until
from tests.support.visiting import Visited, visited

DELETE, ERASE = "/data/delete/person", "/data/erase"


@pytest.fixture(autouse=True)
def _watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A temporary folder that is searched too, and a SQLite that overwrites nothing by itself."""
    (tmp_path / "tmp").mkdir()
    for name in ("TMPDIR", "SQLITE_TMPDIR"):
        monkeypatch.setenv(name, str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    with forgetful_sqlite(monkeypatch):
        yield


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Visited]:
    async with visited(tmp_path / "home") as found:
        import_rows(found.home.data_path, "person", ("age", "cups", "tired"), [(NUMBER, TEXT, WHOLE)])
        found.peer._following._sleep = asyncio.sleep  # a run waits in real time, by the aggregator's clock
        yield found


def _files(folder: Path) -> dict[str, bytes]:
    """The canaries in files of every kind, whole and broken."""
    row = {"age": NUMBER, "cups": TEXT, "tired": WHOLE}
    table = ("age,cups,tired\n" + f"{NUMBER},{TEXT},{WHOLE}\n" * 300).encode()
    with closing(sqlite3.connect(folder / "made.sqlite")) as connection:
        connection.execute("CREATE TABLE person (age, cups, tired)")
        connection.execute("INSERT INTO person VALUES (?, ?, ?)", (NUMBER, TEXT, WHOLE))
        connection.commit()
    database = (folder / "made.sqlite").read_bytes()
    (folder / "made.sqlite").unlink()
    packed, taped = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(f"{TEXT}.csv", table)
    with tarfile.open(fileobj=taped, mode="w") as tape:
        entry = tarfile.TarInfo("person.csv")
        entry.size = len(table)
        tape.addfile(entry, io.BytesIO(table))
    event = {"username": TEXT, "event_type": "play_video", "time": "2026-01-01T00:00:00+00:00", "event": str(NUMBER)}
    whole = {
        "a.csv": table, "a.tsv": table.replace(b",", b"\t"), "a.csv.gz": gzip.compress(table),
        "a.zip": packed.getvalue(),
        "a.tar": taped.getvalue(), "a.json": json.dumps([row] * 9).encode(),
        "a.jsonl": json.dumps(row).encode() + b"\n",
        "a.sqlite": database, "tracking.log": json.dumps(event).encode() + b"\n", f"{TEXT}.csv": table,
        "a16.csv": table.decode().encode("utf-16"),
    }  # fmt: skip
    broken = {
        f"broken{name}": content[: len(content) // 2] + TEXT.encode() + b"\xff\x00" for name, content in whole.items()
    }
    return whole | broken


async def _uploads(page: Visited, folder: Path) -> tuple[int, int]:
    """Upload all; every second one that can be read is imported, the others stay where they wait."""
    imported = waiting = 0
    for number, (name, content) in enumerate(_files(folder).items()):
        looked = await page.upload(name, content)
        place = "/" + looked.url.split("/", 3)[3]
        if looked.status == 200 and number % 2:
            answer = {"table": f"table{number}", "answer": "import", "mode": "replace"}
            imported += (await page.post(place, looked.form(place) | answer)).status == 200
        waiting += 1
    return imported, waiting


async def test_erasing_everything_on_the_page_leaves_no_byte_of_any_file(page: Visited, tmp_path: Path) -> None:
    running = asyncio.create_task(page.server.supervisor.run())
    imported, waiting = await _uploads(page, tmp_path)
    assert imported >= 4 and waiting >= 20
    await page.submit("/", "/link", link=page.aggregator.invite.link())
    assert len({line.partition(": ")[2] for line in traces(page.home.path)}) >= 6
    asked = await page.get(ERASE)
    assert "This goes, for good" in asked.words and "spent twice" in asked.words
    done = await page.submit(ERASE, ERASE, answer="erase")
    assert "Your data are erased" in done.words, done.words
    assert traces(page.home.path) == [] == traces(tmp_path / "tmp")
    assert traces(page.home.path, {"link": page.aggregator.invite.code.encode()}) == [] and not page.server.site.invites
    again = await page.upload("a.csv", b"age\n1\n")
    assert again.status == 200, "the page goes on"
    await until(lambda: page.server.supervisor.running is Running.HERE)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_a_deleted_table_takes_every_copy_along_that_waits(page: Visited) -> None:
    for name in ("a.csv", "b.csv"):
        looked = await page.upload(name, f"age,cups,tired\n{NUMBER},{TEXT},{WHOLE}\n".encode())
    place = "/" + looked.url.split("/", 3)[3]
    failed = await page.post(place, looked.form(place) | {"answer": "import", "table": "no name"})
    assert failed.status == 400 and "A copy stays on this machine until" in failed.words and "b.csv" in failed.text
    assert "Copies of files that wait here to be imported go with it" in (await page.get(DELETE)).words
    await page.submit(DELETE, DELETE, answer="delete")
    assert traces(page.home.path) == [] and not page.server.site.jobs.names("look-")
    assert (await page.get(place)).status == 400 and "A copy stays" not in (await page.get("/data")).words


async def test_the_page_of_data_shows_a_copy_that_waits_and_removes_it(page: Visited) -> None:
    key = (await page.upload("mine.csv", b"age\n")).url.split("/")[-1].partition("?")[0]
    assert "mine.csv" in (await page.get("/data")).words
    await page.submit("/data", f"/data/preview/{key}?back=", answer="drop")
    assert "mine.csv" not in (await page.get("/data")).words and not page.server.site.copies()


async def test_a_study_under_way_is_left_on_the_page_by_choice(page: Visited) -> None:
    await page.peer.join(page.aggregator.invite, page.aggregator.manifest.epsilon)
    asked = await page.get(DELETE)
    assert "your answers are not worked out yet" in asked.words and "Sleep and coffee" in asked.words
    assert 'value="missing"' not in asked.text, "there is no answer to erase yet"
    refused = await page.submit(DELETE, DELETE)
    assert refused.status == 400 and "nothing was deleted" in refused.words
    wrong = await page.submit(DELETE, DELETE, answer="delete", studies="all of them")
    assert wrong.status == 400 and "nothing was deleted" in wrong.words
    done = await page.submit(DELETE, DELETE, answer="delete", studies="leave")
    assert "The table “person” is deleted. You left the study that read it." in done.words
    assert page.peer.store.state(page.aggregator.study) is State.LEAVING and traces(page.home.path) == []
    assert (await page.get(DELETE)).status == 400


async def test_a_study_goes_on_when_its_table_is_deleted_on_the_page(page: Visited) -> None:
    aggregator = page.aggregator
    await page.peer.join(aggregator.invite, aggregator.manifest.epsilon)
    await advance(page.peer, aggregator, aggregator.manifest.timetable.enrol_closes)
    assert "is deleted" in (await page.submit(DELETE, DELETE, answer="delete", studies="go-on")).words
    aggregator.crowd(4)
    aggregator.close()
    await advance(page.peer, aggregator, aggregator.manifest.windows[-1].closes)
    assert len(aggregator.sent("packets")) == 1 and page.peer.budget().held > 0


async def test_what_is_being_worked_out_is_waited_for(page: Visited, monkeypatch: pytest.MonkeyPatch) -> None:
    aggregator = page.aggregator
    await page.peer.join(aggregator.invite, aggregator.manifest.epsilon)
    await until_closed(page.peer, aggregator, 4)
    seen = []

    async def evaluate(*_: object) -> None:
        seen.append(await page.submit(DELETE, DELETE, answer="delete"))
        raise asyncio.CancelledError

    monkeypatch.setattr("peer.run.packets.making.answers_of", evaluate)
    with suppress(asyncio.CancelledError):
        await advance(page.peer, aggregator, aggregator.manifest.windows[-1].closes)
    assert seen[0].status == 400 and "being worked out right now" in seen[0].words


async def test_another_process_that_runs_the_peer_is_named(page: Visited) -> None:
    with PeerHome(page.home.path).running():
        for place, answer in ((DELETE, "delete"), (ERASE, "erase")):
            refused = await page.submit(place, place, answer=answer)
            assert refused.status == 400 and "runs this peer" in refused.words
    assert "person" in page.server.site.tables()


def test_a_phone_takes_nothing_back() -> None:
    assert not [route for route in ALLOWED if "delete" in route or "erase" in route]


async def test_an_engine_that_is_halted_goes_on_afterwards_and_ends_when_it_is_cancelled(page: Visited) -> None:
    supervisor = Supervisor(page.peer.run, 0.01)
    running = asyncio.create_task(supervisor.run())
    for _ in range(3):
        await asyncio.sleep(0.02)
        async with supervisor.halted():
            with page.home.running():
                await asyncio.sleep(0.02)
    await until(lambda: supervisor.running is Running.HERE)
    assert not running.done()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with page.home.running():
        pass


_UPLOADS = """
import asyncio, os, sys
from pathlib import Path
from peer.web.uploads import Staging

async def pieces():
    yield sys.argv[2].encode()

async def upload():
    staging = Staging(Path(sys.argv[1]), os.urandom)
    await staging.take("person.csv", pieces())
    print("waits", flush=True)
    await asyncio.sleep(600)

asyncio.run(upload())
"""


@pytest.mark.slow
async def test_what_a_killed_page_left_goes_when_the_next_one_begins_and_a_living_ones_stays(tmp_path: Path) -> None:
    words = [sys.executable, "-c", _UPLOADS, str(tmp_path), TEXT]
    page = subprocess.Popen(words, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
    assert page.stdout is not None and page.stdout.readline().strip() == b"waits"
    Staging(tmp_path, os.urandom)
    assert traces(tmp_path), "its page lives"
    page.kill()
    page.wait()
    page.stdout.close()
    Staging(tmp_path, os.urandom)
    assert traces(tmp_path) == []


def test_the_canaries_are_found_wherever_they_are(tmp_path: Path) -> None:
    for number, (what, form) in enumerate(CANARIES.items()):
        (tmp_path / str(number)).write_bytes(b"..." + form)
        assert traces(tmp_path) and what in "".join(traces(tmp_path))
    (tmp_path / TEXT).mkdir()
    assert any(TEXT in line for line in traces(tmp_path))
