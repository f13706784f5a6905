"""`anonml peer open` as a program: it prints a link that works once, runs the studies, and ends cleanly."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest
from attrs import frozen

from tests.support.fake_aggregator import DECLARED
from tests.support.peer_command import Served, serving
from tests.support.visiting import Got

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[3]


@frozen
class Program:
    process: subprocess.Popen[str]
    link: str

    @property
    def address(self) -> str:
        return self.link.rpartition("/")[0]


def _program(home: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "anonml", "peer", "open", "--no-browser", "--home", str(home), *words]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@contextmanager
def opened(home: Path, *words: str) -> Iterator[Program]:
    process = _program(home, *words)
    try:
        link = ""
        assert process.stdout is not None
        for line in process.stdout:
            found = re.search(r"http://127\.0\.0\.1:\d+/\S+", line)
            if found:
                link = found[0]
                break
        assert link, process.stderr.read() if process.stderr else ""
        yield Program(process, link)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(DECLARED) as found:
        yield found


async def _browse(program: Program, session: aiohttp.ClientSession, path: str, **fields: str) -> Got:
    method = "POST" if fields else "GET"
    address = path if path.startswith("http") else program.address + path
    headers = {"Origin": program.address, "Sec-Fetch-Site": "same-origin"} if fields else {}
    async with session.request(method, address, data=fields or None, headers=headers) as answer:
        body = await answer.read()
        return Got(answer.status, answer.headers, body.decode("utf-8", "replace"), body, str(answer.url))


async def _joining(program: Program, study: str) -> None:
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(cookie_jar=jar) as session:
        assert (await _browse(program, session, program.link)).status == 200
        assert (await _browse(program, session, program.link)).status == 403
        limits = (await _browse(program, session, "/start/budget")).form("/start/budget") | {"minimum_cohort": "3"}
        await _browse(program, session, "/start/budget", **limits)
        place = f"/invite/{study}"
        for _ in range(20):
            shown = await _browse(program, session, place)
            if 'http-equiv="refresh"' not in shown.text:
                break
        done = await _browse(program, session, place, **shown.form(place), answer="yes", unready="person")
        assert "You take part" in done.words, done.words


def test_a_link_given_to_the_command_ends_in_an_enrolment_and_control_c_in_order(
    tmp_path: Path, served: Served
) -> None:
    with opened(tmp_path / "home", served.link) as program:
        asyncio.run(_joining(program, served.aggregator.study.hex()))
        deadline = time.monotonic() + 20
        while not served.aggregator.sent("enrol") and time.monotonic() < deadline:
            time.sleep(0.1)
        assert len(served.aggregator.sent("enrol")) == 1
        program.process.send_signal(signal.SIGINT)
        out, err = program.process.communicate(timeout=20)
    assert program.process.returncode == 0 and "closed" in out and "For another browser: http" in out
    assert "Traceback" not in err and not (tmp_path / "home" / "incoming").exists()
    code = served.link.rpartition("code=")[2]
    assert code not in out + err  # an invite is a secret


def test_a_second_program_on_the_same_home_says_who_runs_it(tmp_path: Path) -> None:
    async def front(program: Program) -> str:
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
            await _browse(program, session, program.link)
            while 'http-equiv="refresh"' in (shown := await _browse(program, session, "/diagnosis")).text:
                pass
            return shown.words

    with opened(tmp_path) as first, opened(tmp_path) as second:
        assert first.link != second.link
        said = asyncio.run(front(second))
        assert "by another process on this machine" in said


def test_a_port_that_is_taken_and_a_link_that_is_none_are_refused(tmp_path: Path) -> None:
    with opened(tmp_path / "one") as program:
        taken = _program(tmp_path / "two", "--port", program.address.rpartition(":")[2])
        assert "choose another one with --port" in taken.communicate(timeout=20)[1] and taken.returncode == 4
    wrong = _program(tmp_path / "two", "https://example.org")
    assert "not an AnonML link" in wrong.communicate(timeout=20)[1] and wrong.returncode == 3
