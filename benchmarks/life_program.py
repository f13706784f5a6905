"""`anonml` as it is, by a clock that a file shows and the driver of a study moves.

    python -m benchmarks.life_program CLOCK WORDS

At its end it leaves its peak of memory in a file beside the clock. Imports nothing that reads a clock.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
import time
from pathlib import Path

_SECONDS = struct.Struct("<d")


class FileClock:
    """Unix seconds that stand in a file. They change when somebody sets them, and not else."""

    def __init__(self, path: Path, begin: float | None = None) -> None:
        self.path = path
        if begin is not None:
            path.write_bytes(_SECONDS.pack(begin))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _SECONDS.size)

    def __call__(self) -> float:
        return float(_SECONDS.unpack(self._map[:])[0])

    def set(self, seconds: float) -> None:
        """Every process that reads the file has this time from now on."""
        self._map[:] = _SECONDS.pack(seconds)


def peak_of(pid: int) -> float:
    """MiB that a process held at most, since it began or its peak was forgotten."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0) / 1024


def note_of(clock: Path, pid: int) -> Path:
    """The file in which a program leaves the MiB of its peak."""
    return clock.with_name(f"peak-{pid}")


if __name__ == "__main__":
    shown = Path(sys.argv.pop(1))
    time.time = FileClock(shown)  # before anything is imported that keeps it
    from anonml import main

    try:
        main()
    finally:
        note_of(shown, os.getpid()).write_text(str(peak_of(os.getpid())))
