"""The programs of `benchmarks.life`: started, watched and ended, with the processor time and memory of each."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

from attrs import define, field

from benchmarks.life_program import FileClock, note_of, peak_of
from benchmarks.load import children
from benchmarks.server import cpu_seconds

ROOT = Path(__file__).resolve().parents[1]
_PATIENCE = 120.0


@define
class Memory:
    """The most MiB that a program held at once, without and with its worker processes."""

    own: float
    whole: float


@define
class Program:
    """`anonml WORDS` in a process of its own. `start` it, and `stop` it."""

    clock: FileClock
    words: tuple[str, ...]
    _process: asyncio.subprocess.Process | None = field(default=None, init=False)

    async def start(self) -> Any:
        """Returns what its first line of JSON says."""
        self._process = await _begin(self.clock, self.words)
        out = self._process.stdout
        line = b"" if out is None else await asyncio.wait_for(out.readline(), _PATIENCE)
        if not line:
            raise RuntimeError(f"anonml {' '.join(self.words)} did not start")
        return json.loads(line)

    @property
    def pid(self) -> int:
        """Its process. Raises `RuntimeError` before it is started."""
        if self._process is None:
            raise RuntimeError("the program was not started")
        return self._process.pid

    def cpu(self) -> float:
        """Seconds of processor time so far, those of its worker processes too."""
        return cpu_seconds(self.pid)

    def peak(self) -> Memory:
        """The peaks since the last call. Those of several processes are added: the sum is at least the truth."""
        own, *others = [_taken_peak(pid) for pid in (self.pid, *children(self.pid))]
        return Memory(own, own + sum(others))

    async def stop(self) -> None:
        """As a service manager does. Raises `RuntimeError` for a program that ended before, or badly."""
        if self._process is None:
            return
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)
        out, _ = await asyncio.wait_for(self._process.communicate(), _PATIENCE)
        if self._process.returncode != 0:
            raise RuntimeError(f"anonml {' '.join(self.words)} ended with {self._process.returncode}: {out!r}")


@define
class Done:
    """A command that ended well: the JSON that it printed, seconds of processor time, and MiB at its peak."""

    said: Any
    cpu: float
    memory: Memory


async def command(clock: FileClock, *words: object) -> Done:
    """`anonml WORDS --json`. Raises `RuntimeError` if it fails."""
    asked, before = tuple(map(str, (*words, "--json"))), used_by_children()
    process = await _begin(clock, asked)
    out, _ = await process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"anonml {' '.join(asked)} ended with {process.returncode}: {out!r}")
    peak = float(note_of(clock.path, process.pid).read_text())
    return Done(json.loads(out), used_by_children() - before, Memory(peak, peak))


def used_by_children() -> float:
    """Processor time of all processes that this one started and saw end."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def _begin(clock: FileClock, words: tuple[str, ...]) -> asyncio.subprocess.Process:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    line = [sys.executable, "-m", "benchmarks.life_program", str(clock.path), *words]
    return await asyncio.create_subprocess_exec(*line, stdout=asyncio.subprocess.PIPE, cwd=ROOT, env=environment)


def _taken_peak(pid: int) -> float:
    """MiB at its peak; from now on the peak is counted anew."""
    peak = peak_of(pid)
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return peak
