"""A query that takes all the time or memory it can get: it gets neither, and nothing that leaves tells how it ended.

Before, queries ran in the process that holds the keys: 459 MiB where 256 were promised, 5.4 s where the bound was 1 s,
and whoever was killed for it evaluated again, and was killed again.
"""

from __future__ import annotations

import asyncio
import errno
import os
import selectors
import socket
import sqlite3
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from anon.queries import process
from anon.queries.answers import LABEL, Question, Request, nothing, parse_answers
from anon.queries.functions import _Texts
from anon.queries.lint import Bounds
from anon.queries.sandbox import MissingValue, copied, opened
from peer.data.evaluate import request_of
from peer.rules.packet_lifecycle import Status
from peer.store.records import EvaluatingStudy
from tests.support.fake_aggregator import DECLARED, PAPER, FakeAggregator, advance, peer, reopened, until_closed
from tests.support.patience import turns, until

FOREVER = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
MEMORY = """with recursive doubled(t) as (select 'a' union all select t || t from doubled where length(t) < 100000),
    kept(i, t) as (select 1, (select max(t) from doubled) union select i + 1, t || i from kept)
    select count(*) from kept"""
TRIMMED = """with recursive doubled(t) as (select 'a' union all select t || t from doubled where length(t) < 100000),
    n(i) as (select 1 union all select i + 1 from n)
    select sum(length(trim(t || i, 'bcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789' || 'a')))
    from n, (select max(t) as t from doubled)"""
PARTS = PAPER.replace("bins = 2", "cuts = [30, 60]").replace("\nbinning_rounds = 3", "").replace('binning = "90m"', "")
"""Two packets, neither of which waits for a document: with binning, whether any is made at first is a matter of
chance."""
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows another process's limits in /proc")


def table(path: Path, age: int = 60) -> Path:
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE person (age INTEGER, cups TEXT, tired INTEGER, diary TEXT)")
        database.execute("CREATE TABLE letters (text TEXT)")
        database.execute("INSERT INTO person VALUES (?, 'many', 1, 'secret')", (age,))
        database.commit()
    return path


def asking(database: Path, *queries: str, memory: int = 400 * 2**20) -> Request:
    questions = tuple(Question("numeric", query) for query in queries)
    return Request(database, {"person": ("age", "cups", "tired")}, questions, 0, memory)


def children() -> list[int]:
    """Of the server of this process."""
    server = process._SERVER._process
    assert server is not None
    return [int(pid) for pid in Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()]


async def by_deadline(request: Request, seconds: float, sleep: process.Sleep = asyncio.sleep) -> tuple[Any, ...]:
    """The answers that are there at the deadline."""
    return parse_answers(request, await process.by_deadline(process.queries(request), seconds, sleep))


def held() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1])


@pytest.mark.slow
@LINUX
@pytest.mark.parametrize("query", [FOREVER, MEMORY, TRIMMED], ids=["steps", "memory", "trim"])
def test_a_hog_is_over_and_took_nothing_of_this_process(tmp_path: Path, query: str) -> None:
    request = asking(table(tmp_path / "data.sqlite"), query, "select age from person")
    before = held()
    answers = process.at_once(request, 3.0)
    assert answers[0] is None and answers[1] in (60.0, None)
    assert held() - before < 2000  # pages: 8 MB
    asyncio.run(until(lambda: children() == []))


