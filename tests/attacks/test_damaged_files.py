"""A damaged file, of whatever format, ends at most the child that reads it. Libraries in C end the process that calls
them: one Parquet file in some 900 that were changed at random did so, and with it ended the owner's page and every
study."""

from __future__ import annotations

import asyncio
import gzip
import io
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from anon.errors import AnonmlError, Malformed, Refused
from anon.queries.process import has_children
from anon.tables.streams import ImportLimits
from peer.data import foreign, foreign_talk
from peer.data.foreign_talk import LENGTH, LONGEST_FRAME, ReadingRequest, Talk
from peer.data.importing import import_file, import_rows
from peer.data.preview import preview
from peer.data.watching import watched
from peer.data.whose import people_of_file
from tests.attacks.soak_pieces import piece
from tests.support.real_exports import (
    edx_lines,
    moodle_csv,
    moodle_json,
    takeout_html,
    takeout_json,
    takeout_path,
    tarred,
    zipped,
)

pytestmark = pytest.mark.skipif(not has_children(), reason="no child processes here")
CRASHERS = sorted((Path(__file__).parent / "parquet_crashers").iterdir())
FAILED = "this file is damaged or of another kind"


def _rows(database: Path) -> list[Any]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute("SELECT * FROM person").fetchall()


@pytest.mark.parametrize("file", CRASHERS, ids=lambda file: file.stem)
def test_a_parquet_file_that_ends_its_reader_is_told_and_nothing_is_imported(tmp_path: Path, file: Path) -> None:
    """Each of these files ended the whole peer (SIGABRT within pyarrow)."""
    pytest.importorskip("pyarrow", reason="pyarrow is missing: install the extra `test`")
    database = tmp_path / "data.sqlite"
    import_rows(database, "person", ("age",), [(60,)])
    for read in (lambda: preview(file), lambda: people_of_file(file), lambda: import_file(database, file, "person")):
        with pytest.raises(Malformed, match=FAILED):
            read()
    assert _rows(database) == [(60,)]


@pytest.mark.slow
def test_no_library_of_a_format_is_loaded_beside_the_keys(tmp_path: Path) -> None:
    """Of a whole import of a Parquet file, in a process of its own."""
    pytest.importorskip("pyarrow", reason="pyarrow is missing: install the extra `test`")
    file = tmp_path / "a.parquet"
    file.write_bytes(_parquet())
    program = (
        "import sys; from pathlib import Path; from peer.data.importing import import_file; "
        "print(import_file(Path(sys.argv[1]), Path(sys.argv[2])).rows, 'pyarrow' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "d.sqlite", file], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["2", "False"]


def test_the_program_that_reads_files_knows_no_key_route_or_store() -> None:
    program = "import sys; import peer.data.foreign_child, peer.data.foreign_answers; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    kept_away = (
        "peer.store", "peer.network", "peer.rules", "peer.release", "anon.credential", "anon.crypto.sealing", "aiohttp",
        "nacl",
    )
    assert "peer.data.formats.parquet" in loaded and not [name for name in loaded if name.startswith(kept_away)]


def test_a_bundled_program_that_asks_whether_it_is_the_server_loads_no_format() -> None:
    program = "import sys; from peer.data.foreign_child import reads; print(reads(['peer']), *sys.modules)"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert said[0] == "False" and not [name for name in said if name.startswith(("peer.data.formats", "pyarrow"))]


# --- ends of a child ---


