"""The command line as people use it: every call is a process of its own, on the wall clock.

A program of `start` begins with an interpreter. The processes of all other calls come from a fork server that has
everything imported: an interpreter with its imports takes ten times as long as most commands. Where `ENVIRONMENT` says
something to interpreters that this process was not told, all calls begin with one.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any
from weakref import WeakKeyDictionary

import pytest
from attrs import frozen

from tests.support.forks import FORKS, run_command

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200", "PYTHONFAULTHANDLER": "1"}
LONGEST = 450
AT_ONCE = 4
"""Programs of one loop."""
_TURNS: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


def as_if_started_at(program: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> Path:
    """This program, as if somebody had typed that path and these words."""
    program.parent.mkdir(exist_ok=True)
    program.touch(0o755)
    monkeypatch.setattr(sys, "argv", [str(program), *words])
    return program


@frozen
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The value that the command printed with --json."""
        return json.loads(self.out)


async def start(*words: str | Path, log: IO[bytes] | None = None) -> asyncio.subprocess.Process:
    """`anonml WORDS`, in the background; what it complains about goes to `log` or is returned by `finish`."""
    command = [sys.executable, "-m", "anonml", *map(str, words)]
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        *command, stdout=pipe, stderr=log or pipe, cwd=ROOT, env=ENVIRONMENT
    )


async def attempt(*words: str | Path) -> Done:
    """`anonml WORDS`, whatever comes of it. A process that hangs is ended, and says where it was."""
    if ENVIRONMENT.get("PYTHONPATH") != os.environ.get("PYTHONPATH"):
        async with _turn():
            return await finish(await start(*words))
    with TemporaryDirectory() as folder:
        out, errors = Path(folder) / "out", Path(folder) / "errors"
        async with _turn():
            process = FORKS.Process(target=run_command, args=([*map(str, words)], ENVIRONMENT, ROOT, out, errors))
            process.start()
            code = await _ended(process)
        assert code is not None, f"it hung: {out.read_text()} {errors.read_text()}"
        return Done(code, out.read_text(), errors.read_text())


def _turn() -> asyncio.Semaphore:
    """Of the running loop: a semaphore that a task waited for belongs to that task's loop for good."""
    return _TURNS.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE))


async def _ended(process: BaseProcess) -> int | None:
    """Its exit code; None if it had to be ended."""
    deadline = time.monotonic() + LONGEST
    try:
        while process.exitcode is None and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        return process.exitcode
    finally:
        if process.exitcode is None and process.pid is not None:
            os.kill(process.pid, signal.SIGABRT)
            process.join()


async def finish(process: asyncio.subprocess.Process, encoding: str = "utf-8", longest: float = LONGEST) -> Done:
    """Wait for its end. A process that hangs is ended, and says where it was."""
    reading = asyncio.create_task(process.communicate())
    try:
        done, _ = await asyncio.wait({reading}, timeout=longest)
    except asyncio.CancelledError:
        process.kill()
        await reading
        raise
    if not done:
        process.send_signal(signal.SIGABRT)
    out, err = (stream or b"" for stream in await reading)
    assert done, f"it hung: {out.decode(encoding)} {err.decode(encoding)}"
    return Done(process.returncode or 0, out.decode(encoding), err.decode(encoding))


async def anonml(*words: str | Path) -> Any:
    """`anonml WORDS --json`, which must succeed; what it printed."""
    done = await attempt(*words, "--json")
    assert done.code == 0, f"anonml {' '.join(map(str, words))}: {done.err or done.out}"
    return done.json


async def plain(*words: str | Path) -> str:
    """`anonml WORDS`, which must succeed; its text."""
    done = await attempt(*words)
    assert done.code == 0, f"anonml {' '.join(map(str, words))}: {done.err or done.out}"
    return done.out


class Serving:
    """`anonml aggregator serve --port 0 --json`, and what it has said so far."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.address = ""
        self.log = home.with_suffix(".log")
        self.phases: dict[str, list[str]] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._said = asyncio.Event()

    async def start(self) -> None:
        """Until it listens."""
        with self.log.open("wb") as log:
            self._process = await start("aggregator", "serve", "--home", self.home, "--port", "0", "--json", log=log)
        assert self._process.stdout is not None
        self.address = json.loads(await asyncio.wait_for(self._process.stdout.readline(), 60))["address"]
        self._reader = asyncio.create_task(self._follow(self._process.stdout))

    async def _follow(self, lines: asyncio.StreamReader) -> None:
        while line := await lines.readline():
            said = json.loads(line)
            self.phases.setdefault(said["study"], []).append(said["phase"])
            self._said.set()

    async def ended(self, *studies: str) -> None:
        """Until every one of these has ended."""
        await self._told("published", "abandoned", of=studies)

    async def begun(self, study: str) -> None:
        """Until it is served, a moment after it was published."""
        await self._told("enrolling", of=(study,))

    async def _told(self, *phases: str, of: tuple[str, ...]) -> None:
        while not all(set(phases) & set(self.phases.get(study, ())) for study in of):
            self._said.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._said.wait(), 300)
            assert self._said.is_set(), f"nothing happens: {self.phases} {self.log.read_text()}"

    async def stop(self) -> int:
        """Ctrl-C of a service manager; its exit code."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)
        return await asyncio.wait_for(self._process.wait(), 30)