@LINUX
@pytest.mark.slow
def test_a_child_has_no_environment_no_descriptor_and_hard_limits(tmp_path: Path) -> None:
    request = asking(table(tmp_path / "data.sqlite"), FOREVER)._replace(bounds=Bounds(steps=10**12))
    with process._SERVER.begin(20.0) as channel:
        channel.sendall(process._framed(process.queries(request)))
        limits: dict[str, str] = {}
        for _ in range(200):
            time.sleep(0.05)
            for pid in children():
                limits = {
                    line[:26].strip(): line[26:].split()[0]
                    for line in Path(f"/proc/{pid}/limits").read_text().splitlines()
                }
            if limits.get("Max open files") == "0":
                break
        (pid,) = children()
        assert (
            limits["Max open files"]
            == limits["Max file size"]
            == limits["Max core file size"]
            == limits["Max processes"]
            == "0"
        )
        assert limits["Max cpu time"] == "22"
        assert 400 * 2**20 < int(limits["Max address space"]) < 800 * 2**20
        assert Path(f"/proc/{pid}/environ").read_bytes() == b""
        assert Path(f"/proc/{pid}/oom_score_adj").read_text() == "1000\n"
        assert Path(f"/proc/{pid}/cwd").readlink() == Path("/")
        open_files = [str(one.readlink()) for one in Path(f"/proc/{pid}/fd").iterdir()]
        assert sorted(one.partition(":")[0] for one in open_files) == ["/dev/null", "/dev/null", "socket"]
        assert os.getsid(pid) == os.getpgid(pid) == pid
        mapped = Path(f"/proc/{pid}/maps").read_text()
        assert not [name for name in ("arkworks", "sodium", "aiohttp", "_ssl") if name in mapped]
    process._SERVER.stop()
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.slow
@LINUX
def test_a_child_that_waits_for_ever_is_ended_at_its_deadline() -> None:
    """Nothing is asked of it, so that none of the bounds on a query can end it: the system does."""
    with process._SERVER.begin(3.0) as channel:
        for _ in range(200):
            time.sleep(0.05)
            if children():
                break
        assert children()
        channel.settimeout(30.0)
        assert channel.recv(1) == b"", "the other end closes when it is killed"
        for _ in range(200):
            if not children():
                break
            time.sleep(0.05)
        assert children() == []


def test_a_child_sees_the_declared_columns_of_the_declared_tables_alone(tmp_path: Path) -> None:
    database = table(tmp_path / "data.sqlite")
    copy = copied(database, {"person": ("age", "cups"), "absent": ("x",)})
    assert copy is not None
    with closing(copy):
        assert [row[2:] for row in copy.execute("PRAGMA database_list")] == [("",)]
        assert copy.execute("SELECT name, sql FROM sqlite_master").fetchall() == [
            ("person", "CREATE TABLE person(age INT,cups TEXT)")
        ]
        assert b"secret" not in copy.serialize()


class Deadline:
    """A sleep that ends when the test says so."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.ended = asyncio.Event()

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await self.ended.wait()


def readable(sockets: list[socket.socket]) -> bool:
    """True if one of them can be read from. `select` takes no descriptor beyond 1,023, and a long run has such ones."""
    with selectors.DefaultSelector() as looking:
        for one in sockets:
            looking.register(one, selectors.EVENT_READ)
        return bool(looking.select(0))


OUTCOMES = {"select age from person": (30.0, 60.0), FOREVER: (1.0, None), "no query": (30.0, None)}
"""Of each query, the seconds that it is given and the answer."""


@pytest.mark.parametrize("query", OUTCOMES)
async def test_the_answers_come_at_the_deadline_and_never_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    (seconds, expected), deadline, channels = OUTCOMES[query], Deadline(), list[socket.socket]()
    await process.start()
    made = socket.socketpair

    def socketpair() -> tuple[socket.socket, socket.socket]:
        pair = made()
        channels.append(pair[0])
        return pair

    monkeypatch.setattr(socket, "socketpair", socketpair)
    waiting = asyncio.create_task(by_deadline(asking(table(tmp_path / "data.sqlite"), query), seconds, deadline))
    await until(lambda: channels and readable(channels))  # answered, or given up
    assert not waiting.done() and deadline.seconds == [seconds]
    deadline.ended.set()
    assert await waiting == (expected,)


@pytest.mark.slow
async def test_a_child_or_server_that_is_killed_counts_as_nothing_known(tmp_path: Path) -> None:
    request = asking(table(tmp_path / "data.sqlite"), FOREVER)
    process._SERVER.start()
    server = process._SERVER._process
    assert server is not None
    deadline = Deadline()
    waiting = asyncio.create_task(by_deadline(request, 30.0, deadline))
    await until(lambda: deadline.seconds)
    await turns(200)
    server.kill()
    await asyncio.to_thread(server.wait)  # what is asked of one that is dying is lost with it
    deadline.ended.set()
    assert await waiting == (None,)
    assert await asyncio.to_thread(
        process.at_once, request._replace(questions=(Question("numeric", "select age from person"),)), 30.0
    ) == (60.0,)


async def test_without_a_descriptor_the_answers_are_missing_at_the_deadline_and_no_earlier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else on this machine holds every descriptor that this process may have."""

    def none_left() -> None:
        raise OSError(errno.EMFILE, "too many open files")

    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(process.socket, "socketpair", none_left)
    request = asking(table(tmp_path / "data.sqlite"), "select age from person")
    assert await by_deadline(request, 7.0, sleep) == (None,)
    assert slept == [7.0]