@pytest.mark.slow
def test_a_server_that_was_killed_is_started_again(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("age\n60\n")
    for _ in range(2):
        assert import_file(tmp_path / "d.sqlite", file, "person").rows == 1
        server = foreign._CHILDREN._process
        assert server is not None
        server.kill()
        server.wait()


@pytest.mark.slow
def test_a_child_that_is_killed_in_the_middle_changes_nothing(tmp_path: Path) -> None:
    file, database = tmp_path / "a.csv", tmp_path / "data.sqlite"
    file.write_text("age\n" + "1\n" * 20_000)
    import_rows(database, "person", ("age",), [(60,)])
    ended: list[int] = []

    def end(rows: int) -> None:
        server = foreign._CHILDREN._process
        if server is not None and not ended:
            ended.append(rows)
            children = _children_of(server.pid)  # before it ends: then they are another process's
            server.kill()
            for child in children:
                os.kill(child, signal.SIGKILL)
            server.wait()

    with pytest.raises(Malformed, match=FAILED):
        import_file(database, file, "person", progress=end)
    assert ended and _rows(database) == [(60,)]


def _children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_child_is_limited_in_memory_time_and_writing(tmp_path: Path) -> None:
    program = (
        "import resource, signal, sys; from peer.data.foreign_child import MEMORY, _confine; _confine(7.0)\n"
        "try: bytearray(MEMORY + 2**20)\n"
        "except MemoryError: print('memory', end=' ')\n"
        "print(round(signal.getitimer(signal.ITIMER_REAL)[0]), resource.getrlimit(resource.RLIMIT_CPU)[0], "
        "resource.getrlimit(resource.RLIMIT_CORE)[0], resource.getrlimit(resource.RLIMIT_FSIZE)[0])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["memory", "7", "9", "0", str(64 * 2**20)]


def test_the_owners_stop_is_heard_while_a_child_says_nothing() -> None:
    ours, theirs = socket.socketpair()
    stop = threading.Event()
    stop.set()
    with ours, theirs:
        ours.settimeout(0.01)
        talk = Talk(ours, watched(ImportLimits(), 60.0, stop).look)
        with pytest.raises(Refused, match="was stopped"):
            talk.hear()


def test_a_child_whose_file_is_not_read_any_more_ends(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("age\n60\n")
    with foreign.opened(file, ImportLimits()):
        server = foreign._CHILDREN._process
        assert server is not None and len(_children_of(server.pid)) == 1
    for _ in range(500):
        if not _children_of(server.pid):
            return
        threading.Event().wait(0.02)
    raise AssertionError("the child goes on")


# --- lies of a child that its file has taken over ---

KIND = ["csv", "a file", [[None, "a", False, "line"]], [], None]
PATTERN = '\x02{"pattern": "%s", "many": "", "values": {"x": 1}}'
LIES: dict[str, list[Any]] = {
    "no list": [5],
    "too little": [["csv"]],
    "a strange format": [["../x", *KIND[1:]]],
    "a strange unit": [["csv", "a", [[None, "a", False, "lines"]], [], None]],
    "a strange table": [["csv", "a", [["A B", "a", False, "line"]], [], None]],
    "a wide field": [["csv", PATTERN % "{x:999999999d}", [], [], None]],
    "a field of a field": [["csv", PATTERN % "{x.__class__}", [], [], None]],
    "many words": [["csv", "x" * 2**15, [], [], None]],
    "keys that are no texts": [KIND, [1]],
    "no records": [KIND, ["age"], 7],
    "a cell without a key": [KIND, ["age"], [[1, 2], None]],
    "too few cells": [KIND, ["age"], [{"keys": ["age"]}, [1], None]],
    "no number": [KIND, ["age"], [{"keys": ["age"]}, ["1", "2"], None]],
    "a long cell": [KIND, ["age"], [{"keys": ["age"]}, [1, "x" * (2**16 + 1)], None]],
    "a large number": [KIND, ["age"], [{"keys": ["age"]}, [1, 2**63], None]],
    "a list in a cell": [KIND, ["age"], [{"keys": ["age"]}, [1, [1]], None]],
    "a truth in a cell": [KIND, ["age"], [{"keys": ["age"]}, [1, True], None]],
    "an object in a cell": [KIND, ["age"], [{"keys": ["age"]}, [1, {}], None]],
    "a strange reason": [KIND, ["age"], [{"skip": [1, "NONE"]}, None]],
    "a strange fault": [{"fault": ["crash", "x"]}],
    "words of a fault": [{"fault": ["refused", PATTERN % "{x:9d}"]}],
    "the end": [KIND, ["age"]],
}
FRAMES = {
    "no JSON": b"{",
    "no text": b"\xff",
    "nested": b"[" * 100_000,
    "an infinite number": b'["csv", Infinity]',
    "a number of many digits": b"[" + b"9" * 5000 + b"]",
    "cut off": b"",
}


def _told(frames: list[bytes]) -> None:
    """Read a file of which a child says these frames, as a preview does."""
    ours, theirs = socket.socketpair()
    with ours:
        ours.settimeout(5.0)
        with theirs:
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**20)
            for frame in frames:
                theirs.sendall(frame)
            theirs.shutdown(socket.SHUT_WR)
            told = foreign._Conversation(Talk(ours), ImportLimits())
            found = told.opened(ReadingRequest(Path(__file__), ImportLimits()))
            for table in found.tables:
                table.source.keys()
                list(table.source.records())


def _framed(value: object) -> bytes:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**20)
        Talk(ours).say(value)
        return theirs.recv(2**20)


@pytest.mark.parametrize("name", LIES)
def test_what_no_child_of_ours_says_is_a_damaged_file(name: str) -> None:
    with pytest.raises(Malformed, match=FAILED):
        _told([_framed(value) for value in LIES[name]])


@pytest.mark.parametrize("name", FRAMES)
def test_frames_that_are_none_are_a_damaged_file(name: str) -> None:
    with pytest.raises(Malformed, match=FAILED):
        _told([LENGTH.pack(len(FRAMES[name]) + (name == "cut off")) + FRAMES[name]])
    with pytest.raises(Malformed, match=FAILED):
        _told([LENGTH.pack(LONGEST_FRAME + 1)])


def test_what_a_child_of_ours_says_is_taken() -> None:
    _told(
        [
            _framed(value)
            for value in (KIND, ["age"], [{"keys": ["age"]}, [1, None], [2, []], [3, 0.5], {"skip": [4, "LONG"]}, None])
        ]
    )
    _told([_framed(["csv", PATTERN % "{x} of it", [], [PATTERN % "{x}"], 5])])


# --- the loop ---

WIDE: dict[str, list[Any]] = {
    "control characters": ["\x01" * 5000] * 50,
    "Chinese": ["\u6f22" * 1000] * 200,
    "numbers": [0.1234567890123] * 200,
    "nothing": [None] * 200,
    "a row near the limit": ["\x01" * 65_000] * 16,
}


@pytest.mark.timed
@pytest.mark.parametrize("name", WIDE)
def test_no_step_of_reading_answers_is_long(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoding one frame holds the interpreter's lock. In processor time, of which the longest took 5 ms here."""
    file, cells, steps = tmp_path / "wide.db", WIDE[name], list[float]()
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(f"create table person ({', '.join(f'c{place}' for place in range(len(cells)))})")
        connection.executemany(
            f"insert into person values ({', '.join('?' * len(cells))})",
            [cells] * (600 if name in ("numbers", "nothing") else 20),
        )
    read = foreign_talk.json.loads

    def noted(text: str, **named: Any) -> Any:
        began = time.thread_time()
        try:
            return read(text, **named)
        finally:
            steps.append(time.thread_time() - began)

    monkeypatch.setattr(foreign_talk.json, "loads", noted)
    seen = preview(file).tables[0]
    assert len(seen.columns) == len(cells)
    assert len(steps) > 2 and max(steps) < 0.02


# --- files changed at random ---


def _parquet(compression: str = "none", version: str = "1.0") -> bytes:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    sink = io.BytesIO()
    table = arrow.table({"a": [1, 2], "b": ["x", None], "c": [[1], []]})
    parquet.write_table(table, sink, compression=compression, data_page_version=version)
    return sink.getvalue()


def _sqlite() -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.executescript("create table t (a, b); insert into t values (1, 'x'), (2, 'y'); create table u (c);")
    return connection.serialize()


def _real(folder: Path) -> dict[str, tuple[bytes, str]]:
    """Twelve formats: an example of each, and a suffix."""
    edx = "\n".join(edx_lines()).encode()
    json: dict[str, str | bytes] = {takeout_path("de", "json"): takeout_json()}
    return {
        "parquet": (_parquet("snappy"), ".parquet"),
        "parquet pages of version 2": (_parquet("brotli", "2.0"), ".parquet"),
        "sqlite": (_sqlite(), ".db"),
        "csv": (b"age,cups\n60,1\n61,2\n", ".csv"),
        "json": (b'[{"age": 60}, {"age": 61.5, "b": [1]}]', ".json"),
        "edx": (edx, ".log"),
        "edx.gz": (gzip.compress(edx), ".log.gz"),
        "moodle": (moodle_csv("de").encode("utf-16"), ".csv"),
        "moodle json": (moodle_json().encode(), ".json"),
        "takeout html": (takeout_html("de").replace(".mdl-cell{width:100%}" * 6500, "").encode(), ".html"),
        "zip": (zipped(folder / "t.zip", json).read_bytes(), ".zip"),
        "tar": (tarred(folder / "t.tar", json).read_bytes()[:4096], ".tar"),
    }


def _changed(content: bytes, source: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(source.choice([1, 1, 2, 5, 20])):
        place = source.randrange(len(changed))
        match source.randrange(4):
            case 0:
                changed[place] = source.randrange(256)
            case 1:
                changed[place] ^= 1 << source.randrange(8)
            case 2:
                changed[place : place + source.randrange(1, 9)] = source.randbytes(source.randrange(9))
            case _:
                changed[place] = source.choice(b"\x00\x01\x7f\x80\xfe\xff")
        if not changed:
            break
    return bytes(changed)


def _seeds(folder: Path) -> Iterator[tuple[bytes, str]]:
    yield from _real(folder).values()


def _read(folder: Path, content: bytes, suffix: str) -> str:
    file = folder / f"any{suffix}"
    file.write_bytes(content)
    ends = []
    for read in (lambda: preview(file, limits=SMALL), lambda: import_file(folder / "d.sqlite", file, limits=SMALL)):
        try:
            read()
            ends.append("read")
        except AnonmlError as fault:
            ends.append("ended" if FAILED in str(fault) else "told")
    return "/".join(ends)


SMALL = ImportLimits(seconds=60.0, look_seconds=60.0)
IN_CI, IN_SOAK, PIECES = 8, 100_000, 40


@pytest.mark.slow
@pytest.mark.parametrize("number", range(12))
def test_files_of_twelve_formats_changed_anywhere_end_nothing(tmp_path: Path, number: int) -> None:
    content, suffix = list(_seeds(tmp_path))[number]
    for seed in range(IN_CI):
        assert _read(tmp_path, _changed(content, random.Random(f"{number} {seed}")), suffix)


@pytest.mark.soak
@pytest.mark.parametrize("number", range(PIECES))
async def test_a_hundred_thousand_changed_files_end_nothing_and_hold_up_no_loop(
    pytestconfig: pytest.Config, tmp_path: Path, number: int
) -> None:
    with piece(pytestconfig, "damaged-files", number, PIECES):
        found, stalls = await _survived(tmp_path, range(number * IN_SOAK // PIECES, (number + 1) * IN_SOAK // PIECES))
        print(found, "stalls over 20 ms:", stalls)
        assert sum(found.values()) == IN_SOAK // PIECES


async def _survived(folder: Path, seeds: range) -> tuple[dict[str, int], int]:
    """How many files ended how, and how often the loop waited for more than 20 ms."""
    kinds, found, stalls = list(_seeds(folder)), dict[str, int](), 0
    kinds += [(crasher.read_bytes(), ".parquet") for crasher in CRASHERS]

    def work() -> None:
        for seed in seeds:
            content, suffix = kinds[seed % len(kinds)]
            end = _read(folder, _changed(content, random.Random(seed)), suffix)
            found[end] = found.get(end, 0) + 1

    working = asyncio.create_task(asyncio.to_thread(work))
    while not working.done():
        before = time.monotonic()
        await asyncio.sleep(0.002)
        stalls += time.monotonic() - before > 0.022
    await working
    return found, stalls
