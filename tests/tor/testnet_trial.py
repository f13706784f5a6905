"""One life of `anonml testnet`, by the command line: up, measured, ended, and what is left of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from attrs import define, field, frozen

from anon.kit.testnet import Memory, memory_of

ROOT = Path(__file__).resolve().parents[2]
MARK = "LANGUAGE"
"""A variable that every program inherits (`anon.machine.environment`), and nothing here reads."""
LINGER = 1.0
How = Literal["down", "SIGKILL of the owner"]


@frozen
class Trial:
    """`seconds` from calling `up` to its return; `memory` over owner and tors a moment later, and `most` the largest
    sum of proportional set sizes seen until then; `gone` seconds from the call of `down`, or the kill, until no process
    of it was left; `left` is how many there were after two seconds."""

    how: How
    seconds: float
    attempts: int
    memory: Memory
    most: int
    processes: int
    gone: float
    left: int


def testnet(mark: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """`anonml testnet WORDS`, whose processes, and all that they start, carry the mark in their environment."""
    command = [sys.executable, "-m", "anonml", "testnet", *map(str, words)]
    environment = {**os.environ, MARK: mark}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=200)


testnet.__test__ = False  # type: ignore[attr-defined]


def marked(mark: str) -> list[int]:
    """Every process of this machine that carries the mark, found by asking the kernel, not the network."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


@define
class _Sampler:
    """The largest sum of proportional set sizes over all processes with a mark, looked at four times a second."""

    mark: str
    most: int = 0
    _over: threading.Event = field(factory=threading.Event)
    _thread: threading.Thread = field(init=False)

    def __enter__(self) -> _Sampler:
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.25):
            held = memory_of(marked(self.mark))
            self.most = max(self.most, held.pss if held else 0)


def try_once(folder: Path, how: How) -> Trial:
    """Up, look, end."""
    mark = uuid.uuid4().hex
    try:
        with _Sampler(mark) as sampler:
            start = time.monotonic()
            up = testnet(mark, "up", "--folder", folder, "--json")
            seconds = time.monotonic() - start
            assert up.returncode == 0, up.stderr
            time.sleep(LINGER)
        told: dict[str, Any] = json.loads(up.stdout)
        pids = marked(mark)
        memory = memory_of(pids)
        assert memory is not None
        start = time.monotonic()
        if how == "down":
            down = testnet("", "down", "--folder", folder)
            assert down.returncode == 0, down.stderr
        else:
            os.kill(told["pid"], signal.SIGKILL)
        gone = _until_gone(mark, start)
        return Trial(how, seconds, told["attempts"], memory, sampler.most, len(pids), gone, len(marked(mark)))
    finally:
        for pid in marked(mark):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _until_gone(mark: str, start: float) -> float:
    while marked(mark) and time.monotonic() - start < 2:
        time.sleep(0.02)
    return time.monotonic() - start


def left_after_early_kill(folder: Path, tors: int) -> int:
    """How many processes are left two seconds after an owner was killed in the moment in which so many tors ran."""
    mark = uuid.uuid4().hex
    command = [sys.executable, "-m", "anonml", "testnet", "up", "--foreground", "--json", "--folder", str(folder)]
    environment = {**os.environ, MARK: mark}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL) as owner:
        try:
            until = time.monotonic() + 60
            while len(_tors(mark)) < tors:
                assert time.monotonic() < until, "it starts no tor"
            owner.kill()
            owner.wait()
            time.sleep(2)
            return len(marked(mark))
        finally:
            for pid in marked(mark):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def _tors(mark: str) -> list[int]:
    """The lasting ones: not those that only list a fingerprint."""
    found = []
    for pid in marked(mark):
        with suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"/tor") and b"--list-fingerprint" not in words:
                found.append(pid)
    return found