async def test_without_a_thread_the_answers_are_missing_at_the_deadline_and_no_earlier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user whose processes are all taken gets no thread either."""

    def none_left(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(threading.Thread, "start", none_left)
    request = asking(table(tmp_path / "data.sqlite"), "select age from person")
    await process.start()
    for platform in (sys.platform, "ios"):
        monkeypatch.setattr(sys, "platform", platform)
        assert await by_deadline(request, 7.0, sleep) == (None,)
    assert slept == [7.0, 7.0]


def test_a_message_of_another_form_is_no_answer_at_all() -> None:
    """Every single change of a byte, length or kind gives either declared values or none."""
    texts = ("none", "some", "many")
    request = Request(
        Path("/"), {}, (Question("numeric", ""), Question("categorical", "", texts), Question(LABEL, "", ("yes",))), 0
    )
    chance = Random(11)
    for size in (*range(40), 10_000):
        message = chance.randbytes(size)
        for value in parse_answers(request, message):
            assert value is None or isinstance(value, float) or value in (*texts, "yes")
        if size != request.size:
            assert parse_answers(request, message) == (None,) * 3
    assert parse_answers(request, nothing(request)) == (None,) * 3
    for kind, part in (
        (b"\x03", bytes(8)),
        (b"\x01", b"\x00\x00\x00\x00\x00\x00\xf0\x7f"),
        (b"\x02", bytes(8)),
        (b"\x00", b"\x01" * 8),
    ):
        assert parse_answers(request, kind + part + bytes(18)) == (None,) * 3
    assert parse_answers(request, bytes(9) + b"\x02" + b"\x02" + bytes(7) + bytes(9)) == (None, "many", None)


class Killed(BaseException):
    """As if the memory killer had come."""


async def killed(*_study: Any) -> Any:
    raise Killed


@pytest.mark.parametrize("text", [DECLARED, PARTS], ids=["one packet", "two packets"])
async def test_an_evaluation_that_was_begun_is_never_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Killed in it, a peer goes on as if every value were missing: at the times that were drawn before, at the same
    cost."""
    aggregator = FakeAggregator.with_study(text)
    app = peer(tmp_path, aggregator)
    table(app._home.data_path)
    await app.join(aggregator.invite, aggregator.manifest.epsilon)
    await until_closed(app, aggregator)
    object.__setattr__(app._tools, "evaluate", killed)
    with pytest.raises(Killed):
        await advance(app, aggregator)
    begun = app.store.study(aggregator.study)
    assert isinstance(begun, EvaluatingStudy) and begun.snapshot is None
    fetched = len(aggregator.gets)
    app.close()

    again = reopened(app._home, aggregator)
    object.__setattr__(again._tools, "evaluate", killed)  # it must not be asked
    due = await again.step(aggregator.study)
    assert due == begun.evaluation.due
    aggregator.clock.seconds = due
    await again.step(aggregator.study)
    assert len(aggregator.gets) == fetched
    drawn = dict(begun.evaluation.send_times)
    assert {one.slot: one.send_at for one in again.store.outbox(aggregator.study)} == drawn and drawn
    if text == DECLARED:
        await advance(again, aggregator, max(one.window.closes for one in aggregator.manifest.surveys))
        (status,) = again.status()
        assert [one.status for one in status.slots] == [Status.DELIVERED]
        assert status.spent == aggregator.manifest.epsilon


