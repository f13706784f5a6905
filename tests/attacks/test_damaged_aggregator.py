"""A damaged home of an aggregator works unharmed or says which file is damaged and how to restore; a full disk is told.

The whole sweep is soak; a sample of every file runs each time.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from aggregator.store.home import backup, restore
from anon.errors import AnonmlError, Damaged, Malformed, NoRoom
from anon.serving.onion_key import keep_key, kept_key
from tests.attacks.damage import harms
from tests.support.clock import Clock
from tests.support.world import begin, in_memory, make_app, sealed, study_text

SAMPLE, WHOLE = 8, 1500
KINDS = (b"manifest", b"roster", b"seed", b"credentials")
View = dict[bytes, dict[int, memoryview | None]]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """A home with a study that collects and one that enrols, and the time; to be copied."""
    folder, clock = tmp_path_factory.mktemp("sound") / "home", Clock()
    asyncio.run(_made(folder, clock))
    return folder, clock.seconds


@pytest.fixture
def clock(sound: tuple[Path, float], tmp_path: Path) -> Clock:
    """The time at which a copy of the home was left, which is the test's `home`."""
    shutil.copytree(sound[0], tmp_path / "home")
    return Clock(sound[1])


async def _made(folder: Path, clock: Clock) -> None:
    async with make_app(folder, clock) as app:
        keep_key(folder, os.urandom)
        running = await begin(app, clock, study_text())
        await running.collected(4)
        await (await begin(app, clock, study_text())).enrol(2)
    with closing(sqlite3.connect(folder / "aggregator.sqlite")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


async def _view(folder: Path, clock: Clock) -> tuple[View, list[str]]:
    """The published documents of every study, and the faults that the status tells, after a tick."""
    async with make_app(folder, clock) as app:
        await app.tick()
        kept_key(folder)
        view: View = {}
        for live in app.studies():
            view[live.study] = {one.head.number: await live.served(one.head.number) for one in live.chain}
        return view, [one.fault for one in await app.status() if one.fault]


async def _sweep(tmp_path: Path, clock: Clock, pattern: str, most: int) -> dict[str, int]:
    expected, faults = await _view(tmp_path / "home", clock)
    assert not faults
    (name,) = [one.relative_to(tmp_path / "home") for one in sorted((tmp_path / "home").rglob(pattern))][:1]
    outcomes = {"unharmed": 0, "told": 0}
    for harm in harms(tmp_path / "home" / name, most):
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        shutil.copytree(tmp_path / "home", tmp_path / "copy")
        harm.do(tmp_path / "copy" / name)
        try:
            view, faults = await _view(tmp_path / "copy", clock)
        except AnonmlError as fault:
            assert isinstance(fault, (Damaged, Malformed)) and name.name in str(fault), (harm, fault)
            assert "estore" in str(fault), (harm, fault)
            outcomes["told"] += 1
            continue
        for said in faults:
            assert name.name in said and "anonml aggregator restore FILE" in said, (harm, said)
        for study, documents in view.items():
            for number, body in documents.items():
                assert body == expected[study][number] or (not body and faults), harm
        assert faults or view.keys() == expected.keys(), harm
        outcomes["told" if faults else "unharmed"] += 1
    return outcomes


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["aggregator.sqlite", "signing.key", "*.keys", "onion.key"])
async def test_every_damage_of_an_aggregators_home_is_harmless_or_told(
    tmp_path: Path, clock: Clock, pattern: str
) -> None:
    outcomes = await _sweep(tmp_path, clock, pattern, SAMPLE if pattern.endswith("sqlite") else 3)
    assert outcomes["told"] > 0, outcomes


@pytest.mark.soak
@pytest.mark.parametrize("pattern", ["aggregator.sqlite", "signing.key", "*.keys", "onion.key"])
async def test_every_damage_of_an_aggregators_home_is_harmless_or_told_everywhere(
    tmp_path: Path, clock: Clock, pattern: str
) -> None:
    await _sweep(tmp_path, clock, pattern, WHOLE)


@pytest.mark.slow
@pytest.mark.parametrize("column", ["number", "kind"])
async def test_a_flipped_bit_in_the_name_of_a_document_is_told(tmp_path: Path, clock: Clock, column: str) -> None:
    """In its row, and in its entry of an index unless everything is served all the same. Otherwise it would be looked
    for in vain, with no word about it."""
    expected, _ = await _view(tmp_path / "home", clock)
    whole = (tmp_path / "home/aggregator.sqlite").read_bytes()
    places = [place for study in expected for place in _named(whole, study, column)]
    assert len(places) == 2 * sum(map(len, expected.values())) == 10
    told = 0
    for place in places:
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        shutil.copytree(tmp_path / "home", tmp_path / "copy")
        spoilt = bytearray(whole)
        spoilt[place] ^= 1
        (tmp_path / "copy/aggregator.sqlite").write_bytes(spoilt)
        view, faults = await _view(tmp_path / "copy", clock)
        told += bool(faults)
        assert (faults or view == expected) and all(
            "aggregator.sqlite" in said and "restore FILE" in said for said in faults
        ), place
    assert told >= 5