def test_what_a_child_is_told_of_a_study_can_be_read_back(tmp_path: Path) -> None:
    request = request_of(FakeAggregator.with_study(DECLARED).manifest, tmp_path / "data.sqlite")
    assert Request.from_bytes(request.to_bytes()) == request and request.size == 27


@pytest.mark.slow
@pytest.mark.parametrize("query", OUTCOMES)
async def test_where_there_are_no_child_processes_a_thread_is_heard_at_the_deadline_and_no_earlier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    """iOS and Android, as docs/mobile.md says."""
    database = table(tmp_path / "data.sqlite")
    monkeypatch.setattr(sys, "platform", "ios")
    assert not process.has_children()
    (seconds, expected), deadline, threads = OUTCOMES[query], Deadline(), threading.active_count()
    waiting = asyncio.create_task(by_deadline(asking(database, query), seconds, deadline))
    await until(lambda: deadline.seconds and threading.active_count() == threads)
    assert not waiting.done() and deadline.seconds == [seconds]
    deadline.ended.set()
    assert await waiting == (expected,)
    assert process.at_once(asking(database, "select age from person"), 30.0) == (60.0,)


@pytest.mark.slow
@LINUX
def test_a_program_that_brings_its_python_along_is_its_own_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`sys.executable` is the program itself there, which must not begin again from the front: it knows one word."""
    program = tmp_path / "anonml-peer"
    main = Path(__file__).resolve().parents[2] / "bundle" / "peer_program.py"
    paths = [str(main.parents[1]), *(one for one in sys.path if one.endswith("site-packages"))]
    program.write_text(
        f"#!{sys.executable}\nimport runpy, sys\nsys.path[:0] = {paths!r}\n"
        f"runpy.run_path({str(main)!r}, run_name='__main__')\n"
    )
    program.chmod(0o700)
    process._SERVER.stop()
    monkeypatch.setattr(sys, "executable", str(program))
    assert process._SERVER.command() == [str(program), process.WORD]
    try:
        assert process.at_once(asking(table(tmp_path / "data.sqlite"), "select age from person"), 60.0) == (60.0,)
    finally:
        process._SERVER.stop()


class Counted:
    """Takes the charges of functions."""

    units = 0

    def __call__(self, units: int) -> None:
        self.units += units


def test_what_trim_costs_is_charged() -> None:
    """It looks for each character in the whole set; it was charged a 64th of the text's length, whatever the set."""
    charged = Counted()
    text, unwanted = "乡" * 80_000, "".join(chr(0x4E61 + 256 * number) for number in range(1, 63)) + "乡"
    assert _Texts(charged, 2**18).trim(text, unwanted) == ""
    assert charged.units >= len(text) * len(unwanted) // 64


def test_clock_is_looked_at_while_our_own_functions_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a child, on a phone: 256 trims went by between two looks."""
    trims = ", ".join(f"max({', '.join(['trim(t, c)'] * 16)})" for _ in range(16))
    unwanted = "".join(chr(0x4E61 + 256 * number) for number in range(1, 63)) + "乡"
    query = f"""WITH RECURSIVE doubled(t) AS (SELECT '乡' UNION ALL SELECT t || t FROM doubled WHERE length(t) < 50000)
        SELECT max({trims}) FROM (SELECT max(t) AS t, '{unwanted}' AS c FROM doubled)"""
    over, trim = list[bool](), _Texts.trim

    def trimmed(texts: _Texts, *given: Any) -> Any:
        over.append(True)  # the time is over as soon as one of them has begun
        return trim(texts, *given)

    monkeypatch.setattr(_Texts, "trim", trimmed)
    monkeypatch.setattr("anon.queries.sandbox.time", SimpleNamespace(monotonic=lambda: float(len(over))))
    with opened(table(tmp_path / "data.sqlite"), seconds=0.5) as sandbox:
        assert sandbox is not None
        assert isinstance(sandbox.scalar(query, 0), MissingValue)
    assert 1 <= len(over) <= 2