def _named(file: bytes, study: bytes, column: str) -> list[int]:
    """The bytes of SQLite's file that hold the number, or the kind, of this study's documents.

    A record begins with the length of its header and a type for each column (8: the number 0; 9: 1; 1: a number of one
    byte; 76: 32 bytes). A row's header has 11 bytes, that of an index over study and number 4, over study and kind 5.
    """
    found = []
    for match in re.finditer(re.escape(study), file):
        start, after = match.start(), match.end()
        shape = next((size for size in (4, 5, 11) if file[start - size : start - size + 2] == bytes([size, 76])), 0)
        type_of = file[start - shape + 2]
        if column == "number" and shape in (4, 11) and type_of in (1, 8, 9):
            found.append(after if type_of == 1 else start - shape + 2)
        kind = after + (shape == 11 and type_of == 1)
        if column == "kind" and shape in (5, 11) and file[kind:].startswith(KINDS):
            found.append(kind)
    return found


async def _backups(tmp_path: Path, clock: Clock, most: int) -> None:
    backup(tmp_path / "home", tmp_path / "file")
    expected, _ = await _view(tmp_path / "home", clock)
    for harm in harms(tmp_path / "file", most):
        shutil.copyfile(tmp_path / "file", tmp_path / "spoilt")
        harm.do(tmp_path / "spoilt")
        shutil.rmtree(tmp_path / "new", ignore_errors=True)
        try:
            restore(tmp_path / "spoilt", tmp_path / "new")
        except AnonmlError as fault:
            assert isinstance(fault, (Damaged, Malformed)) and "spoilt" in str(fault), (harm, fault)
            assert not (tmp_path / "new").exists() or not any((tmp_path / "new").iterdir())
            continue
        assert await _view(tmp_path / "new", clock) == (expected, []), harm


@pytest.mark.slow
async def test_every_damage_of_an_aggregators_backup_is_harmless_or_told(tmp_path: Path, clock: Clock) -> None:
    await _backups(tmp_path, clock, SAMPLE)


@pytest.mark.soak
async def test_every_damage_of_an_aggregators_backup_is_harmless_or_told_everywhere(
    tmp_path: Path, clock: Clock
) -> None:
    await _backups(tmp_path, clock, WHOLE)


@pytest.mark.slow
async def test_a_full_disk_is_told_as_one_and_everything_goes_on_when_there_is_room(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with in_memory(tmp_path / "home", study_text()) as running:
        peers = await running.collecting(18)
        posts = [sealed(running.live, peer.packet()) for peer in peers]
        assert await running.live.submit(posts[0]) == "accepted"
        await _limit(running.app._tools.packets._database, full=True)
        for _ in range(3):
            with pytest.raises(NoRoom, match=r"aggregator\.sqlite”: cannot be written \(SQLITE_FULL\)"):
                await _until_full(running.live, posts[1:])
        lines = [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR]
        assert len(lines) == 1 and "aggregator.sqlite" in lines[0] and "Make room" in lines[0], lines
        await running.go_to(running.closes)
        (status,) = await running.app.status()
        assert "SQLITE_FULL" in status.fault and "Make room" in status.fault
        assert running.live.state == "collecting"
        await _limit(running.app._tools.packets._database, full=False)
        running.clock.seconds = running.live.fault.again if running.live.fault else running.clock.seconds
        await running.app.tick()
        assert running.live.phase == "published" and not (await running.app.status())[0].fault
        assert sum((await running.live.accepted()).values()) >= 1


async def _until_full(live, posts: list[bytes]) -> None:
    for post in posts:
        await live.submit(post)
    raise AssertionError("the disk was not full")


async def _limit(database, full: bool) -> None:
    """A disk on which no page can be added, as SQLite sees it, on every connection."""
    from sqlalchemy import event

    def limited(connection, *_: object) -> None:
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA max_page_count = {1 if full else 2**30}")  # not below what there is
        cursor.close()

    await database._engine.dispose()
    event.listen(database._engine.sync_engine, "connect", limited)


def test_a_full_disk_under_any_other_file_is_told_too(tmp_path: Path) -> None:
    from aggregator.rules.faults import in_words

    said = in_words(OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "x")))
    assert "No space left" in said and "Make room" in said and "x" in said
